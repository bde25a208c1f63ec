"""Retention of claims: what a scale-in retained stays, whatever the policy says later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.claims import Retention, VolumeClaim
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.placement import claim_retention
from slinky_operator.nodeset.placement.claim_retention import Keeping
from slinky_operator.nodeset.placement.layout import lay_out
from slinky_operator.nodeset.slurm_nodes.drains import Cause

DELETE, WITH_NODESET, RETAIN = Retention
LEAVING: Mapping[str, frozenset[Cause]] = {"a-1": frozenset({Cause.SCALE_IN})}


def nodeset(replicas: int = 1, *, deleting: bool = False, **policy: str) -> NodeSet:
    metadata: dict[str, Any] = {"name": "a", "namespace": "ns", "uid": "set-uid"}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"clusterName": "c", "replicas": replicas, "persistentVolumeClaimRetentionPolicy": policy}
    return NodeSet.parse({"metadata": metadata, "spec": spec, "status": {"scalingMode": "StatefulSet"}})


def of(number: int, written: Retention | None = None, **values: Any) -> VolumeClaim:
    return VolumeClaim(f"data-a-{number}", f"u{number}", f"a-{number}", retention=written, **values)


def pod(number: int, name: str = "", **values: Any) -> Pod:
    name = name or f"a-{number}"
    return Pod(name, name, f"p{number}", ordinal=number, slurmd=Slurmd.RUNNING, registered=True, **values)


def settle(
    owner: NodeSet,
    claims: Sequence[VolumeClaim],
    pods: Sequence[Pod],
    causes: Mapping[str, frozenset[Cause]] = {},
    *,
    readable: bool = True,
    **cluster: Any,
) -> Keeping:
    snapshot = Snapshot(
        owner,
        replace(ClusterFacts(uid="c", listed=True), **cluster),
        SlurmFacts(readable=readable),
        Revision("r"),
        tuple(pods),
        tuple(claims),
    )
    live = [one for one in snapshot.members if not one.pod.deleting]
    return claim_retention.settle(snapshot, lay_out(snapshot, live), {one.name for one in live}, causes)


@pytest.mark.parametrize(
    ("policy", "written"),
    [
        ({}, RETAIN),
        ({"whenScaled": "Delete"}, DELETE),
        ({"whenDeleted": "Delete"}, WITH_NODESET),
        ({"whenScaled": "Delete", "whenDeleted": "Delete"}, DELETE),
    ],
)
def test_the_policy_of_a_scale_in_is_written_while_its_pod_is_there(policy: Any, written: Retention) -> None:
    found = settle(nodeset(**policy), [of(0), of(1)], [pod(0), pod(1)], LEAVING)

    assert found == Keeping(((of(1), written),))


@pytest.mark.parametrize("kept", [WITH_NODESET, RETAIN])
def test_what_was_kept_stays_kept_when_the_policy_changes(kept: Retention) -> None:
    assert settle(nodeset(whenScaled="Delete"), [of(0), of(1, kept)], [pod(0)]) == Keeping()


def test_what_goes_is_what_is_marked_once_its_pod_is_gone() -> None:
    owner = nodeset(whenScaled="Delete")

    assert settle(owner, [of(0), of(1, DELETE)], [pod(0), pod(1, deleting=True)]) == Keeping()
    assert settle(owner, [of(0), of(1, DELETE)], [pod(0)]) == Keeping(delete=(of(1, DELETE),))
    assert settle(owner, [of(0), of(1, DELETE, deleting=True)], [pod(0)]) == Keeping()


def test_a_claim_of_which_nobody_wrote_how_its_pod_went_is_kept() -> None:
    assert settle(nodeset(whenScaled="Delete"), [of(1)], [pod(0)]) == Keeping(((of(1), RETAIN),))
    both = nodeset(whenScaled="Delete", whenDeleted="Delete")
    assert settle(both, [of(1)], [pod(0)]) == Keeping(((of(1), WITH_NODESET),))


def test_a_change_of_mind_only_keeps_more() -> None:
    assert settle(nodeset(), [of(1, DELETE)], [pod(0)]) == Keeping(((of(1, DELETE), RETAIN),))
    assert settle(nodeset(whenDeleted="Delete"), [of(1, DELETE)], [pod(0)]).marks == ((of(1, DELETE), WITH_NODESET),)
    assert settle(nodeset(), [of(1, WITH_NODESET)], [pod(0)]).marks == ((of(1, WITH_NODESET), RETAIN),)
    # While the pod is still there, the scale-in has yet to happen.
    assert settle(nodeset(), [of(1, DELETE)], [pod(0), pod(1)], LEAVING).marks == ((of(1, DELETE), RETAIN),)
    again = settle(nodeset(whenScaled="Delete"), [of(1, RETAIN)], [pod(0), pod(1)], LEAVING)
    assert again.marks == ((of(1, RETAIN), DELETE),)


def test_the_mark_comes_off_when_the_pod_stays_or_comes_back() -> None:
    owner = nodeset(2, whenScaled="Delete")

    assert settle(owner, [of(1, DELETE)], [pod(0), pod(1)]) == Keeping(((of(1, DELETE), None),))
    assert settle(owner, [of(0), of(1, DELETE)], [pod(0)]) == Keeping(((of(1, DELETE), None),))
    assert settle(owner, [of(0), of(1, DELETE)], [pod(0), pod(1, deleting=True)]).marks == ((of(1, DELETE), None),)


def test_an_update_or_a_lost_pod_marks_nothing() -> None:
    owner = nodeset(2, whenScaled="Delete")

    assert settle(owner, [of(0), of(1)], [pod(0), pod(1)], {"a-1": frozenset({Cause.UPDATE})}) == Keeping()
    assert settle(owner, [of(0), of(1)], [pod(0), pod(1, deleting=True)]) == Keeping()
    assert settle(owner, [of(0), of(1), of(2)], [pod(0)]) == Keeping()


def test_an_ordinal_is_the_same_with_other_digits() -> None:
    owner = nodeset(1, whenScaled="Delete")
    pods = [pod(0, "a-00"), pod(1, "a-01")]

    assert settle(owner, [of(0), of(1)], pods, {"a-01": frozenset({Cause.SCALE_IN})}).marks == ((of(1), DELETE),)
    assert settle(owner, [of(0), of(1, DELETE)], pods[:1]).delete == (of(1, DELETE),)


@pytest.mark.parametrize(
    ("owner", "more"),
    [
        (nodeset(whenScaled="Delete", deleting=True), {}),
        (nodeset(whenScaled="Delete"), {"deleting": True}),
    ],
)
def test_nothing_is_settled_while_nodeset_or_cluster_goes(owner: NodeSet, more: Any) -> None:
    assert settle(owner, [of(1, DELETE), of(2)], [pod(0)], **more) == Keeping()


def test_nothing_goes_without_a_cluster_and_nothing_is_unmarked_blindly() -> None:
    owner = nodeset(whenScaled="Delete")

    assert settle(owner, [of(1, DELETE)], [pod(0)], uid="") == Keeping()
    assert settle(owner, [of(1, DELETE)], [pod(0), pod(1)], readable=False) == Keeping()


def test_a_claim_that_names_no_pod_is_left_alone() -> None:
    owner = nodeset(whenScaled="Delete")

    assert (
        settle(owner, [VolumeClaim("data", "u", "", retention=DELETE), VolumeClaim("other", "v", "")], [pod(0)])
        == Keeping()
    )


def test_with_the_nodeset_goes_what_was_not_kept_from_that_too() -> None:
    owner = nodeset(whenDeleted="Delete")

    assert [claim_retention.goes_with_nodeset(owner, of(1, one)) for one in (None, *Retention)] == [
        True,
        True,
        True,
        False,
    ]
    assert not any(claim_retention.goes_with_nodeset(nodeset(), of(1, one)) for one in (None, *Retention))
