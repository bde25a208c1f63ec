"""The steps for pods that need no answer from Slurm, and for what outlives pods: revisions and claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from slinky_operator.nodeset.disruption import eviction, repairs
from slinky_operator.nodeset.disruption.repairs import UnregisteredPod
from slinky_operator.nodeset.drain import pod_condition
from slinky_operator.nodeset.model import actions, pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_state import State
from slinky_operator.nodeset.model.pods.pod_facts import Slurmd
from slinky_operator.nodeset.model.revisions import revision_records
from slinky_operator.nodeset.model.revisions.revision_records import RevisionChanges
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement.claim_retention import Keeping
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause


def delete_all(snapshot: Snapshot) -> list[actions.Action]:
    """Delete every pod at once, whatever holds its node."""
    going = tuple(pod for pod in snapshot.pods if not pod.deleting)
    blind = "" if snapshot.slurm.readable else snapshot.slurm.why
    return [actions.DeletePods(going, forced=True, blind=blind)] if going else []


def deletions_without_slurm(
    snapshot: Snapshot, live: Sequence[Member], causes: Mapping[str, frozenset[Cause]]
) -> list[actions.Action]:
    """Delete pods that have ended, and those to be removed in which no slurmd has run."""
    ended = tuple(pod for pod in snapshot.pods if pod.slurmd is Slurmd.ENDED and not pod.deleting)
    never = tuple(
        pod
        for pod in (member.pod for member in live)
        if causes.get(pod.name, frozenset()) & drains.REMOVAL
        and pod_state.may_delete_without_slurm(pod)
        # If the pod is bound and Slurm can be asked, Slurm is asked.
        and not (snapshot.slurm.readable and pod.bound)
    )
    return [actions.DeleteIdlePods((*ended, *never))] if ended or never else []


def protections(
    snapshot: Snapshot, live: Sequence[Member], states: Mapping[str, State], causes: Mapping[str, frozenset[Cause]]
) -> list[actions.Action]:
    """Pods to add to the PodDisruptionBudget, and pods that may be removed from it."""
    pods = [member.pod for member in live]
    wanted = {
        pod.name: eviction.is_wanted(snapshot.nodeset, states[pod.name], causes.get(pod.name, frozenset()))
        for pod in pods
    }
    protect = tuple(pod for pod in pods if wanted[pod.name] and not pod.protected)
    lift = tuple(pod for pod in pods if pod.protected and not wanted[pod.name])
    return [*([actions.Protect(protect)] if protect else []), *([actions.Unprotect(lift)] if lift else [])]


def adoptions(snapshot: Snapshot, live: Sequence[Member]) -> list[actions.Action]:
    """Pods without the labels of the existing Cluster: it was recreated under its name, or they are older.

    The Cluster's PodDisruptionBudget selects them already, by its name; so nothing waits for this.
    """
    cluster, name = snapshot.cluster, snapshot.nodeset.spec.cluster_name
    if not cluster.exists:
        return []
    found = tuple(one.pod for one in live if one.pod.cluster_labels != (cluster.uid, name))
    return [actions.Adopt(found)] if found else []


def showings(
    snapshot: Snapshot, live: Sequence[Member], states: Mapping[str, State], planned: Sequence[actions.Action]
) -> list[actions.Action]:
    """What to show on pods of their nodes; not needed for pods deleted now."""
    if not snapshot.slurm.readable:
        return []
    going = {
        pod.name for action in planned if isinstance(action, actions.DeletePods | actions.Repair) for pod in action.pods
    }
    changes = [pod_condition.change(member, states[member.name]) for member in live if member.name not in going]
    found = tuple(change for change in changes if change is not None)
    return [actions.Show(found)] if found else []


def announcements(snapshot: Snapshot, waits: Mapping[str, UnregisteredPod], now: datetime) -> list[actions.Action]:
    """When pods are recreated, to be written on them."""
    found = repairs.announcements(snapshot, waits, now)
    return [actions.Announce(found)] if found else []


def revision_changes(snapshot: Snapshot) -> RevisionChanges:
    """Which revisions to record and to drop; none while no pod can be created."""
    nodeset, revision = snapshot.nodeset, snapshot.revision
    if nodeset.deleting or revision.problems:
        return RevisionChanges()
    return revision_records.upkeep(
        revision.hash,
        revision.recorded,
        current=revision.current,
        carried={pod.revision for pod in snapshot.pods},
        limit=nodeset.spec.revision_history_limit,
    )


def record_revisions(changes: RevisionChanges) -> list[actions.Action]:
    """Revisions to record before pods are created."""
    record: list[actions.Action] = [actions.RecordRevision(changes.record)] if changes.record is not None else []
    if changes.renumber is not None:
        record.append(actions.RenumberRevision(*changes.renumber))
    return record


def drop_revisions(changes: RevisionChanges) -> list[actions.Action]:
    """Revisions to drop."""
    return [actions.DropRevisions(changes.drop)] if changes.drop else []


def mark_claims(claims: Keeping) -> list[actions.Action]:
    """What to write on claims."""
    return [actions.MarkClaims(claims.marks)] if claims.marks else []


def delete_claims(claims: Keeping) -> list[actions.Action]:
    """Claims to delete."""
    return [actions.DeleteClaims(claims.delete)] if claims.delete else []
