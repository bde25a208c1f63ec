"""Which Clusters may have virtual Nodes, and whose a host name is. Pure.

Nodes belong to no namespace: their names are everybody's. So the operator's settings name the Clusters that may make
any, and of two that want one host name the older has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from slinky_operator.kube.cache.store import Key, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.settings import ALL


def host_of(obj: Object) -> str | None:
    """The host name that a Cluster wants; None if it wants no virtual Nodes. It may not have been parsed yet."""
    spec = obj.get("spec")
    jobs = spec.get("jobs") if isinstance(spec, dict) else None
    wanted = jobs.get("virtualNodes") if isinstance(jobs, dict) else None
    host = wanted.get("host") if isinstance(wanted, dict) else None
    return host if isinstance(host, str) else None


def is_allowed(key: Key, allowed: Collection[str]) -> bool:
    """Whether the settings let a Cluster have virtual Nodes."""
    return ALL in allowed or "/".join(key) in allowed


def holder_of(host: str, clusters: Iterable[Object], allowed: Collection[str]) -> Key | None:
    """The Cluster that has a host name: the oldest of those that want it and may."""
    wanting = [obj for obj in clusters if host_of(obj) == host and is_allowed(key_of(obj), allowed)]
    return min(map(_age, wanting))[1] if wanting else None


def _age(obj: Object) -> tuple[str, Key]:
    return str(obj["metadata"].get("creationTimestamp") or ""), key_of(obj)
