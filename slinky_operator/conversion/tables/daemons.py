"""Tables of what daemons of Slinky's charts have in common: pods, containers, Services, claims.

Which daemon has which of them is in `slurm` and `kinds`.
"""

from __future__ import annotations

from typing import Any

from slinky_operator.conversion.rules import (
    At,
    Rule,
    Shape,
    Table,
    WithoutEffect,
    count,
    flag,
    image_of,
    items,
    lost,
    lost_unless,
    mapping,
    pull_policy,
    resources,
    text,
    to,
    words,
)


def node_port(value: Any, at: At) -> object:
    """A node port, which counts for a Service of type NodePort only."""
    service = at.around.get("service") or {}
    kind = service.get("type") or (service.get("spec") or {}).get("type") if isinstance(service, dict) else None
    if kind != "NodePort":
        raise WithoutEffect("only a Service of type NodePort has one")
    return [{"nodePort": count(value, at)}]


def login_port(value: Any, at: At) -> object:
    """The port of the Service of login pods."""
    if count(value, at) == 22:  # noqa: PLR2004 the port of ssh
        raise WithoutEffect("the default")
    return [{"port": count(value, at)}]


def fixed_port(port: int, daemon: str) -> Rule:
    """A port that cannot be chosen here."""
    return lost_unless(port, why=f"{daemon} listens at {port}", because=f"{daemon} listens at {port}")


def service(scope: str, port: Rule) -> Shape:
    """A Service: its spec (0.3, 0.4), or `metadata` and `spec` (1.x)."""
    whole = to(f"{scope}.service.spec", mapping)
    parts: Table = {
        "metadata": {
            "labels": to(f"{scope}.service.labels", words),
            "annotations": to(f"{scope}.service.annotations", words),
        },
        "spec": whole,
        "port": port,
        "nodePort": to(f"{scope}.service.spec.ports", node_port),
    }
    return Shape(lambda value, _: parts if isinstance(value, dict) and set(value) <= set(parts) else whole)


def pod(scope: str) -> Table:
    """What belongs to a pod: one key each (0.1 to 0.3), or `podSpec` and `metadata` (0.4 to 1.3)."""
    return {
        "nodeSelector": to(f"{scope}.template.spec.nodeSelector", mapping),
        "affinity": to(f"{scope}.template.spec.affinity", mapping),
        "tolerations": to(f"{scope}.template.spec.tolerations", items),
        "priorityClassName": to(f"{scope}.template.spec.priorityClassName", text),
        "podSpec": to(f"{scope}.template.spec", mapping, "without fields that are empty"),
        "metadata": to(f"{scope}.template.metadata", mapping),
    }


def container(scope: str, program: str) -> Table:
    """A daemon's container (0.4 to 1.3)."""
    return {
        "image": to(f"{scope}.image", image_of(program)),
        "resources": to(f"{scope}.resources", resources),
        "imagePullPolicy": to(f"{scope}.container.imagePullPolicy", pull_policy),
        "securityContext": to(f"{scope}.container.securityContext", security_context),
        "*": to(f"{scope}.container.*"),
    }


def security_context(value: Any, at: At) -> object:
    """A security context that says something."""
    if value == {"privileged": False}:
        raise WithoutEffect("the default")
    return mapping(value, at)


def daemon(scope: str, program: str) -> Table:
    """A daemon in both generations of values."""
    return {
        **pod(scope),
        "image": to(f"{scope}.image", image_of(program)),
        "imagePullPolicy": to(f"{scope}.container.imagePullPolicy", pull_policy),
        "resources": to(f"{scope}.resources", resources),
        program: container(scope, program),
    }


def persistence(scope: str) -> Table:
    """A claim."""
    return {
        "enabled": to(f"{scope}.persistence.enabled", flag),
        "existingClaim": to(f"{scope}.persistence.existingClaim", text),
        "storageClass": to(f"{scope}.persistence.storageClassName", text),
        "storageClassName": to(f"{scope}.persistence.storageClassName", text),
        "accessModes": to(f"{scope}.persistence.accessModes", items),
        "size": to(f"{scope}.persistence.size", text),
        "resources": {"requests": {"storage": to(f"{scope}.persistence.size", text)}},
        "labels": to(f"{scope}.persistence.labels", words),
        "annotations": to(f"{scope}.persistence.annotations", words),
        "selector": lost(f"make the claim yourself, and name it in {scope}.persistence.existingClaim"),
    }
