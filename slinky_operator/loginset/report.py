"""The status of a LoginSet. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from slinky_api.conditions import LoginSetCondition, Reason, merge
from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.loginset import LoginSetStatus
from slinky_operator.kube.objects import Object
from slinky_operator.loginset import names
from slinky_operator.loginset.needs import LoginTrouble
from slinky_operator.loginset.observe import Snapshot
from slinky_operator.reconcile import pod_trouble
from slinky_operator.reconcile.text import cut, joined
from slinky_operator.reconcile.writes.parts import condition, stored_status
from slinky_operator.slurm.pods.exit_messages import LONGEST

LONGEST_SUMMARY: Final = 120


def status(
    snapshot: Snapshot,
    troubles: Sequence[LoginTrouble],
    config: LoginTrouble | None,
    fingerprints: Sequence[str],
    wall: datetime,
) -> LoginSetStatus:
    """Build the status.

    Parameters
    ----------
    troubles
        What keeps the pods from being as the spec asks, but for the configuration of sshd.
    config
        Why running SSH servers have another configuration; None if they have the wanted one.
    fingerprints
        Of the SSH host keys.
    wall
        The time of day.
    """
    loginset = snapshot.loginset
    counts: dict[str, int] = ((snapshot.deployment or {}).get("status") or {}) if snapshot.deployment else {}
    every = [*troubles, *([config] if config is not None else []), *_of_pods(snapshot, wall)]
    grave = [one for one in every if not one.waits]
    ready = _ready(snapshot, every)
    applied = _condition(LoginSetCondition.SSHD_CONFIG_APPLIED, holds=config is None, trouble=config)
    degraded = _condition(LoginSetCondition.DEGRADED, holds=bool(grave), trouble=grave[0] if grave else None)
    if len(grave) > 1:
        degraded = degraded.model_copy(update={"message": joined([one.message for one in grave])})
    conditions = [ready, applied, degraded]
    return LoginSetStatus(
        summary=cut("ready" if ready.status == "True" else ready.message, LONGEST_SUMMARY),
        conditions=merge(
            loginset.status.conditions,
            [one.model_copy(update={"observed_generation": loginset.metadata.generation}) for one in conditions],
            wall,
        ),
        observed_generation=loginset.metadata.generation,
        replicas=counts.get("replicas", 0),
        ready_replicas=counts.get("readyReplicas", 0),
        updated_replicas=counts.get("updatedReplicas", 0),
        selector=",".join(f"{label}={value}" for label, value in sorted(names.selector(loginset).items())),
        address=address(snapshot.service),
        host_keys=tuple(fingerprints),
    )


def address(service: Object | None) -> str | None:
    """Where a Service is reached from outside, if it is, or else from within Kubernetes; None while there is none."""
    if service is None:
        return None
    spec: dict[str, Any] = service.get("spec") or {}
    port: dict[str, Any] = next(iter(spec.get("ports") or ()), {})
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    for one in ingress:
        if one.get("ip") or one.get("hostname"):
            return f"{one.get('ip') or one.get('hostname')}:{port.get('port')}"
    if spec.get("type") == "LoadBalancer":
        return "pending"
    if spec.get("type") == "NodePort":
        return f"any Node:{port.get('nodePort')}"
    host = spec.get("clusterIP")
    if host in {None, "", "None"}:
        host = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    return f"{host}:{port.get('port')}"


def invalid(loginset: Object, words: str, wall: datetime) -> dict[str, Any]:
    """The status of an object that cannot be parsed: what it has, and why."""
    stored, before = dict(loginset.get("status") or {}), stored_status(LoginSetStatus, loginset).conditions
    trouble = LoginTrouble(Reason.INVALID_SPEC, words)
    wanted = merge(
        before,
        [
            _condition(LoginSetCondition.READY, holds=False, trouble=trouble),
            _condition(LoginSetCondition.DEGRADED, holds=True, trouble=trouble),
        ],
        wall,
    )
    counts = {"replicas": 0, "readyReplicas": 0, **stored}
    return {**counts, "conditions": [one.to_dict() for one in wanted], "summary": cut(words, LONGEST_SUMMARY)}


def _ready(snapshot: Snapshot, troubles: Sequence[LoginTrouble]) -> Condition:
    if troubles:
        return _condition(LoginSetCondition.READY, holds=False, trouble=troubles[0])
    live = snapshot.deployment
    if live is None:
        starting = LoginTrouble(Reason.PODS_NOT_READY, "login pods are being created")
        return _condition(LoginSetCondition.READY, holds=False, trouble=starting)
    counts, wanted = live.get("status") or {}, snapshot.loginset.spec.replicas
    seen = (counts.get("observedGeneration") or 0) >= (live["metadata"].get("generation") or 0)
    ready, updated, all_pods = (counts.get(one) or 0 for one in ("readyReplicas", "updatedReplicas", "replicas"))
    if seen and ready == updated == all_pods == wanted == live["spec"].get("replicas"):
        return _condition(LoginSetCondition.READY, holds=True, trouble=None)
    message = f"{ready} of {wanted} pods are ready" + (f", {updated} as the spec asks" if updated != wanted else "")
    return _condition(LoginSetCondition.READY, holds=False, trouble=LoginTrouble(Reason.PODS_NOT_READY, message))


def _of_pods(snapshot: Snapshot, wall: datetime) -> list[LoginTrouble]:
    """Why pods do not start, or cannot be created."""
    found = []
    for one in ((snapshot.deployment or {}).get("status") or {}).get("conditions") or ():
        if one.get("type") == "ReplicaFailure" and one.get("status") == "True":
            why = cut(one.get("message") or "no word", LONGEST)
            found.append(LoginTrouble(Reason.POD_REFUSED, f"login pods cannot be created: {why}"))
    for pod in sorted(snapshot.pods, key=lambda one: str(one["metadata"]["name"])):
        troubles = pod_trouble.of_pod("the login set", pod, wall)
        found += [LoginTrouble(_reason(trouble.reason), trouble.message) for trouble in troubles]
    return found


def _reason(kubelets: str) -> Reason:
    try:
        return Reason(kubelets)
    except ValueError:
        return Reason.PODS_NOT_READY


def _condition(kind: LoginSetCondition, *, holds: bool, trouble: LoginTrouble | None) -> Condition:
    if trouble is None:
        return condition(kind, holds=holds)
    return condition(kind, trouble.reason, trouble.message, holds=holds)
