"""To which group a pod belongs, which of its pods it is, and what the object of the group says."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.bridge.pods.model import membership, slurmjobs
from slinky_operator.bridge.pods.model.group_owners import read_owner
from slinky_operator.bridge.pods.model.membership import STRIDE, GroupKey, GroupKind, group_of, rank_of
from slinky_operator.kube.cache.stubs import stub
from slinky_operator.kube.objects import Object

JOB = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-1", "controller": True}]
INDEXED = {membership.INDEX: "4"}
JOBSET = {membership.JOBSET_NAME: "js", membership.JOBSET_ATTEMPT: "2", membership.JOBSET_GLOBAL_INDEX: "3"}
LWS = {membership.LWS_NAME: "lws", membership.LWS_GROUP: "1", membership.LWS_WORKER: "5"}


def pod(marked: dict[str, str], annotations: dict[str, str], owners: Any) -> Object:
    return {
        "metadata": {"name": "p", "uid": "u", "labels": marked, "annotations": annotations, "ownerReferences": owners}
    }


@pytest.mark.parametrize(
    ("marked", "annotations", "owners", "key", "rank"),
    [
        ({}, {}, [], "Pod/u/", None),
        ({}, {}, JOB, "Pod/u/", None),
        ({}, INDEXED, JOB, "Job/job-1/", 4),
        ({}, INDEXED, [{**JOB[0], "apiVersion": "batch.volcano.sh/v1"}], "Pod/u/", None),
        ({}, {labels.LABEL_BRIDGE_GROUP: "Job"}, JOB, "Job/job-1/", None),
        ({}, {labels.LABEL_BRIDGE_GROUP: "Pod", **INDEXED}, JOB, "Pod/u/", None),
        (JOBSET, INDEXED, JOB, "JobSet/js/2", 3 * STRIDE + 4),
        (JOBSET, {**INDEXED, labels.LABEL_BRIDGE_GROUP: "Job"}, JOB, "Job/job-1/", 4),
        (LWS, {}, [], "LeaderWorkerSet/lws/1", 5),
        ({membership.POD_GROUP: "pg"}, INDEXED, JOB, "PodGroup/pg/", None),
        ({**JOBSET, membership.JOBSET_ATTEMPT: "x/y"}, INDEXED, JOB, "JobSet/js/0", 3 * STRIDE + 4),
        ({}, {membership.INDEX: "-1"}, JOB, "Job/job-1/", None),
        ({}, {membership.INDEX: "9" * 400}, JOB, "Job/job-1/", None),
    ],
)
def test_groups_and_ranks(marked: Any, annotations: Any, owners: Any, key: str, rank: int | None) -> None:
    one = pod(marked, annotations, owners)
    found = group_of(one)
    assert (str(found), rank_of(one, found.kind)) == (key, rank)
    assert GroupKey.read(str(found)) == found


@pytest.mark.parametrize("text", ["", "Pod", "Pod//", "Pod/a/b/c", "Other/x/"])
def test_keys_that_somebody_has_written_are_read_or_not(text: str) -> None:
    assert GroupKey.read(text) is None


def owner(kind: GroupKind, spec: Object, status: Object | None = None, part: str = "", **about: Any) -> Any:
    obj = {"metadata": {"name": "o", "uid": "u", **about}, "spec": spec, "status": status or {}}
    return read_owner(GroupKey(kind, "u" if kind in {GroupKind.JOB, GroupKind.POD} else "o", part), obj, "", {})


@pytest.mark.parametrize(
    ("spec", "status", "pods", "is_group"),
    [
        ({"parallelism": 3, "completions": 3, "completionMode": "Indexed"}, {}, 3, True),
        ({"parallelism": 2, "completions": 3, "completionMode": "Indexed"}, {}, 2, False),
        ({"parallelism": 3, "completions": 3}, {}, 3, False),
        ({"parallelism": 3, "completions": 3, "completionMode": "Indexed"}, {"completedIndexes": "0,2"}, 1, True),
        (
            {"parallelism": 4, "completions": 4, "completionMode": "Indexed"},
            {"completedIndexes": "0-1", "failedIndexes": "3"},
            1,
            True,
        ),
        ({"parallelism": 3}, {"succeeded": 1}, 3, False),
    ],
)
def test_jobs(spec: Object, status: Object, pods: int, is_group: bool) -> None:
    found = owner(GroupKind.JOB, spec, status)
    assert (found.pods, found.is_group) == (pods, is_group)


def test_another_object_of_the_same_name_is_none() -> None:
    obj = {"metadata": {"name": "j", "uid": "later"}, "spec": {}}
    assert read_owner(GroupKey(GroupKind.JOB, "earlier"), obj, "", {}) is None


def test_jobsets_leader_worker_sets_and_pod_groups() -> None:
    template = {"spec": {"parallelism": 2, "completions": 2}}
    jobs = [{"replicas": 3, "template": template}, {"template": {"spec": {}}}]
    assert owner(GroupKind.JOBSET, {"replicatedJobs": jobs}).pods == 7
    assert owner(GroupKind.JOBSET, {}, {"restarts": 2}, "1").end == "Restarted"
    assert owner(GroupKind.JOBSET, {}, {"conditions": [{"type": "Completed", "status": "True"}]}).end == "Complete"
    assert owner(GroupKind.JOBSET, {"suspend": True}).end == "Suspended"
    lws = owner(GroupKind.LEADER_WORKER_SET, {"leaderWorkerTemplate": {"size": 4}, "startupPolicy": "LeaderReady"})
    assert lws.pods == 4
    assert lws.problem is not None
    assert owner(GroupKind.POD_GROUP, {"minMember": 5}).pods == 5
    assert owner(GroupKind.POD_GROUP, {}, deletionTimestamp="2026-01-01T00:00:00Z").end == "Deleted"


@pytest.mark.parametrize(
    "spec", [{"replicatedJobs": "x"}, {"replicatedJobs": [1]}, {"minMember": "x"}, {"parallelism": None}]
)
@pytest.mark.parametrize("kind", list(GroupKind))
def test_objects_of_others_may_hold_anything(kind: GroupKind, spec: Object) -> None:
    assert owner(kind, spec) is not None


def test_a_slurmjob_for_which_there_is_no_room_is_found_by_its_group() -> None:
    """Otherwise its group would get another one."""
    about = {
        "labels": {labels.LABEL_BRIDGE_GROUP: "u"},
        "annotations": {labels.ANNOTATION_BRIDGE_MEMBERS: "PodGroup/g"},
    }
    job = {"metadata": {"namespace": "team", "name": "bridge-u", **about}, "spec": {"script": "x" * 1000}}
    assert slurmjobs.by_group(stub(job)) == slurmjobs.by_group(job) == ["team/PodGroup/g"]
