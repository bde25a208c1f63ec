"""How many pods a NodeSet has, which of them are where they may be, and which slots are free.

With ordinals there is always a free slot, and the lowest free numbers come first. With one pod on each matching Node
the Nodes decide: those that match are filled in the order of their weight, then of their names, as many as `replicas`
says. An existing pod is not moved because a better Node has come; it is removed when its Node no longer matches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.nodeset.model import claims
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods import pod_names, scheduling
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.model.pods.scheduling import Fit
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement import pinning
from slinky_operator.slurm.pod_templates.shapes import POD_TEMPLATE, misfits


@dataclass(frozen=True, slots=True)
class Layout:
    """The current and the wanted slots of pods."""

    desired: int | None
    """Desired number of pods; None if it is not known, and nothing may change."""
    staying: tuple[Member, ...] = ()
    """Pods that are where they may be. Among equals the first are deleted first if there are too many."""
    misplaced: tuple[Member, ...] = ()
    """Pods whose Node no longer matches."""
    free: tuple[PodSlot, ...] = ()
    """Free slots, in the order of use; there may be more than are wanted."""
    missing: int = 0
    """How many pods to add."""
    waiting: frozenset[str] = frozenset()
    """Names of pods that would be recreated if their Node accepted new ones."""
    conflicts: Mapping[str, str] = field(default_factory=dict)
    """Nodes that are skipped because no pod there can have their name, and why."""

    @property
    def able(self) -> int:
        """How many pods there can be: those desired, without those whose names somebody else owns for good."""
        return 0 if self.desired is None else min(self.desired, len(self.staying) + len(self.free))

    @property
    def excess(self) -> int:
        """How many of the staying pods are surplus."""
        return 0 if self.desired is None else max(0, len(self.staying) - self.desired)

    @property
    def awaited(self) -> frozenset[str]:
        """Names of pods that do not exist and may be created: what is kept for them is still wanted.

        While any is missing these are all free slots, since a name that somebody else owns is skipped.
        """
        return self.waiting | {place.pod for place in self.free if self.missing}


def is_fixed_otherwise(nodeset: NodeSet) -> bool:
    """Whether the spec names another mode than the one that was fixed when the NodeSet was first seen."""
    return nodeset.spec.scaling_mode not in {None, nodeset.mode}


def lay_out(snapshot: Snapshot, live: Sequence[Member]) -> Layout:
    """Return the current and the wanted slots of pods.

    Parameters
    ----------
    snapshot
        The snapshot.
    live
        The pods that are neither being deleted nor ended.
    """
    nodeset = snapshot.nodeset
    if nodeset.deleting or (snapshot.cluster.deleting and not snapshot.cluster.external):
        return Layout(0, tuple(live))
    if is_fixed_otherwise(nodeset):
        return Layout(None, tuple(live))
    if nodeset.mode is ScalingMode.STATEFUL_SET:
        return _numbered(snapshot, live)
    if snapshot.hosts is None:
        return Layout(None, tuple(live))
    return _on_hosts(snapshot, snapshot.hosts, live)


def _numbered(snapshot: Snapshot, live: Sequence[Member]) -> Layout:
    nodeset = snapshot.nodeset
    desired = nodeset.spec.replicas if nodeset.spec.replicas is not None else nodeset.spec.replicas_if_unset
    missing = max(0, desired - len(live))
    held = {one.pod.ordinal for one in live if one.pod.ordinal is not None}
    numbers = claims.next_ordinals(nodeset, snapshot.claims, held, missing)
    pinned = pinning.known(nodeset)
    found = [pod_names.of_ordinal(nodeset, number, pinned.get(str(number), "")) for number in numbers]
    # A name that another NodeSet owns is skipped, not replaced: there is no other for that ordinal. One that is being
    # deleted gives its name back (`creation`).
    owned = snapshot.cluster.node_sets - snapshot.cluster.leaving
    taken = {place.pod: _named_like(place) for place in found if place.node in owned}
    free = tuple(place for place in found if place.pod not in taken)
    return Layout(desired, tuple(live), free=free, missing=missing, waiting=frozenset(taken), conflicts=taken)


def _named_like(place: PodSlot) -> str:
    """Why a slot is left empty whose node would have the name of a NodeSet."""
    return (
        f"pod {place.pod} is not created: NodeSet {place.node}, which existed before, has its name, and Slurm accepts "
        "no node with the name of a NodeSet. Recreate one of the two under another name, or scale below this ordinal"
    )


def pod_spec_of(nodeset: NodeSet) -> Mapping[str, Any]:
    """The pod of the template. One of the wrong shape is not read: no pod is created from it, and none moves."""
    template = nodeset.spec.template or {}
    is_readable = next(misfits(template, POD_TEMPLATE), None) is None
    return (template.get("spec") or {}) if is_readable else {}


def _on_hosts(snapshot: Snapshot, hosts: Mapping[str, KubernetesNode], live: Sequence[Member]) -> Layout:
    nodeset = snapshot.nodeset
    pod_spec = pod_spec_of(nodeset)
    fits = {name: scheduling.fit(pod_spec, host) for name, host in hosts.items()}
    staying = [one for one in live if fits.get(one.pod.stands_on, Fit.NO) is not Fit.NO]
    misplaced = [one for one in live if fits.get(one.pod.stands_on, Fit.NO) is Fit.NO]
    taken = {one.pod.stands_on for one in live}
    ordered = sorted(hosts.values(), key=_order)
    rank = {host.name: place for place, host in enumerate(ordered)}
    open_to = [host for host in ordered if fits[host.name] is Fit.RUN and host.name not in taken]
    free, conflicts = _name(snapshot, open_to, (hosts[name] for name in taken if name in hosts))
    eligible = len(staying) + len(open_to)
    limit = nodeset.spec.replicas
    desired = eligible if limit is None else min(limit, eligible)
    missing = desired - len(staying)
    if limit is not None:
        # A pod that is still leaving its Node counts: there are never more than desired.
        missing = min(missing, limit - len(live))
    return Layout(
        desired,
        tuple(sorted(staying, key=lambda one: rank[one.pod.stands_on], reverse=True)),
        tuple(misplaced),
        free,
        max(0, missing),
        frozenset(
            pod_names.pod_name(nodeset, host.node_name)
            for host in ordered
            if fits[host.name] is Fit.STAY or host.name in conflicts
        ),
        conflicts,
    )


def _order(host: KubernetesNode) -> tuple[int, str]:
    return host.weight, host.name


def _name(
    snapshot: Snapshot, open_to: Iterable[KubernetesNode], taken: Iterable[KubernetesNode]
) -> tuple[tuple[PodSlot, ...], dict[str, str]]:
    """The slots on Nodes, and why some have none: somebody else owns their name."""
    nodeset = snapshot.nodeset
    names = {host.node_name: host.name for host in taken}
    free: list[PodSlot] = []
    conflicts: dict[str, str] = {}
    for host in open_to:
        why = _why_unnamed(host, names, snapshot.cluster.node_sets - snapshot.cluster.leaving)
        if why is not None:
            conflicts[host.name] = why
            continue
        names[host.node_name] = host.name
        free.append(PodSlot(pod_names.pod_name(nodeset, host.node_name), host.node_name, host=host.name))
    return tuple(free), conflicts


def _why_unnamed(host: KubernetesNode, names: Mapping[str, str], node_sets: Collection[str]) -> str | None:
    if not pod_names.is_node_name(host.node_name):
        return f"Node {host.name} would be {host.node_name!r} in Slurm, which is not a valid node name"
    if host.node_name in names:
        return f"Nodes {names[host.node_name]} and {host.name} would both be {host.node_name} in Slurm"
    if host.node_name in node_sets:
        return f"Node {host.name} has the name of a NodeSet, which Slurm does not accept for a node"
    return None
