"""Which pods are deleted first."""

from __future__ import annotations

from datetime import timedelta

from slinky_operator.nodeset.disruption import victims
from slinky_operator.nodeset.model.member import join
from slinky_operator.nodeset.model.pods.pod_facts import Slurmd
from tests.unit.nodeset.builders import NOW, OURS, OWNER, a_pod, job, node


def test_those_go_first_that_cost_least() -> None:
    pods = [a_pod(name=f"a-{number}", ordinal=number, uid=str(number)) for number in range(6)]
    pods[5] = a_pod(name="a-5", ordinal=5, uid="5", registered=False, slurmd=Slurmd.NEVER, host="")
    pods[4] = a_pod(name="a-4", ordinal=4, uid="4", deletion_cost=9)
    nodes = {f"a-{number}": node(name=f"a-{number}", instance_id=str(number)) for number in range(5)}
    nodes["a-0"] = node("IDLE+DRAIN+DYNAMIC_NORM", name="a-0", reason="mine")
    for name in ("a-1", "a-2"):
        nodes[name] = node("ALLOCATED+DYNAMIC_NORM", name=name)
    jobs = {
        "a-1": (job("RUNNING", start_time=NOW - timedelta(hours=5)),),
        "a-2": (job("RUNNING", start_time=NOW - timedelta(minutes=5)),),
    }

    order = victims.choose([join(pod, nodes, jobs, OWNER) for pod in pods], 6, NOW)

    assert [pod.name for pod in order] == ["a-5", "a-0", "a-3", "a-4", "a-2", "a-1"]


def test_a_pod_that_starts_goes_before_a_node_that_could_take_a_job_now() -> None:
    starting = a_pod(name="a-0", ordinal=0, uid="0", registered=False, deletion_cost=9)
    idle = a_pod(name="a-1", ordinal=1, uid="1")
    unbound = a_pod(name="a-2", ordinal=2, uid="2", registered=False, slurmd=Slurmd.NEVER, host="", deletion_cost=9)
    nodes = {"a-1": node(name="a-1", instance_id="1")}

    order = victims.choose([join(pod, nodes, {}, OWNER) for pod in (idle, starting, unbound)], 3, NOW)

    assert [pod.name for pod in order] == ["a-2", "a-0", "a-1"]


def test_a_begun_drain_keeps_its_place_among_the_busy() -> None:
    pods = [a_pod(name=f"a-{number}", ordinal=number) for number in range(2)]
    nodes = {
        "a-0": node("ALLOCATED+DRAIN+DYNAMIC_NORM", name="a-0", reason=OURS),
        "a-1": node("ALLOCATED+DYNAMIC_NORM", name="a-1"),
    }
    jobs = {"a-0": (job("RUNNING", start_time=NOW - timedelta(days=9)),), "a-1": (job("RUNNING", start_time=NOW),)}

    assert [one.name for one in victims.choose([join(pod, nodes, jobs, OWNER) for pod in pods], 1, NOW)] == ["a-0"]
