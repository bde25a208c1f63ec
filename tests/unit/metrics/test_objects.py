"""The objects' samples say what their status says, and are bounded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry

from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    LOGINSETS,
    NODESETS,
    SLURM_SLURMJOBS,
    SLURMJOBS,
    TOKENS,
    VIRTUAL_NODES,
    VIRTUAL_PODS,
    WLM_SLURMJOBS,
    WLM_WLMJOBS,
    Resource,
)
from slinky_operator.metrics.job_objects import NEW, OTHER, STATES, WAITS
from slinky_operator.metrics.objects import Objects


def made(resource: Resource, name: str, status: dict[str, Any], **spec: Any) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": "hpc", "uid": name, "resourceVersion": "1"},
        "spec": spec,
        "status": status,
    }


def registry_of(*objects: Object, most: int = 100, leads: bool = True) -> CollectorRegistry:
    of_users = (CLUSTERS, NODESETS, LOGINSETS, TOKENS, SLURMJOBS, WLM_SLURMJOBS, WLM_WLMJOBS, SLURM_SLURMJOBS)
    stores = {resource: Store() for resource in (*of_users, VIRTUAL_NODES, VIRTUAL_PODS)}
    by_kind = {(resource.api_version, resource.kind): store for resource, store in stores.items()}
    for obj in objects:
        by_kind[obj["apiVersion"], obj["kind"]].put(obj)
    registry = CollectorRegistry()
    registry.register(Objects(stores, most=most, leads=lambda: leads))
    return registry


def values(registry: CollectorRegistry, name: str, labels: Iterable[str]) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels[label] for label in labels): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == f"slurm_operator_{name}"
    }


def test_conditions_of_every_kind() -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Degraded", "status": "False"}]
    unknown = [{"type": "Ready", "status": "Unknown"}]
    registry = registry_of(
        made(CLUSTERS, "slurm", {"conditions": conditions}), made(TOKENS, "alice", {"conditions": unknown})
    )
    assert values(registry, "condition", ("kind", "namespace", "name", "condition")) == {
        ("Cluster", "hpc", "slurm", "Ready"): 1,
        ("Cluster", "hpc", "slurm", "Degraded"): 0,
        ("Token", "hpc", "alice", "Ready"): -1,
    }


def test_nodes_and_pods_of_a_nodeset_by_state() -> None:
    status = {"desired": 5, "replicas": 4, "readyReplicas": 3, "nodes": {"idle": 1, "draining": 2, "starting": 1}}
    registry = registry_of(made(NODESETS, "gpu", status, clusterName="slurm"), made(NODESETS, "new", {}))
    nodes = values(registry, "nodeset_nodes", ("name", "cluster", "state"))
    assert {state: count for (_, _, state), count in nodes.items() if count} == {
        "idle": 1,
        "draining": 2,
        "starting": 1,
    }
    assert {name for name, _, _ in nodes} == {"gpu"}
    assert sum(nodes.values()) == status["replicas"]
    assert values(registry, "nodeset_pods", ("name", "state")) == {
        ("gpu", "desired"): 5,
        ("gpu", "existing"): 4,
        ("gpu", "updated"): 0,
        ("gpu", "ready"): 3,
        ("gpu", "available"): 0,
    }


def test_autoscaling_of_a_nodeset_with_its_bounds_and_reason() -> None:
    spec = {"clusterName": "slurm", "autoscaling": {"maxReplicas": 8}}
    status = {"autoscaling": {"active": False, "wanted": 0, "reason": "ScaledByOthers"}}
    registry = registry_of(
        made(NODESETS, "gpu", status, **spec),
        made(NODESETS, "cpu", {}, clusterName="slurm", autoscaling={"minReplicas": 2, "maxReplicas": 4}),
        made(NODESETS, "fixed", {"autoscaling": {}}, clusterName="slurm"),
        made(NODESETS, "told", {"autoscaling": {"active": True, "wanted": 3, "reason": "NodesWanted"}}, **spec),
    )
    labels = ("name", "cluster")
    # Zero is a number; what is not known has no sample.
    assert values(registry, "nodeset_autoscaling_wanted_replicas", labels) == {
        ("gpu", "slurm"): 0,
        ("told", "slurm"): 3,
    }
    assert values(registry, "nodeset_autoscaling_limit_replicas", ("name", "limit")) == {
        ("gpu", "min"): 0,
        ("gpu", "max"): 8,
        ("cpu", "min"): 2,
        ("cpu", "max"): 4,
        ("told", "min"): 0,
        ("told", "max"): 8,
    }
    assert values(registry, "nodeset_autoscaling_active", ("name", "reason")) == {
        ("gpu", "ScaledByOthers"): 0,
        ("told", "NodesWanted"): 1,
    }


def test_the_end_of_a_token() -> None:
    registry = registry_of(made(TOKENS, "alice", {"expiresAt": "2026-11-22T10:00:00Z"}), made(TOKENS, "bob", {}))
    assert values(registry, "token_expiry_timestamp_seconds", ("name",)) == {("alice",): 1795341600.0}


def test_what_is_too_much_is_counted_and_has_no_samples() -> None:
    many = [made(NODESETS, f"n{number}", {"replicas": 1}, clusterName="slurm") for number in range(7)]
    registry = registry_of(*many, most=5)
    assert values(registry, "objects", ("kind",))["NodeSet",] == 7
    assert values(registry, "objects_left_out", ("kind",)) == {
        ("Cluster",): 0,
        ("NodeSet",): 2,
        ("LoginSet",): 0,
        ("Token",): 0,
    }
    assert len({name for name, _ in values(registry, "nodeset_pods", ("name", "state"))}) == 5


def test_many_objects_of_one_namespace_hide_none_of_another() -> None:
    many = [made(NODESETS, f"n{number}", {"replicas": 1}, clusterName="slurm") for number in range(7)]
    for obj in many:
        obj["metadata"]["namespace"] = "aaa"
    others = [made(NODESETS, name, {"replicas": 1}, clusterName="slurm") for name in ("gpu", "cpu")]
    shown = {name for name, _ in values(registry_of(*many, *others, most=5), "nodeset_pods", ("name", "state"))}
    assert {"gpu", "cpu"} < shown
    assert len(shown) == 5


def test_a_replica_that_does_not_lead_shows_none() -> None:
    registry = registry_of(made(NODESETS, "gpu", {"replicas": 1}, clusterName="slurm"), leads=False)
    assert values(registry, "nodeset_pods", ("name", "state")) == {}
    assert values(registry, "objects", ("kind",)) == {}


def test_objects_of_job_kinds_are_counted_and_have_no_samples_of_their_own() -> None:
    ready = {"conditions": [{"type": "Submitted", "status": "True"}]}
    kinds = (SLURMJOBS, SLURMJOBS, WLM_SLURMJOBS, WLM_WLMJOBS, SLURM_SLURMJOBS)
    registry = registry_of(*(made(kind, f"job-{number}", ready) for number, kind in enumerate(kinds)))
    assert {kind: number for (kind,), number in values(registry, "objects", ("kind",)).items() if number} == {
        "SlurmJob": 2,
        "SlurmJob.wlm.sylabs.io": 1,
        "WlmJob.wlm.sylabs.io": 1,
        "SlurmJob.slurm.sylabs.io": 1,
    }
    assert values(registry, "condition", ("kind",)) == {}
    assert ("SlurmJob",) not in values(registry, "objects_left_out", ("kind",))


def test_slurmjobs_are_counted_by_state_and_not_shown_one_by_one() -> None:
    states = {"a": "Running", "b": "Running", "c": "Failed", "d": "", "e": "Mutiny"}
    registry = registry_of(*(made(SLURMJOBS, name, {"state": state}) for name, state in states.items()))
    expected = {"Running": 2, "Failed": 1, "Waiting": 1, "Unknown": 1}
    assert values(registry, "slurmjobs", ("state",)) == {(state,): expected.get(state, 0) for state in STATES}
    assert values(registry_of(made(SLURMJOBS, "a", {}), leads=False), "slurmjobs", ("state",)) == {}


def test_slurmjobs_that_wait_are_counted_by_reason() -> None:
    waits = {"a": "KeyPending", "b": "KeyPending", "c": "", "d": "Mutiny", "e": "SubmittedAgain"}
    objects = [made(SLURMJOBS, name, {"state": "Waiting", "reason": reason}) for name, reason in waits.items()]
    registry = registry_of(*objects, made(SLURMJOBS, "f", {"state": "Running", "reason": "Running"}))
    expected = {"KeyPending": 2, NEW: 1, OTHER: 1, "SubmittedAgain": 1}
    found = values(registry, "slurmjobs_waiting", ("reason",))
    assert found == {(reason,): expected.get(reason, 0) for reason in (NEW, OTHER, *map(str, WAITS))}
