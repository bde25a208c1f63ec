"""Whatever the schema accepts, a pass ends in a status: never in an exception, never without a report."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from slinky_api.crd.definition import definition
from slinky_api.resource import Resource
from slinky_api.v1alpha1 import Cluster, NodeSet
from slinky_api.v1alpha1.cluster.kind import CLUSTER
from slinky_api.v1alpha1.nodeset.kind import NODESET
from tests.support.from_schema import values
from tests.support.passes import Operator, operator

PASSES = 4
"""Enough to come from a finalizer over children and pods to what waits for somebody else."""


def schema_of(resource: Resource, model: type[Cluster | NodeSet]) -> dict[str, Any]:
    version = definition(resource, model)["spec"]["versions"][0]
    properties: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]
    return properties


CLUSTERS, NODESETS = schema_of(CLUSTER, Cluster), schema_of(NODESET, NodeSet)
EXTERNAL = {"server", "token", "caBundle", "auth", "controller"}


def specs(schema: dict[str, Any], names: set[str] | None = None, **fixed: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Specs with a few of the fields at a time: with all at once, nearly each would be refused for one of them."""
    fields = {name: values(child) for name, child in schema["properties"].items() if names is None or name in names}
    chosen = st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True)
    some = chosen.flatmap(lambda taken: st.fixed_dictionaries({name: fields[name] for name in taken}))
    return some.map(lambda spec: {**fixed, **spec})


MANAGED = specs(CLUSTERS["spec"], set(CLUSTERS["spec"]["properties"]) - {"server", "token", "caBundle"})
CONNECTED = specs(CLUSTERS["spec"], EXTERNAL, server="http://slurm:6820", token={"secretRef": "t"})


def conditions(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["type"]: one for one in status.get("conditions", ())}


def settled(kind: str, at_hand: Operator) -> None:
    """The status says something about this spec, in texts that the API server takes."""
    status = at_hand.status(kind)
    found = conditions(status)
    assert {"Ready", "Degraded"} & found.keys(), status
    for one in found.values():
        assert len(one.get("message", "")) <= 32_768
        assert one["status"] in {"True", "False", "Unknown"}
        assert one["status"] == "True" or one.get("reason") or one.get("message"), one


async def drive(kind: str, prepare: Any) -> None:
    async with operator() as at_hand:
        prepare(at_hand)
        for _ in range(PASSES):
            await at_hand.pass_over(kind)
        settled(kind, at_hand)


@settings(max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))
@given(spec=MANAGED | CONNECTED, nodeset=st.none() | specs(NODESETS["spec"], clusterName="a"))
def test_a_pass_over_any_cluster_ends_in_a_status(spec: dict[str, Any], nodeset: dict[str, Any] | None) -> None:
    def prepare(at_hand: Operator) -> None:
        at_hand.add("Cluster", spec)
        if nodeset is not None:
            at_hand.add("NodeSet", {**nodeset, "clusterName": "a"}, name="compute")

    asyncio.run(drive("Cluster", prepare))


@settings(max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))
@given(spec=specs(NODESETS["spec"]), replicas=st.none() | st.integers(0, 3))
@example(spec={"volumeClaimTemplates": [{"metadata": True}]}, replicas=1)
def test_a_pass_over_any_nodeset_ends_in_a_status(spec: dict[str, Any], replicas: int | None) -> None:
    def prepare(at_hand: Operator) -> None:
        at_hand.add("Cluster", {}, {"isReady": True, "config": {"nodeSets": ["a"]}})
        given_replicas = {} if replicas is None else {"replicas": replicas}
        at_hand.add(
            "NodeSet", {**{k: v for k, v in spec.items() if k != "replicas"}, **given_replicas, "clusterName": "a"}
        )

    asyncio.run(drive("NodeSet", prepare))


@pytest.mark.parametrize("kind", ["Cluster", "NodeSet"])
def test_an_object_with_more_values_than_any_real_one_is_refused_by_a_condition(kind: str) -> None:
    spec = {"clusterName": "a"} if kind == "NodeSet" else {}
    field = "template" if kind == "NodeSet" else "controller"
    many = {"spec": {"containers": [{"name": str(number)} for number in range(20_000)]}}
    big = {**spec, field: many if kind == "NodeSet" else {"template": many}}

    async def check() -> None:
        async with operator() as at_hand:
            at_hand.add(kind, big)
            await at_hand.pass_over(kind)
            ready = conditions(at_hand.status(kind))["Ready"]
            assert ready["status"] == "False"
            assert "more than 10000 values" in ready["message"]

    asyncio.run(check())


@pytest.mark.parametrize("kind", ["Cluster", "NodeSet"])
@pytest.mark.parametrize("levels", [70, 100])
def test_an_object_that_is_nested_deeper_than_any_real_one_is_refused_by_a_condition(kind: str, levels: int) -> None:
    nested: Any = 1
    for _ in range(levels):
        nested = {"a": nested}
    big = {"clusterName": "a", "template": nested} if kind == "NodeSet" else {"controller": {"template": nested}}

    async def check() -> None:
        async with operator() as at_hand:
            at_hand.add(kind, big)
            await at_hand.pass_over(kind)
            ready = conditions(at_hand.status(kind))["Ready"]
            assert ready["status"] == "False"
            assert "nested more than 64 levels" in ready["message"]

    asyncio.run(check())


@pytest.mark.parametrize("spec", [{"nodeSelector": "x"}, {"affinity": []}, {"tolerations": ["x"]}, {"containers": "x"}])
def test_a_template_of_another_shape_is_refused_on_each_node_too(spec: dict[str, Any]) -> None:
    async def check() -> None:
        async with operator() as at_hand:
            host = {"metadata": {"name": "node-1", "uid": "node-uid", "labels": {}}, "spec": {}, "status": {}}
            list(at_hand.nodesets.triggers.host(None, host))
            at_hand.add("Cluster", {}, {"isReady": True, "config": {"nodeSets": ["a"]}})
            at_hand.add("NodeSet", {"clusterName": "a", "scalingMode": "DaemonSet", "template": {"spec": spec}})
            for _ in range(PASSES):
                await at_hand.pass_over("NodeSet")
            degraded = conditions(at_hand.status("NodeSet"))["Degraded"]
            assert degraded["status"] == "True"
            assert f"spec.template.spec.{next(iter(spec))}" in degraded["message"]

    asyncio.run(check())
