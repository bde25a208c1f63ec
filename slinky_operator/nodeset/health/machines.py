"""Bad machines that are rebooted or deleted: which Nodes these are, and which are given back. Pure.

Tries are counted by `replacement`, as those of pods are. A try cordons the Node and waits until it is empty, for as
long as that takes: only what has been asked for is a try that may be in vain. What has been asked for keeps the cordon
until the machine has another boot id, whatever its conditions say meanwhile: it may reboot at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.nodeset.health import Replace, ReplacePolicy
from slinky_api.v1alpha1.nodeset.status import Replacement
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.machines import BY_HAND, MachineRules, Mark
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.reconcile.text import moment

TAKES: Final = timedelta(minutes=30)
"""How long a machine may take to come back; then its place is given to the next one."""

AGAIN: Final = 10.0
"""Seconds after which it is looked again what keeps a Node from being empty, or whether its machine is back."""

MOST: Final = 8
"""Machines that one pass goes on with: each costs some questions to the API server and to Slurm."""


@dataclass(frozen=True, slots=True)
class MachineSteps:
    """What is to be done about machines."""

    tries: tuple[tuple[str, Mark], ...] = ()
    """Kubernetes Nodes, and what their marks are to say; the status has these tries."""
    shown: frozenset[str] = frozenset()
    """Those of them whose cordon the cache shows: no later look at it takes them for free, whatever they say of their
    health."""
    given_back: tuple[str, ...] = ()
    """Nodes to uncordon."""


def owner(snapshot: Snapshot) -> str:
    """The NodeSet in a mark."""
    return f"{snapshot.nodeset.namespace}/{snapshot.nodeset.name}"


def mark_of(snapshot: Snapshot, record: Replacement, replace: Replace) -> Mark:
    """The mark for a try."""
    return Mark(owner(snapshot), str(replace.policy), record.boot_id, record.last)


def is_same_boot(record: Replacement, host: KubernetesNode | None) -> bool:
    """Whether the machine of a try is still there, and has not started again."""
    return host is not None and host.boot_id == record.boot_id


def shows(host: KubernetesNode | None, mark: Mark) -> bool:
    """Whether the cache shows the cordon for a try."""
    return host is not None and host.cordoned and host.mark == mark


def is_waiting(record: Replacement, host: KubernetesNode | None, mark_owner: str) -> bool:
    """Whether a try has cordoned its Node, and has not asked for anything yet: such a one is no try in vain."""
    if host is None or host.mark is None or not record.boot_id:
        return False
    return host.mark.owner == mark_owner and not host.mark.is_sent and host.boot_id == record.boot_id


def is_marked(record: Replacement, snapshot: Snapshot) -> bool:
    """Whether the Node of a try is in the hands of this NodeSet still: the try is what it is found by."""
    host = snapshot.hosts.get(record.host) if snapshot.hosts is not None else None
    return host is not None and host.mark is not None and host.mark.owner == owner(snapshot)


def why_not(host: KubernetesNode | None, mark_owner: str, rules: MachineRules) -> str:
    """Why no try may begin on a Node; empty if one may."""
    if host is None:
        return "its Kubernetes Node is not known"
    if not rules.fit(host.labels):
        return f"Node {host.name} has not the label {rules.node_label} (nodeLife.nodeLabel of the operator's chart)"
    if not host.boot_id:
        return f"Node {host.name} shows no boot id"
    if host.mark is not None and host.mark.owner != mark_owner:
        return f"the machine of Node {host.name} is in the hands of NodeSet {host.mark.owner}"
    if host.cordoned and host.mark is None:
        return f"Node {host.name} has been cordoned by somebody else: its machine is left alone until it is uncordoned"
    return ""


def why_in_use(member: Member, now: datetime) -> str | None:
    """Why the machine of a slurmd pod may not be rebooted or deleted now, or None if it may; the last check before it.

    Parameters
    ----------
    member
        The pod, of whatever NodeSet, with a fresh answer from Slurm about its node.
    now
        The time; timezone-aware.
    """
    why = pod_state.why_kept(member, now)
    if why is None and member.record is not None and drains.is_foreign(member.record):
        return f"node {member.pod.node_name} is drained by somebody else"
    return why


def given_back(snapshot: Snapshot, live: Iterable[Pod], wanted: Iterable[Pod]) -> tuple[str, ...]:
    """Nodes that this NodeSet has had cordoned, and that are needed no more or whose machines have started again.

    Parameters
    ----------
    live
        Its pods.
    wanted
        Those of them whose machines are to be replaced, or will be: their Nodes are bad.
    """
    if snapshot.machine_rules is None or snapshot.hosts is None:
        return ()
    mark_owner, needed = owner(snapshot), {pod.host for pod in wanted}
    records = snapshot.nodeset.status.replacements or ()
    hosts = (snapshot.hosts.get(name) for name in {pod.host for pod in live} | {one.host for one in records})
    over = [host for host in hosts if host is not None and _is_over(host, mark_owner, is_needed=host.name in needed)]
    return tuple(sorted(host.name for host in over))[:MOST]


def _is_over(host: KubernetesNode, mark_owner: str, *, is_needed: bool) -> bool:
    """Whether the operator has no use for its cordon of a Node any more."""
    mark = host.mark
    if mark is None or mark.owner != mark_owner:
        return False
    has_started = bool(host.boot_id) and host.boot_id != mark.boot_id
    return has_started or (not mark.is_sent and not is_needed)


def late(records: Mapping[str, Replacement], snapshot: Snapshot, now: datetime) -> Iterable[tuple[str, str]]:
    """Nodes whose machines have been asked for and have not started again in time, and what to say of each."""
    for host, mark in _asked_for(records, snapshot):
        begun = moment(mark.began)
        if host.boot_id == mark.boot_id and (begun is None or now - begun >= TAKES):
            text = (
                f"Node {host.name} stays cordoned: {_request(mark)}, and it has not started again. If it never will, "
                f"withdraw the request, {BY_HAND}"
            )
            yield host.name, text


def left(records: Mapping[str, Replacement], snapshot: Snapshot) -> Iterable[tuple[str, str]]:
    """Nodes whose machines have been asked for by a policy that does not act any more, and what to say of each.

    What has been asked for is not taken back with the policy: the machine may reboot at any moment.
    """
    for host, mark in _asked_for(records, snapshot):
        told = f"Node {host.name} stays cordoned: {_request(mark)} under the former policy {mark.policy}"
        if snapshot.machine_rules is None:
            text = (
                f"{told}. The operator no longer acts on machines (nodeLife.namespaces of its chart): once this one "
                f"has started again, {BY_HAND}"
            )
            yield host.name, text
        elif host.boot_id == mark.boot_id:
            text = (
                f"{told}, and may still happen. The operator uncordons the Node once the machine has started again. If "
                f"it never will, withdraw the request, {BY_HAND}"
            )
            yield host.name, text


def _request(mark: Mark) -> str:
    thing = "reboot" if mark.policy == ReplacePolicy.REBOOT else "deletion"
    return f"the {thing} of its machine was asked for at {mark.began}"


def _asked_for(records: Mapping[str, Replacement], snapshot: Snapshot) -> Iterable[tuple[KubernetesNode, Mark]]:
    """Nodes of tries that have this NodeSet's mark of a machine that has been asked for, by name."""
    mark_owner, hosts = owner(snapshot), snapshot.hosts or {}
    for name in sorted(records):
        host = hosts.get(name)
        if host is not None and host.mark is not None and host.mark.owner == mark_owner and host.mark.is_sent:
            yield host, host.mark
