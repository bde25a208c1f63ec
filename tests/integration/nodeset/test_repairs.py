"""Pods whose slurmds run and never register, on a real API server; Slurm and the machines are simulated."""

from __future__ import annotations

from datetime import timedelta

import pytest

from slinky_operator.kube.resources import EVENTS, PODS
from slinky_operator.nodeset import controller
from slinky_operator.nodeset.planning import requeue
from tests.integration.nodeset.conftest import Site
from tests.integration.nodeset.machines import Machines

LATER = timedelta(minutes=10)


async def uids(site: Site) -> dict[str, str]:
    pods = (await site.kube.list(PODS, site.namespace)).items
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


async def says(site: Site, condition: str, *words: str) -> bool:
    found = await site.condition(condition)
    return found.get("reason") == "NotRegistered" and all(word in found["message"] for word in words)


async def repaired(site: Site) -> list[str]:
    events = (await site.kube.list(EVENTS, site.namespace)).items
    return [event["message"] for event in events if event["reason"] == "PodsRepaired"]


async def ends(site: Site, name: str) -> bool:
    return "deletionTimestamp" in (await site.kube.get(PODS, name, site.namespace))["metadata"]


async def two_and_a_silent_one(site: Site, machines: Machines) -> None:
    machines.silent = {"a-1"}
    await site.apply(3)
    await site.until(lambda: says(site, "Progressing", "a-1 has run since", "it is recreated at"), "a-1 is waited for")
    await site.until(lambda: {"a-0", "a-2"} == set(site.slurm.nodes), "the others have registered")


async def test_a_slurmd_that_never_registers_is_told_and_made_anew(site: Site, machines: Machines) -> None:
    await two_and_a_silent_one(site, machines)
    before = await uids(site)

    machines.ending = False
    site.ahead = LATER
    await site.until(lambda: ends(site, "a-1"), "it is deleted")
    # The one in its place has just begun, by this clock too, and is not late before it has had its chance.
    site.ahead = timedelta(0)
    machines.silent = set()
    machines.ending = True

    await site.until(lambda: site.ready(3), "the one in its place has registered")
    now = await uids(site)
    assert {name for name in now if now[name] != before[name]} == {"a-1"}
    await site.until(lambda: repaired(site), "an Event says so")
    (told,) = await repaired(site)
    assert "a-1 (runs since " in told
    assert "it cannot reach slurmctld" in told
    assert (await site.condition("Degraded"))["status"] == "False"


async def test_a_job_that_names_its_node_keeps_it(
    site: Site, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No event tells of the end of a job on a node that Slurm does not show: the next look does.
    for module in (controller, requeue):
        monkeypatch.setattr(module, "LATER", 1.0)
    await two_and_a_silent_one(site, machines)
    before = await uids(site)
    job = site.slurm.add_job(nodes=["a-1"])
    site.ahead = LATER

    await site.until(lambda: says(site, "Degraded", f"its node is named by jobs {job.id}"), "the job is reported")
    assert await uids(site) == before
    assert site.slurm.jobs[job.id].is_running

    machines.silent = set()
    site.slurm.finish_job(job.id)
    await site.until(lambda: site.ready(3), "then it goes")


async def test_while_slurm_does_not_answer_it_stays_and_has_all_its_time_again_after_that(
    site: Site, machines: Machines
) -> None:
    await two_and_a_silent_one(site, machines)
    before = await uids(site)
    site.slurm.faults.controller_down()
    await site.until(lambda: unreachable(site), "the operator knows that it has said so")
    site.ahead = LATER
    site.slurm.faults.clear()

    await site.until(lambda: says(site, "Progressing", "a-1 has run since", "it is recreated at"), "it is waited for")

    assert await uids(site) == before
    assert await repaired(site) == []


def unreachable(site: Site) -> bool:
    """Whether the NodeSet is said to be without Slurm where the operator looks that up: in its cache."""
    obj = site.nodesets.store.get(site.namespace, "a") or {}
    conditions = obj.get("status", {}).get("conditions", [])
    return any((one["type"], one["status"]) == ("SlurmReachable", "False") for one in conditions)


async def test_a_record_that_we_drained_goes_when_its_pod_has(site: Site, machines: Machines) -> None:
    await site.apply(1)
    await site.until(lambda: site.ready(1), "a node is ready")
    await site.crash()
    # What an operator leaves behind that dies between a scale-in and its end, where Slurm has given up the node.
    site.slurm.add_node("a-5", state="DOWN+DRAIN", reason="slurm-operator: scale-in (x)", extra=tag(site))
    site.slurm.add_node("a-6", state="DOWN+DRAIN", reason="somebody's", extra=tag(site))

    await site.start()

    await site.until(lambda: "a-5" not in site.slurm.nodes, "the record of ours goes")
    assert site.slurm.nodes["a-6"].reason == "somebody's"


def tag(site: Site) -> str:
    return f"{site.namespace}/a"


async def test_the_time_that_was_told_outlives_the_operator(site: Site, machines: Machines) -> None:
    await two_and_a_silent_one(site, machines)
    # Beyond the moment in which a slurmd is on its way as a rule.
    site.ahead = timedelta(seconds=60)
    await site.apply(3, minReadySeconds=1)
    await site.until(lambda: written(site), "it is written on the pod")
    told = await written(site)
    reached = (await site.condition("SlurmReachable"))["lastTransitionTime"]
    await site.crash()
    site.ahead = timedelta(seconds=120)
    await site.start()

    await site.apply(3, minReadySeconds=2)
    await site.until(lambda: seen(site), "the operator that was started has looked")
    await site.until(lambda: says(site, "Progressing", f"it is recreated at {told}"), "the same time is reported")
    assert await written(site) == told
    assert (await site.condition("SlurmReachable"))["lastTransitionTime"] >= reached


async def seen(site: Site) -> bool:
    obj = await site.nodeset()
    return bool(obj["status"]["observedGeneration"] == obj["metadata"]["generation"])


async def written(site: Site) -> str:
    metadata = (await site.kube.get(PODS, "a-1", site.namespace))["metadata"]
    return str((metadata.get("annotations") or {}).get("nodeset.slinky.slurm.net/pod-register-by") or "")
