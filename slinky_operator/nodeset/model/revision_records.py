"""Revisions as ControllerRevisions: recorded before a pod is made from one, kept as long as a pod carries it.

Each holds the part of the spec that pods are made from, so that a pod which an update is not to reach yet can be made
anew as it was. An older spec that is applied again finds its revision by its hash, which then becomes the newest. The
objects belong to the NodeSet and go with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slinky_api import labels
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.kube.resources import CONTROLLERREVISIONS, NODESETS
from slinky_operator.nodeset.model.revision import GENERATOR, Content


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
    """What is to be done about the revisions of a NodeSet."""

    record: int | None = None
    """Number under which the revision of the spec is to be recorded; None if it is."""
    renumber: tuple[Recorded, int] | None = None
    """A revision that is the newest again, and its new number."""
    drop: tuple[Recorded, ...] = ()
    """Those beyond the limit, the oldest first."""


def name(nodeset: NodeSet, revision: str) -> str:
    """Name of the object that records a revision."""
    return f"{nodeset.name}-{revision}"


def read(obj: Mapping[str, Any]) -> Recorded:
    """Read a ControllerRevision of ours."""
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
    """Make the object that records a revision."""
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
            "ownerReferences": [
                {
                    "apiVersion": NODESETS.api_version,
                    "kind": NODESETS.kind,
                    "name": nodeset.name,
                    "uid": nodeset.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "data": {"generator": GENERATOR, "spec": dict(content)},
        "revision": number,
    }


def current(nodeset: NodeSet, revision: str, recorded: Iterable[Recorded]) -> str:
    """Hash of the revision that pods have which an update is not to reach: the last one that all of them had.

    It is the spec's own where there was none before, or where it can no longer be told what that one was.
    """
    stored = nodeset.status.node_set_hash
    return stored if stored and any(one.hash == stored for one in recorded) else revision


def upkeep(
    revision: str, recorded: Sequence[Recorded], *, current: str, carried: Collection[str], limit: int
) -> RevisionChanges:
    """Tell what is to be done about the revisions.

    Parameters
    ----------
    revision
        Hash of the spec.
    recorded
        What is recorded.
    current
        Hash of the revision for pods that an update is not to reach.
    carried
        Hashes that pods carry, those of pods on their way out too.
    limit
        How many others are kept.
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
    """What the pods are to be."""

    hash: str
    """Of the spec."""
    problems: tuple[str, ...] = ()
    """Why no pod can be made from the spec: fields, with reasons."""
    content: Content = field(default_factory=dict)
    """What the hash is about."""
    current: str = ""
    """Hash of the revision for pods that an update is not to reach; that of the spec where there is no other."""
    recorded: tuple[Recorded, ...] = ()
    """The revisions the API server has."""


def target(place: int, nodeset: NodeSet, revision: Revision) -> str:
    """Hash of the revision that a pod is made from now.

    Parameters
    ----------
    place
        Its ordinal; without ordinals, its place in the order of names.
    nodeset, revision
        What is wanted, and what was before.
    """
    strategy = nodeset.spec.update_strategy
    if strategy.type == "OnDelete":
        return revision.hash
    held_back = strategy.rolling_update.paused or place < strategy.rolling_update.partition
    return revision.current or revision.hash if held_back else revision.hash
