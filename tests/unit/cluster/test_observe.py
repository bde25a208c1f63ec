"""Which objects are a Cluster's daemons, preflights, slurmd pods and children: never by labels alone."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.observe import INDEXERS, Caches, Snapshot, observe
from slinky_operator.cluster.rollout.preflight.attempts import leftovers
from slinky_operator.kube.cache.store import Store
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods import pod_ownership
from tests.unit.cluster.world import cluster_object

RAW = cluster_object()
CLUSTER = Cluster.parse(RAW)
COMPONENTS = [naming.COMPONENT_PREFLIGHT, naming.COMPONENT_RESTAPI, naming.COMPONENT_CONTROLLER]
OWNERS: list[dict[str, Any]] = [
    {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "NodeSet", "name": "c", "uid": "n", "controller": True},
    {"apiVersion": "v1", "kind": "ConfigMap", "name": "nodeset-c-n", "uid": "g"},
]


def seen(*objects: dict[str, Any]) -> Snapshot:
    stores = [Store(), Store(INDEXES_OF_NODESETS), *(Store(INDEXERS) for _ in range(8))]
    caches = Caches(*stores)
    of_kind = {"Pod": caches.pods, "ConfigMap": caches.config_maps}
    for obj in objects:
        of_kind[obj["kind"]].put(obj)
    return observe(CLUSTER, RAW, caches, Memory(CLUSTER.uid), {}, None, "", 0.0, {})


def pod(name: str, own: dict[str, str], owners: list[dict[str, Any]]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "here", "uid": f"uid-of-{name}", "resourceVersion": "1", "labels": own}
    return {"kind": "Pod", "metadata": metadata | {"ownerReferences": owners}}


def slurmd(name: str, component: str, *, marked: bool = True) -> dict[str, Any]:
    own = {**naming.pod_labels(CLUSTER, component), labels.LABEL_DAEMON: "slurmrestd"}
    ours = {labels.LABEL_CLUSTER_UID: CLUSTER.uid, labels.LABEL_NODESET_UID: "n"} if marked else {}
    return pod(name, {**own, **ours}, OWNERS)


@pytest.mark.parametrize("marked", [True, False], ids=["with-our-labels", "without"])
@pytest.mark.parametrize("name", ["compute-0", "slurm-preflight-0000000001", "slurm-restapi-0", "slurm-controller-0"])
@pytest.mark.parametrize("component", COMPONENTS)
def test_a_slurmd_pod_stays_one_whatever_it_is_labelled_and_called(name: str, component: str, marked: bool) -> None:
    snapshot = seen(slurmd(name, component, marked=marked))
    assert snapshot.pods.slurmd_names == (name,)
    assert not snapshot.pods.preflights
    assert not snapshot.pods.daemons
    assert snapshot.pods.controller is None


def test_daemons_and_preflights_are_found() -> None:
    def daemon(name: str, component: str, *owners: str) -> dict[str, Any]:
        return pod(name, naming.pod_labels(CLUSTER, component), [{"kind": kind, "uid": "o"} for kind in owners])

    snapshot = seen(
        daemon("slurm-controller-0", naming.COMPONENT_CONTROLLER, "StatefulSet"),
        daemon("slurm-restapi-5d8-x", naming.COMPONENT_RESTAPI, "ReplicaSet"),
        daemon("slurm-preflight-0123456789", naming.COMPONENT_PREFLIGHT),
    )
    assert snapshot.pods.slurmd_names == ()
    assert snapshot.pods.controller is not None
    assert {key: [one["metadata"]["name"] for one in pods] for key, pods in snapshot.pods.daemons.items()} == {
        "restapi": ["slurm-restapi-5d8-x"]
    }
    assert list(snapshot.pods.preflights) == ["slurm-preflight-0123456789"]


def test_slurmctlds_own_pod_keeps_no_deletion_waiting_when_it_is_given_the_uid() -> None:
    own = {**naming.pod_labels(CLUSTER, naming.COMPONENT_CONTROLLER), labels.LABEL_CLUSTER_UID: CLUSTER.uid}
    snapshot = seen(pod("slurm-controller-0", own, [{"kind": "StatefulSet", "uid": "o"}]))
    assert snapshot.pods.slurmd_names == ()
    assert snapshot.pods.controller is not None


def config_map(name: str, component: str) -> dict[str, Any]:
    about = {"labels": naming.common_labels(CLUSTER, component), "uid": f"uid-of-{name}", "resourceVersion": "1"}
    return {"kind": "ConfigMap", "metadata": {"name": name, "namespace": "here", **about}, "data": {}}


def test_a_config_map_of_ours_is_no_preflights_because_of_a_label() -> None:
    snapshot = seen(
        config_map("slurm-config", naming.COMPONENT_PREFLIGHT),
        config_map("slurm-preflight-0123456789", naming.COMPONENT_PREFLIGHT),
    )
    assert [one.name for one in leftovers(snapshot)] == ["slurm-preflight-0123456789"]


def test_a_copy_that_somebody_has_made_of_an_object_of_ours_is_theirs() -> None:
    snapshot = seen(config_map("slurm-config", "config"), config_map("slurm-config-of-friday", "config"))
    assert list(snapshot.children) == [("ConfigMap", "slurm-config")]


def test_a_pass_does_not_ask_of_each_slurmd_pod_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    caches = Caches(Store(), Store(INDEXES_OF_NODESETS), *(Store(INDEXERS) for _ in range(8)))
    for number in range(100):
        caches.pods.put(slurmd(f"compute-{number}", "worker"))
    asked: list[str] = []
    monkeypatch.setattr(pod_ownership, "is_slurmd", lambda one: asked.append(one["metadata"]["name"]))
    snapshot = observe(CLUSTER, RAW, caches, Memory(CLUSTER.uid), {}, None, "", 0.0, {})
    assert len(snapshot.pods.slurmd_names) == len(snapshot.pods.slurmds) == 100
    assert asked == []


def elsewhere(name: str, created: str, uid: str = "", namespace: str = "here", **metadata: Any) -> dict[str, Any]:
    about = {"name": name, "namespace": namespace, "uid": uid or name, "resourceVersion": "1", **metadata}
    return cluster_object({"server": "http://there:6820"}, **about, creationTimestamp=created)


def test_older_clusters_elsewhere_are_those_of_the_namespace_that_stay() -> None:
    morning, noon, evening = (f"2026-01-01T{hour}:00:00Z" for hour in ("08", "12", "20"))
    own = elsewhere("own", noon, uid="m")
    others = [
        elsewhere("older", morning),
        elsewhere("of-the-same-second", noon, uid="a"),
        elsewhere("later-in-that-second", noon, uid="z"),
        elsewhere("younger", evening),
        elsewhere("leaves", morning, deletionTimestamp=noon),
        elsewhere("stranger", morning, namespace="there"),
        {**elsewhere("invalid", morning), "spec": {"server": "http://there:6820", "nonsense": 1}},
        cluster_object({}, name="managed", uid="b", creationTimestamp=morning, resourceVersion="1"),
    ]
    clusters = Store()
    for one in (own, *others):
        _ = clusters.put(one)
    caches = Caches(clusters, Store(INDEXES_OF_NODESETS), *(Store(INDEXERS) for _ in range(8)))
    cluster = Cluster.parse({**own, "spec": {"server": "http://there:6820", "token": {"secretRef": "mine"}}})
    assert observe(cluster, own, caches, Memory("m"), {}, None, "", 0.0, {}).older_elsewhere == 3
