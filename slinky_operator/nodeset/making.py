"""Creates pods with their claims: the part of `act` that makes new ones, in batches that grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS
from slinky_operator.nodeset import bookkeeping
from slinky_operator.nodeset import pod as pods
from slinky_operator.nodeset.actions import CreatePods
from slinky_operator.nodeset.batches import side_by_side
from slinky_operator.nodeset.means import Means, listed
from slinky_operator.nodeset.places import Place
from slinky_operator.nodeset.revision import restored

FIRST_BATCH: Final = 8
"""Pods created at first; each further batch is twice as large, so that a spec that is refused is refused few times."""


async def create(means: Means, action: CreatePods) -> None:
    """Create pods, until one is refused."""
    wanted, guard_uid = [place for place in action.places if _take(means, place)], means.guards[means.nodeset.uid]
    made_from = _at(means, action.revision)
    position, size = 0, FIRST_BATCH
    created: list[str] = []
    while position < len(wanted):
        batch = wanted[position : position + size]
        position += len(batch)
        size *= 2
        names = [place.pod for place in batch]
        means.outcome.acted = True
        means.expectations.expect_creations(means.nodeset.uid, means.nodeset.namespace, names)
        results = await side_by_side(
            _create_one(means, made_from, place, action.revision, guard_uid) for place in batch
        )
        if not _created(means, names, results, created):
            break
    if created:
        means.say(str(Reason.SCALING_OUT), f"created: {listed(created)}")


def _take(means: Means, place: Place) -> bool:
    """Take the name of a node, unless another NodeSet has just taken it: a moment later the cache shows its pod."""
    if means.cluster is None or means.reserved.take(means.cluster.uid, place.node, means.nodeset.uid):
        return True
    means.outcome.kept.append(f"node {place.node} is just being made by another NodeSet")
    return False


def _created(means: Means, names: Sequence[str], results: Sequence[object], created: list[str]) -> bool:
    """Note what became of a batch; False if no further one is to be tried."""
    go_on = True
    for name, result in zip(names, results, strict=True):
        if isinstance(result, dict):
            means.expectations.created(result)
            created.append(name)
            continue
        means.expectations.creation_failed(means.nodeset.namespace, name)
        if isinstance(result, str):
            means.outcome.refusals.append(result)
        elif isinstance(result, kube_errors.Invalid | kube_errors.Forbidden | kube_errors.BadRequest):
            means.outcome.refusals.append(f"pod {name}: {result.message}")
            means.warn(str(Reason.POD_REFUSED), f"pod {name}: {result.message}")
            means.outcome.errors.append(result)
            go_on = False
        elif isinstance(result, Exception):
            means.outcome.errors.append(result)
            go_on = False
        elif isinstance(result, BaseException):
            raise result
    return go_on


def _at(means: Means, revision: str) -> NodeSet:
    """The NodeSet as it was at a revision."""
    found = next((one for one in means.revision.recorded if one.hash == revision), None)
    if revision == means.revision.hash or found is None:
        return means.nodeset
    return restored(means.nodeset, found.content)


async def _create_one(
    means: Means, nodeset: NodeSet, place: Place, revision: str, guard_uid: str
) -> Object | str | None:
    """Create a pod: gives it, or why its name is taken, or None if it is there already and ours."""
    if means.cluster is None:
        raise ValueError("a pod cannot be made without a Cluster")
    body = pods.build(
        nodeset,
        means.cluster,
        place=place,
        revision=revision,
        guard_uid=guard_uid,
        defaults=means.defaults,
    )
    why = await bookkeeping.ensure_claims(means.kube, nodeset, place.pod, means.claims)
    if why is not None:
        return why
    try:
        return await means.kube.create(PODS, body)
    except kube_errors.AlreadyExists:
        name = body["metadata"]["name"]
        there = await means.kube.get(PODS, name, means.nodeset.namespace)
        if (there["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_UID) == means.nodeset.uid:
            return None
        return f"there is a pod {name} that is not ours"
