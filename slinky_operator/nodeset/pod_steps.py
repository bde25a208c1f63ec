"""What a plan does to pods without asking Slurm, and to what outlives them: revisions and claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slinky_api.v1alpha1.nodeset import ScalingMode
from slinky_operator.nodeset import claims, drain, history, places, podstate, protection, shown
from slinky_operator.nodeset.actions import (
    Action,
    DeleteClaims,
    DeleteIdlePods,
    DeletePods,
    DropRevisions,
    Protect,
    RecordRevision,
    RenumberRevision,
    Repair,
    Show,
    Unprotect,
)
from slinky_operator.nodeset.drain import Cause
from slinky_operator.nodeset.facts import Pod, Slurmd
from slinky_operator.nodeset.layout import Layout
from slinky_operator.nodeset.podstate import State
from slinky_operator.nodeset.snapshot import Snapshot


def delete_all(snapshot: Snapshot) -> list[Action]:
    """Every pod at once, whatever holds its node."""
    going = tuple(pod for pod in snapshot.pods if not pod.deleting)
    return [DeletePods(going, forced=True)] if going else []


def deletions_without_slurm(
    snapshot: Snapshot, live: Sequence[Pod], causes: Mapping[str, frozenset[Cause]]
) -> list[Action]:
    """Pods that have ended, and those to be removed in which no slurmd has run."""
    ended = tuple(pod for pod in snapshot.pods if pod.slurmd is Slurmd.ENDED and not pod.deleting)
    never = tuple(
        pod
        for pod in live
        if causes.get(pod.name, frozenset()) & drain.REMOVAL
        and podstate.is_free_blindly(pod)
        # Where a kubelet has the pod and Slurm can be asked, it is.
        and not (snapshot.slurm.readable and pod.bound)
    )
    return [DeleteIdlePods((*ended, *never))] if ended or never else []


def protections(
    snapshot: Snapshot, live: Sequence[Pod], states: Mapping[str, State], causes: Mapping[str, frozenset[Cause]]
) -> list[Action]:
    """Pods that are to come into the PodDisruptionBudget, and those that may leave it."""
    wanted = {
        pod.name: protection.is_wanted(snapshot.nodeset, states[pod.name], causes.get(pod.name, frozenset()))
        for pod in live
    }
    protect = tuple(pod for pod in live if wanted[pod.name] and not pod.protected)
    lift = tuple(pod for pod in live if pod.protected and not wanted[pod.name])
    return [*([Protect(protect)] if protect else []), *([Unprotect(lift)] if lift else [])]


def showings(
    snapshot: Snapshot, live: Sequence[Pod], states: Mapping[str, State], actions: Sequence[Action]
) -> list[Action]:
    """What pods are to show of their nodes; those that go now need not."""
    if not snapshot.slurm.readable:
        return []
    going = {pod.name for action in actions if isinstance(action, DeletePods | Repair) for pod in action.pods}
    nodes = snapshot.slurm.nodes
    changes = [shown.change(pod, nodes.get(pod.node_name), states[pod.name]) for pod in live if pod.name not in going]
    found = tuple(one for one in changes if one is not None)
    return [Show(found)] if found else []


def upkeep(snapshot: Snapshot) -> tuple[list[Action], list[Action]]:
    """What is to be recorded of revisions before pods are made, and forgotten after; nothing while none can be made."""
    nodeset, revision = snapshot.nodeset, snapshot.revision
    if nodeset.deleting or revision.problems:
        return [], []
    found = history.upkeep(
        revision.hash,
        revision.recorded,
        current=revision.current,
        carried={pod.revision for pod in snapshot.pods},
        limit=nodeset.spec.revision_history_limit,
    )
    record: list[Action] = [RecordRevision(found.record)] if found.record is not None else []
    if found.renumber is not None:
        record.append(RenumberRevision(*found.renumber))
    return record, [DropRevisions(found.drop)] if found.drop else []


def claims_to_delete(snapshot: Snapshot, layout: Layout) -> list[Action]:
    """Claims of pods that went with a scale-in, where the spec wants them to go; those of a deletion go last of all."""
    nodeset = snapshot.nodeset
    if nodeset.spec.persistent_volume_claim_retention_policy.when_scaled != "Delete":
        return []
    if layout.desired is None or nodeset.deleting or not snapshot.cluster.exists or snapshot.cluster.deleting:
        return []
    if layout.missing and nodeset.mode is ScalingMode.STATEFUL_SET:
        # Which ordinals come back the claims tell, and their cache may be behind: what seems left over may be what the
        # next pod comes back to.
        return []
    # Pods that were taken over may have other names than those that will come after them.
    standing = {name for pod in snapshot.pods for name in (pod.name, places.pod_name(nodeset, pod.node_name))}
    left = claims.left_over(nodeset, snapshot.claims, standing, layout.awaited)
    return [DeleteClaims(left)] if left else []
