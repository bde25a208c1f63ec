"""What happens to claims whose pods were removed by a scale-in: what was retained stays retained.

The policy in the spec applies to the claims of a scale-in that happens *now*. It is written on a claim, as an
annotation, while its pod still exists; the claims of earlier scale-ins keep what was written then. So a later change of
the policy deletes nothing. Once the pod is gone an annotation only ever becomes stricter, and it is removed when the
pod stays or is recreated. A claim without the annotation, or with an invalid one, is never deleted for a scale-in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.nodeset.model import claims
from slinky_operator.nodeset.model.claims import Retention, VolumeClaim
from slinky_operator.nodeset.model.pods import pod_names
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.slurm_nodes.drains import Cause

GONE_FOR_GOOD: Final = frozenset({Cause.SCALE_IN, Cause.NODE_MISMATCH})
"""Causes for which a pod is removed and not recreated."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """What to write on claims, and which to delete."""

    marks: tuple[tuple[VolumeClaim, Retention | None], ...] = ()
    """Claims with their new annotation; None removes it."""
    delete: tuple[VolumeClaim, ...] = ()


def policy(nodeset: NodeSet) -> Retention:
    """Retention of the claims of a scale-in that happens now."""
    given = nodeset.spec.persistent_volume_claim_retention_policy
    if given.when_scaled == "Delete":
        return Retention.DELETE
    return _unknown(nodeset)


def _unknown(nodeset: NodeSet) -> Retention:
    """Retention of a claim without a record of how its pod was removed."""
    given = nodeset.spec.persistent_volume_claim_retention_policy
    return Retention.WITH_NODESET if given.when_deleted == "Delete" else Retention.RETAIN


def settle(
    snapshot: Snapshot, layout: Layout, live: Collection[str], causes: Mapping[str, frozenset[Cause]]
) -> Keeping:
    """Return what to write on claims, and which to delete.

    Parameters
    ----------
    snapshot, layout
        The snapshot, and the slots of pods.
    live
        Names of the pods that are neither being deleted nor ended.
    causes
        The causes for which the node of each pod is drained, by name of the pod.
    """
    nodeset = snapshot.nodeset
    if layout.desired is None or nodeset.deleting or snapshot.cluster.deleting or not snapshot.claims:
        return Keeping()
    now = policy(nodeset)
    # Pods that were taken over may have other names than those that will replace them.
    named = [(name, pod) for pod in snapshot.pods for name in {pod.name, pod_names.pod_name(nodeset, pod.node_name)}]
    standing = {_place(nodeset, name) for name, _ in named}
    staying = {_place(nodeset, name) for name, pod in named if pod.name in live}
    leaving = {
        _place(nodeset, name)
        for name, pod in named
        if pod.name in live and causes.get(pod.name, frozenset()) & GONE_FOR_GOOD
    }
    awaited = {_place(nodeset, name) for name in layout.awaited}
    # The claims decide which ordinals are used again, and their cache may be outdated: a seemingly surplus claim may be
    # the one that the next pod uses.
    is_open = bool(layout.missing) and nodeset.mode is ScalingMode.STATEFUL_SET
    # Without Slurm it is not known which pods are surplus.
    is_blind = bool(layout.excess) and not snapshot.slurm.readable
    marks: list[tuple[VolumeClaim, Retention | None]] = []
    delete: list[VolumeClaim] = []
    for claim in snapshot.claims:
        # A claim without a pod's name was not created here: its owner is not known.
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


def goes_with_nodeset(nodeset: NodeSet, claim: VolumeClaim) -> bool:
    """Whether a claim is deleted with its NodeSet; its pods are gone."""
    given = nodeset.spec.persistent_volume_claim_retention_policy
    return given.when_deleted == "Delete" and claim.retention is not Retention.RETAIN


def _place(nodeset: NodeSet, pod: str) -> int | str:
    """The ordinal in the name of a pod, however many digits it has; the name if there is none."""
    number = pod_names.ordinal(nodeset.name, pod)
    return number if number is not None else pod
