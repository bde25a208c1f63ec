"""Claims that StatefulSets have made: which settings of `persistence` can still be carried out, and what grows. Pure.

Kubernetes lets nobody change `volumeClaimTemplates`, and refuses every other change of a StatefulSet beside such a one.
So a StatefulSet keeps the templates that it was created with: a pass plans with the settings that they have, and
reports the others (`feasible`). A larger size is given to the claim itself (`grow_claims`). No claim is ever replaced,
and no pod is restarted for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from slinky_api.v1alpha1.common import Persistence
from slinky_operator.cluster.actions import Action, GrowClaim
from slinky_operator.cluster.daemons.claim_templates import is_generated
from slinky_operator.cluster.daemons.component import Component
from slinky_operator.cluster.memory.writes import ClaimSize
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts import daemons
from slinky_operator.cluster.parts.claims.part import Claims
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.children import quantity
from slinky_operator.slurm import naming

AGAIN: Final = 60.0
"""Seconds until a claim is looked at again that has not grown yet."""

LOOK_AGAIN: Final = 600.0
"""Seconds until any other claim is looked at again: one that was deleted is made again with its first size."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that a daemon has, or will have."""

    name: str
    field: str
    """Its settings in the spec."""

    size: str
    """That the spec asks for."""

    created: str
    """Size in the template that it is made of."""

    labels: Mapping[str, str]
    """That Kubernetes gives it."""


def feasible(snapshot: Snapshot) -> tuple[Snapshot, Claims]:
    """The snapshot with the settings of claims that can be carried out, and why others cannot."""
    cluster = snapshot.cluster
    told: list[str] = []
    if cluster.spec.external:
        return snapshot, Claims(snapshot)
    for daemon in daemons.wanted(cluster):
        wanted, live = daemon.persistence(cluster), snapshot.children.get(daemon.key(cluster))
        if wanted is None or live is None:
            continue
        made = _as_made(live, daemon)
        told += [
            f"{daemon.persistence_field}.{name}: {why}" for name, why in _differences(snapshot, daemon, wanted, made)
        ]
        if is_generated(wanted) or is_generated(made):
            kept = made.model_copy(update={"when_deleted": wanted.when_deleted})
            cluster = daemon.with_persistence(cluster, kept)
    changed = snapshot if cluster is snapshot.cluster else replace(snapshot, cluster=cluster)
    return changed, Claims(snapshot, tuple(told))


def grow_claims(state: PassState) -> Iterator[Action]:
    """Make claims larger whose size has been raised, and note what comes of it."""
    now, known, so_far = state.now, state.snapshot.memory.writes.claims, state.found(Claims)
    refused, growing = list(so_far.refused), list(so_far.growing)
    for claim in claims(so_far.asked or state.snapshot, state.snapshot):
        found = known.get(claim.name)
        if found is not None and found.wanted == claim.size:
            refused += _troubles(claim, found)
            growing += _waiting(claim, found)
        pause = AGAIN if found is not None and (found.why or found.is_growing) else LOOK_AGAIN
        if found is None or found.wanted != claim.size or now - found.at >= pause:
            yield GrowClaim(claim.name, claim.size, claim.labels)
        else:
            state.wake_up(pause - (now - found.at))
    state.note(replace(so_far, refused=tuple(refused), growing=tuple(growing)))


def claims(asked: Snapshot, snapshot: Snapshot) -> Iterator[Claim]:
    """Claims that StatefulSets have made.

    Parameters
    ----------
    asked
        With the settings of the spec.
    snapshot
        With those that can be carried out.
    """
    for daemon in daemons.wanted(snapshot.cluster):
        wanted, made = daemon.persistence(asked.cluster), daemon.persistence(snapshot.cluster)
        if wanted is None or made is None or not is_generated(made):
            continue
        if snapshot.cluster.deleting or daemon.key(snapshot.cluster) not in snapshot.children:
            continue
        size = str(wanted.size if is_generated(wanted) else made.size)
        labels = naming.selector_labels(snapshot.cluster, daemon.component)
        yield Claim(daemon.claim_name(snapshot.cluster), daemon.persistence_field, size, str(made.size), labels)


