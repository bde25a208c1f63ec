"""What becomes of claims whose pods went with a scale-in: what was kept stays kept.

The policy of the spec says what becomes of the claims of a scale-in that happens *now*. It is written on a claim, as
an annotation, while its pod is still there; the claims of earlier scale-ins keep what was written then. So a policy
that changes later erases nothing. A mark only ever becomes stricter once the pod is gone, and comes off when the pod
stays or comes back. A claim without a mark, or with one that cannot be read, is never deleted for a scale-in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from slinky_api.v1alpha1.nodeset import NodeSet, ScalingMode
from slinky_operator.nodeset.model import claims, pod_names
from slinky_operator.nodeset.model.claims import Claim, Retention
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.slurm_nodes.drains import Cause

_GONE_FOR_GOOD: Final = frozenset({Cause.SCALE_IN, Cause.NODE_MISMATCH})
"""What a pod goes for and does not come back from."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """What is to be written on claims, and which go."""

    marks: tuple[tuple[Claim, Retention | None], ...] = ()
    """Claims with what is to stand on them; None takes the mark off."""
    delete: tuple[Claim, ...] = ()


def policy(nodeset: NodeSet) -> Retention:
    """What becomes of the claims of a scale-in that happens now."""
    given = nodeset.spec.persistent_volume_claim_retention_policy
    if given.when_scaled == "Delete":
        return Retention.DELETE
    return _unknown(nodeset)


def _unknown(nodeset: NodeSet) -> Retention:
    """What becomes of a claim of which nobody wrote down how its pod went."""
    given = nodeset.spec.persistent_volume_claim_retention_policy
    return Retention.WITH_NODESET if given.when_deleted == "Delete" else Retention.RETAIN


def settle(
    snapshot: Snapshot, layout: Layout, live: Collection[str], causes: Mapping[str, frozenset[Cause]]
) -> Keeping:
    """Tell what is to be written on claims, and which go.

    Parameters
    ----------
    snapshot, layout
        Everything known, and where pods are to stand.
    live
        Names of the pods that are neither ending nor over.
    causes
        What the node of each pod is to be drained for, by name of the pod.
    """
    nodeset = snapshot.nodeset
    if layout.desired is None or nodeset.deleting or snapshot.cluster.deleting:
        return Keeping()
    now = policy(nodeset)
    # Pods that were taken over may have other names than those that will come after them.
    named = [(name, pod) for pod in snapshot.pods for name in {pod.name, pod_names.pod_name(nodeset, pod.node_name)}]
    standing = {_place(nodeset, name) for name, _ in named}
    staying = {_place(nodeset, name) for name, pod in named if pod.name in live}
    leaving = {
        _place(nodeset, name)
        for name, pod in named
        if pod.name in live and causes.get(pod.name, frozenset()) & _GONE_FOR_GOOD
    }
    awaited = {_place(nodeset, name) for name in layout.awaited}
    # Which ordinals come back the claims tell, and their cache may be behind: what seems left over may be what the
    # next pod comes back to.
    is_open = bool(layout.missing) and nodeset.mode is ScalingMode.STATEFUL_SET
    # With Slurm out of sight nobody can say which pods are too many.
    is_blind = bool(layout.excess) and not snapshot.slurm.readable
    marks: list[tuple[Claim, Retention | None]] = []
    delete: list[Claim] = []
    for claim in snapshot.claims:
        # One that names no pod was not made here: nobody can say whose it is.
        if claim.deleting or not claim.pod:
            continue
        place = _place(nodeset, claim.pod)
        wanted = claim.retention
        if place in leaving:
            wanted = now
        elif place in awaited or (place in staying and not is_blind):
            wanted = None
        elif claim.retention is not None:
            wanted = claims.stricter(claim.retention, now)
        elif place not in standing and not is_open:
            wanted = _unknown(nodeset)
        if wanted is not claim.retention:
            marks.append((claim, wanted))
        elif wanted is Retention.DELETE and place not in standing and not is_open and snapshot.cluster.exists:
            delete.append(claim)
    return Keeping(tuple(marks), tuple(delete))


def goes_with_nodeset(nodeset: NodeSet, claim: Claim) -> bool:
    """Whether a claim is deleted with its NodeSet; its pods are gone."""
    given = nodeset.spec.persistent_volume_claim_retention_policy
    return given.when_deleted == "Delete" and claim.retention is not Retention.RETAIN


def _place(nodeset: NodeSet, pod: str) -> int | str:
    """The ordinal in the name of a pod, however many digits it is written with; the name where there is none."""
    number = pod_names.ordinal(nodeset.name, pod)
    return number if number is not None else pod
