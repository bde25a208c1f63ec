"""Which NodeSets an event triggers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slinky_api import labels
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.loginset.triggers import LoginSetTriggers
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.model.kubernetes_nodes import Hosts
from slinky_operator.nodeset.model.machines import Mark
from slinky_operator.nodeset.observation import indexes
from slinky_operator.nodeset.triggers import NodeSetTriggers
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS

CLAIM: Object = {
    "metadata": {"name": "data-a-0", "namespace": "team", "uid": "1", "labels": {labels.LABEL_NODESET_NAME: "a"}}
}


@pytest.fixture
def waking() -> NodeSetTriggers:
    return NodeSetTriggers(
        Store(INDEXES_OF_NODESETS), Store(), Store(indexes.INDEXES_OF_PODS), None, {}, lambda uid: None, lambda: 0.0
    )


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [(None, CLAIM, [("team", "a")]), (CLAIM, CLAIM, []), (CLAIM, None, [("team", "a")])],
    ids=["comes", "changes", "goes"],
)
def test_a_claim_wakes_its_nodeset_when_it_comes_and_when_it_goes(
    waking: NodeSetTriggers, old: Object | None, new: Object | None, woken: list[Key]
) -> None:
    assert list(waking.claim(old, new)) == woken


def test_a_cluster_wakes_its_nodesets_when_the_name_of_one_that_has_gone_is_free() -> None:
    nodesets = Store(INDEXES_OF_NODESETS)
    about = {"namespace": "team", "uid": "1", "resourceVersion": "1"}
    nodesets.put({"metadata": {**about, "name": "a"}, "spec": {"clusterName": "c"}})
    waking = NodeSetTriggers(nodesets, Store(), Store(indexes.INDEXES_OF_PODS), None, {}, lambda uid: None, lambda: 0.0)
    before, after = (
        {"metadata": {**about, "name": "c"}, "status": {"config": {"leavingNodeSets": one}}} for one in (["gpu"], [])
    )
    assert list(waking.cluster(before, after)) == [("team", "a")]


HOST: Object = {"metadata": {"name": "host", "uid": "1", "resourceVersion": "1"}, "spec": {}}


@pytest.mark.parametrize(
    ("health", "woken"),
    [
        (None, False),
        ({"nodeConditions": [{"type": "Bad"}]}, True),
        ({"nodeConditions": [{"type": "Other"}]}, False),
        ({"defaults": True}, False),
    ],
)
def test_a_condition_of_a_host_wakes_those_with_pods_there_and_a_rule_for_it(
    health: Object | None, woken: bool
) -> None:
    nodesets, pods = Store(INDEXES_OF_NODESETS), Store(indexes.INDEXES_OF_PODS)
    about = {"namespace": "team", "uid": "1", "resourceVersion": "1"}
    of = {labels.LABEL_NODESET_UID: "1", labels.LABEL_NODESET_NAME: "a", labels.LABEL_CLUSTER_NAME: "c"}
    nodesets.put({"metadata": {**about, "name": "a"}, "spec": {"clusterName": "c", "health": health}})
    nodesets.put({"metadata": {**about, "name": "elsewhere"}, "spec": {"clusterName": "c", "health": health}})
    pods.put({"metadata": {**about, "name": "a-0", "labels": of}, "spec": {"nodeName": "host"}})
    waking = NodeSetTriggers(nodesets, Store(), pods, Hosts(), {}, lambda uid: None, lambda: 0.0)
    well, bad = ({**HOST, "status": {"conditions": [{"type": "Bad", "status": one}]}} for one in ("False", "True"))
    beating = {**well, "status": {"conditions": [{"type": "Bad", "status": "False", "lastHeartbeatTime": "now"}]}}
    assert set(waking.host(None, well)) == {("team", "a"), ("team", "elsewhere")}

    assert list(waking.host(well, beating)) == []
    assert list(waking.host(beating, bad)) == ([("team", "a")] if woken else [])


@pytest.mark.parametrize("namespace", ["team", "others"])
def test_a_machine_that_is_back_wakes_the_nodeset_that_has_it_cordoned_wherever_its_pods_are(namespace: str) -> None:
    nodesets = Store(INDEXES_OF_NODESETS)
    about = {"namespace": "team", "name": "a", "uid": "1", "resourceVersion": "1"}
    nodesets.put({"metadata": about, "spec": {"clusterName": "c", "replicas": 1}})
    waking = NodeSetTriggers(
        nodesets, Store(), Store(indexes.INDEXES_OF_PODS), Hosts(), {}, lambda uid: None, lambda: 0.0
    )
    mark = Mark(f"{namespace}/a", "Reboot", "boot-1", "2026-01-01T12:00:00Z", is_sent=True)
    marked = {**HOST["metadata"], "annotations": {labels.ANNOTATION_NODE_MACHINE: mark.text()}}
    away, back = (
        {**HOST, "metadata": marked, "status": {"nodeInfo": {"bootID": boot}}} for boot in ("boot-1", "boot-2")
    )
    _ = list(waking.host(None, away))

    assert list(waking.host(away, back)) == ([("team", "a")] if namespace == "team" else [])


@pytest.mark.parametrize(("field", "woken"), [("slurmKeyFile", True), ("summary", False)])
def test_a_cluster_wakes_those_who_name_it_when_daemons_have_a_key_of_another_form(field: str, woken: bool) -> None:
    nodesets, loginsets = Store(INDEXES_OF_NODESETS), Store(INDEXES_OF_NODESETS)
    about = {"namespace": "team", "uid": "1", "resourceVersion": "1"}
    for store in (nodesets, loginsets):
        store.put({"metadata": {**about, "name": "a"}, "spec": {"clusterName": "c"}})
    waking = NodeSetTriggers(nodesets, Store(), Store(indexes.INDEXES_OF_PODS), None, {}, lambda uid: None, lambda: 0.0)
    before, after = ({"metadata": {**about, "name": "c"}, "status": {field: one}} for one in ("x", "y"))
    for triggers in (waking, LoginSetTriggers(loginsets)):
        assert list(triggers.cluster(before, after)) == ([("team", "a")] if woken else [])


def test_of_a_pod_that_had_ended_it_is_kept_when_its_slurmd_did() -> None:
    memory: dict[str, Memory] = {}
    waking = NodeSetTriggers(
        Store(INDEXES_OF_NODESETS), Store(), Store(indexes.INDEXES_OF_PODS), None, memory, lambda uid: None, lambda: 0.0
    )
    own = {labels.LABEL_NODESET_UID: "u", labels.LABEL_NODESET_NAME: "a"}
    about = {"name": "a-0", "namespace": "team", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z", "labels": own}
    ended = {"name": "slurmd", "state": {"terminated": {"finishedAt": "2026-01-01T00:00:07Z"}}}
    pod = {"metadata": about, "spec": {}, "status": {"phase": "Running", "containerStatuses": [ended]}}
    assert list(waking.pod(pod, None)) == [("team", "a")]
    assert memory["u"].ended == {"a-0": datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC)}
    assert list(waking.pod(None, pod)) == [("team", "a")]
    assert not memory["u"].ended