# What a StatefulSet was made with


def _as_made(live: Object, daemon: Component) -> Persistence:
    """The settings by which a StatefulSet was created."""
    volume = daemon.state_volume
    for template in live["spec"].get("volumeClaimTemplates") or ():
        if template["metadata"]["name"] == volume:
            about, spec = template["metadata"], template["spec"]
            # Somebody else may have written it: nothing here is checked.
            return Persistence.model_construct(
                storage_class_name=spec.get("storageClassName"),
                access_modes=tuple(spec.get("accessModes") or ()),
                size=_size(spec),
                labels=about.get("labels") or {},
                annotations=about.get("annotations") or {},
            )
    for one in live["spec"]["template"]["spec"].get("volumes") or ():
        if one["name"] == volume and one.get("persistentVolumeClaim"):
            return Persistence.model_construct(existing_claim=one["persistentVolumeClaim"]["claimName"])
    return Persistence(enabled=False)


def _size(spec: Mapping[str, Any]) -> str:
    return str(((spec.get("resources") or {}).get("requests") or {}).get("storage") or "0")


def _differences(
    snapshot: Snapshot, daemon: Component, wanted: Persistence, made: Persistence
) -> Iterator[tuple[str, str]]:
    """Settings that cannot be carried out any more, and why."""
    claim, owner = daemon.claim_name(snapshot.cluster), daemon.key(snapshot.cluster)[1]
    if is_generated(wanted) != is_generated(made):
        field = "enabled" if wanted.enabled != made.enabled else "existingClaim"
        kept = f"claim {claim}" if is_generated(made) else _place(made)
        orphan = f"kubectl -n {snapshot.cluster.namespace} delete statefulset {owner} --cascade=orphan"
        why = (
            f"{daemon.daemon} keeps its state where it is, on {kept}: Kubernetes does not allow adding or removing "
            f"the claim of a StatefulSet. Undo the change; or copy the state and run {orphan}: {daemon.daemon} is then "
            "started with the new setting, and knows only what it finds there"
        )
        yield field, why
        return
    if not is_generated(made):
        return
    if wanted.storage_class_name != made.storage_class_name:
        had = made.storage_class_name or "the default class"
        yield "storageClassName", f"claim {claim} was made with {had} and keeps it: {_ONLY_NEW}"
    if set(wanted.access_modes) != set(made.access_modes):
        yield "accessModes", f"claim {claim} was made with {', '.join(made.access_modes)} and keeps it: {_ONLY_NEW}"
    for name, verb in (("labels", "label"), ("annotations", "annotate")):
        if dict(getattr(wanted, name)) != dict(getattr(made, name)):
            change = f"kubectl -n {snapshot.cluster.namespace} {verb} pvc {claim}"
            yield name, f"claim {claim} exists and keeps its own: {change} changes them"


_ONLY_NEW: Final = "only a claim that does not exist yet can have another"


def _place(made: Persistence) -> str:
    return f"claim {made.existing_claim}" if made.existing_claim is not None else "an emptyDir"


# What has come of a larger size


def _troubles(claim: Claim, found: ClaimSize) -> Iterator[str]:
    if found.why:
        yield f"{claim.field}.size: claim {claim.name} has {found.size}, and cannot have {claim.size}: {found.why}"
        return
    asked, least = quantity(claim.size), max(quantity(one) or 0 for one in (claim.created, found.grown))
    if found.size and asked is not None and asked < least:
        yield f"{claim.field}.size: claim {claim.name} has {found.size}, and a claim cannot shrink to {claim.size}"


def _waiting(claim: Claim, found: ClaimSize) -> Iterator[str]:
    if found.is_growing and not found.why:
        said = f": {found.said}" if found.said else ""
        yield f"claim {claim.name} has {found.capacity} of {found.size}: it waits for the volume plugin{said}"
