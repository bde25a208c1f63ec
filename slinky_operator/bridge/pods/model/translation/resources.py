"""CPUs, memory and devices of a pod as its share of a job. Pure.

They are summed as the scheduler of Kubernetes does: containers and sidecars together, or an init container with the
sidecars before it if that is more, and the overhead of the pod. What the pod itself requests wins for CPUs and memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from slinky_operator.jobs.quantities import MIB, number_of, whole
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import named

Amounts = dict[str, Decimal]

_KUBERNETES_ONLY: Final = "ephemeral-storage"
"""What Kubernetes alone counts: the scheduler looks for room when it binds the pod."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one pod has of its job."""

    cpus: int
    """CPUs, at least one: Slurm gives none in parts."""
    memory_mib: int
    gres: tuple[tuple[str, int], ...] = ()
    """Generic resources with their types, and how many, by name."""


def share_of(pod: Object, gres_by_resource: Mapping[str, str], devices: Iterable[tuple[str, int]] = ()) -> Share:
    """What a pod asks for.

    Parameters
    ----------
    gres_by_resource
        The generic resource of each extended resource that counts.
    devices
        Generic resources that its ResourceClaims ask for.

    Raises
    ------
    InvalidJob
        For a pod without a request for memory, and for a resource that Slurm does not count.
    """
    total = _total(pod)
    path = "spec.containers[*].resources.requests"
    gres: dict[str, int] = {}
    for kind, count in devices:
        gres[kind] = gres.get(kind, 0) + count
    for name, amount in total.items():
        if name in {"cpu", "memory", _KUBERNETES_ONLY} or not amount:
            continue
        if name not in gres_by_resource:
            known = named(["cpu", "memory", *gres_by_resource], 20)
            reason = f"Slurm counts no such resource here, but {known}; the administrator of the Cluster can add it"
            raise InvalidJob(f"{path}[{name[:100]}]", f"{reason} in spec.jobs.bridge.gres")
        counted = gres_by_resource[name]
        gres[counted] = gres.get(counted, 0) + whole(amount, f"{path}[{name[:100]}]")
    memory = total.get("memory", Decimal(0))
    if not memory:
        raise InvalidJob(f"{path}[memory]", "is required: Slurm has to know how much memory the pod gets")
    cpus = max(1, whole(total.get("cpu", Decimal(0)), f"{path}[cpu]"))
    return Share(cpus, whole(memory / MIB, f"{path}[memory]"), tuple(sorted(gres.items())))


def _total(pod: Object) -> Amounts:
    spec = pod["spec"]
    running: Amounts = {}
    for number, container in enumerate(spec.get("containers") or ()):
        _add(running, _asked(container, f"spec.containers[{number}]"))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for number, container in enumerate(spec.get("initContainers") or ()):
        own = _asked(container, f"spec.initContainers[{number}]")
        if container.get("restartPolicy") == "Always":
            _add(sidecars, own)
            _raise(starting, sidecars)
        else:
            _add(own, sidecars)
            _raise(starting, own)
    _add(running, sidecars)
    _raise(running, starting)
    for name, amount in _asked(spec, "spec").items():
        if name in {"cpu", "memory"}:
            running[name] = amount
    overhead = {name: number_of(text, f"spec.overhead[{name[:100]}]") for name, text in _items(spec.get("overhead"))}
    _add(running, overhead)
    return running


def _asked(container: Mapping[str, Any], path: str) -> Amounts:
    """Requests and, for what has none, limits, as the API server does."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: number_of(text, f"{path}.resources.requests[{name[:100]}]") for name, text in _items(asked)}


def _items(found: object) -> list[tuple[str, Any]]:
    return list(found.items()) if isinstance(found, dict) else []


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal(0)) + amount


def _raise(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, Decimal(0)), amount)
