"""Whether the slurmctld that slurmdbd has for a Cluster is the Cluster's own. Pure.

slurmdbd keeps the address at which the slurmctld of a `ClusterName` has registered last. A new pod of slurmctld has
another address, and registers some seconds after its start: until then slurmdbd has that of an earlier pod. So another
address alone proves nothing. It is that of another cluster of the same name if none of this Cluster's slurmctlds has
had it, after this one has registered, and in two answers, since the cache may show an earlier pod.

The addresses that slurmdbd has had are kept in the status, where the next leader finds them.
"""

from __future__ import annotations

from typing import Final

from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import variants
from slinky_operator.cluster.parts.accounting.question import last_answer

MOST: Final = 8
"""Addresses that are kept."""


def kept(snapshot: Snapshot) -> tuple[str, ...]:
    """The addresses of this Cluster's slurmctld that slurmdbd has had, the last one first."""
    before = snapshot.cluster.status.slurmctld_addresses
    if not variants.runs_slurmdbd(snapshot.cluster):
        return ()
    address = _registered(snapshot)
    if address not in _own(snapshot):
        return before
    return (address, *(one for one in before if one != address))[:MOST]


def awaited(snapshot: Snapshot) -> str:
    """That this Cluster's slurmctld has not registered with its address yet; empty if it has, or has none."""
    own, address = _own(snapshot), _registered(snapshot)
    if not variants.runs_slurmdbd(snapshot.cluster) or not own or address in own or is_taken(snapshot):
        return ""
    whose = ", that of an earlier pod" if address in kept(snapshot) else ""
    return (
        f"slurmctld has not registered with slurmdbd from its address {own[0]} yet; slurmdbd has {address}{whose}. It "
        "does so within seconds of its start; if this lasts, its log says why"
    )


def is_taken(snapshot: Snapshot) -> bool:
    """Whether another slurmctld has registered under this Cluster's name after its own had."""
    own, address, answer = _own(snapshot), _registered(snapshot), last_answer(snapshot.memory.answers)
    known = kept(snapshot)
    if not variants.runs_slurmdbd(snapshot.cluster) or address in (*own, *known):
        return False
    return answer is not None and bool(address) and answer.again and any(one in known for one in own)


def taken(snapshot: Snapshot) -> str:
    """What is said about such a slurmctld."""
    name, own = snapshot.cluster.slurm_name, _own(snapshot)
    return (
        f"slurmdbd has a slurmctld at {_registered(snapshot)} as that of cluster {name}, not this Cluster's "
        f"({', '.join(own)}), which had registered: two clusters of one name use one database. Give the cluster that "
        "was added last a database of its own"
    )


def _registered(snapshot: Snapshot) -> str:
    answer = last_answer(snapshot.memory.answers)
    return answer.controller if answer is not None else ""


def _own(snapshot: Snapshot) -> tuple[str, ...]:
    """The addresses of slurmctld's pod; of both families, if it has them."""
    status = (snapshot.pods.controller or {}).get("status") or {}
    found = [str(one.get("ip") or "") for one in status.get("podIPs") or ()]
    return tuple(dict.fromkeys(one for one in (str(status.get("podIP") or ""), *found) if one))
