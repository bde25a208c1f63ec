"""Revisions as ControllerRevisions: recorded before a pod is created from one, kept as long as a pod carries it.

Each holds the part of the spec that pods are created from, so that a pod that an update may not reach yet can be
recreated from its revision. An older spec that is applied again finds its revision by its hash; it then becomes the
newest. The objects are owned by the NodeSet and deleted with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube.resources import CONTROLLERREVISIONS, NODESETS
from slinky_operator.nodeset.model.revisions.revision import GENERATOR, Content
from slinky_operator.reconcile.writes.parts import owner_reference


@dataclass(frozen=True, slots=True)
class Recorded:
    """A revision as the API server has it."""

    name: str
    uid: str
    hash: str
    number: int
    """The higher, the newer."""
    content: Content


@dataclass(frozen=True, slots=True)
class RevisionChanges:
    """The writes needed for the revisions of a NodeSet."""

    record: int | None = None
    """Number under which to record the revision of the spec; None if it is recorded."""
    renumber: tuple[Recorded, int] | None = None
    """A revision that becomes the newest again, and its new number."""
    drop: tuple[Recorded, ...] = ()
    """Those beyond the limit, oldest first."""


def name(nodeset: NodeSet, revision: str) -> str:
    """Name of the object that records a revision."""
    return f"{nodeset.name}-{revision}"


def read(obj: Mapping[str, Any]) -> Recorded:
    """Read a ControllerRevision of the NodeSet."""
    metadata = obj["metadata"]
    data = obj.get("data")
    recorded = data.get("spec") if isinstance(data, dict) else None
    return Recorded(
        name=metadata["name"],
        uid=metadata["uid"],
        hash=(metadata.get("labels") or {}).get(labels.LABEL_REVISION) or "",
        number=int(obj.get("revision") or 0),
        content=recorded if isinstance(recorded, dict) else {},
    )


def build(nodeset: NodeSet, revision: str, content: Content, number: int) -> dict[str, Any]:
    """Build the object that records a revision."""
    return {
        "apiVersion": CONTROLLERREVISIONS.api_version,
        "kind": CONTROLLERREVISIONS.kind,
        "metadata": {
            "name": name(nodeset, revision),
            "namespace": nodeset.namespace,
            "labels": {
                labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY,
                labels.LABEL_NODESET_NAME: nodeset.name,
                labels.LABEL_NODESET_UID: nodeset.uid,
                labels.LABEL_REVISION: revision,
            },
            "ownerReferences": [owner_reference(NODESETS, nodeset, blocks=True)],
        },
        "data": {"generator": GENERATOR, "spec": dict(content)},
        "revision": number,
    }


def current(nodeset: NodeSet, revision: str, recorded: Iterable[Recorded]) -> str:
    """Hash of the revision of pods that an update may not reach: the last one that all pods had.

    It is that of the spec if there was none before, or if the earlier one is no longer known.

    Parameters
    ----------
    revision
        Hash of the spec.
    recorded
        The revisions that the API server has.
    """
    stored = nodeset.status.node_set_hash
    return stored if stored and any(one.hash == stored for one in recorded) else revision


def upkeep(
    revision: str, recorded: Sequence[Recorded], *, current: str, carried: Collection[str], limit: int
) -> RevisionChanges:
    """Return the writes needed for the revisions.

    Parameters
    ----------
    revision
        Hash of the spec.
    recorded
        What is recorded.
    current
        Hash of the revision for pods that an update may not reach.
    carried
        Hashes that pods carry, including pods that are being deleted.
    limit
        How many other revisions are kept.
    """
    highest = max((one.number for one in recorded), default=0)
    own = next((one for one in recorded if one.hash == revision), None)
    record = highest + 1 if own is None else None
    renumber = None
    if own is not None and any(one.number >= own.number for one in recorded if one is not own):
        renumber = own, highest + 1
    unused = [one for one in recorded if one.hash not in {revision, current, *carried}]
    unused.sort(key=lambda one: (one.number, one.name))
    return RevisionChanges(record, renumber, tuple(unused[: max(0, len(unused) - limit)]))


@dataclass(frozen=True, slots=True)
class Revision:
    """The wanted revision of pods."""

    hash: str
    """Of the spec."""
    problems: tuple[str, ...] = ()
    """Why no pod can be created from the spec: fields, with reasons."""
    content: Content = field(default_factory=dict)
    """The content that the hash covers."""
    current: str = ""
    """Hash of the revision for pods that an update may not reach; that of the spec if there is no other."""
    recorded: tuple[Recorded, ...] = ()
    """The revisions the API server has."""


def target(place: int, nodeset: NodeSet, revision: Revision) -> str:
    """Hash of the revision that a pod is now created from.

    Parameters
    ----------
    place
        Its ordinal; without ordinals, its place in the order of names.
    nodeset, revision
        The wanted spec, and its revisions.
    """
    strategy = nodeset.spec.update_strategy
    if strategy.type == "OnDelete":
        return revision.hash
    held_back = strategy.rolling_update.paused or place < strategy.rolling_update.partition
    return revision.current or revision.hash if held_back else revision.hash
