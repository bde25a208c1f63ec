"""Conditions of Kubernetes Nodes, and the drains that rules of a NodeSet make of them; on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hack.images.rootfs import ensure
from slinky_operator.kube import errors
from slinky_operator.kube.resources import NODES, PODS
from slinky_operator.reconcile.text import stamp
from tests.integration.nodeset.conftest import Site, reason
from tests.integration.nodeset.machines import Machines
from tests.integration.nodeset.real_slurm import Host, machine_of, real_site
from tests.support.control_plane import ControlPlane

TREE = """\
- topology: default
  cluster_default: true
  tree: {switches: [{switch: fabric, nodes: ""}]}
"""

RULE: dict[str, Any] = {"type": "KernelDeadlock"}

OF_SLINKY = {"app.kubernetes.io/name": "slurmd", "app.kubernetes.io/component": "worker"}
"""The labels by which NVSentinel's monitor of Slurm drains, and aicr, find pods of Slinky's NodeSets."""


async def drained(site: Site, pod: str) -> bool:
    """Whether a pod shows that its node is drained."""
    found = (await site.kube.get(PODS, pod, site.namespace))["status"].get("conditions", [])
    return any((one["type"], one["status"]) == ("SlurmNodeStateDrain", "True") for one in found)


async def seen_by_nvsentinel(site: Site) -> dict[str, str]:
    """The drains that NVSentinel's slurm-drain-monitor takes for failures, by pod: those of others than an operator."""
    selector = ",".join(f"{key}={value}" for key, value in OF_SLINKY.items())
    found: dict[str, str] = {}
    for pod in (await site.kube.list(PODS, site.namespace, label_selector=selector)).items:
        for one in pod["status"].get("conditions", []):
            message = one.get("message", "").strip()
            is_drain = (one["type"], one["status"]) == ("SlurmNodeStateDrain", "True")
            if is_drain and message and not message.startswith("slurm-operator:"):
                found[pod["metadata"]["name"]] = message
    return found


async def say(site: Site, host: str, status: str, *, age: float = 3600, message: str = "") -> None:
    """Write a condition of a Node, as its monitor does."""
    since = stamp(datetime.now(UTC) - timedelta(seconds=age))
    one = {"type": RULE["type"], "status": status, "reason": "Why", "message": message, "lastTransitionTime": since}
    await site.kube.patch_status(NODES, host, {"conditions": [one]})


async def told(site: Site, kind: str, *words: str) -> bool:
    """Whether a condition of the NodeSet has these words."""
    found = await site.condition(kind)
    return all(word in f"{found.get('status')} {found.get('reason')}: {found.get('message')}" for word in words)


async def test_a_bad_node_is_drained_and_given_back_and_an_administrators_drain_stays(
    site: Site, machines: Machines
) -> None:
    bad, good = machines.hosts = [await site.add_host("bad"), await site.add_host("good")]
    await site.apply(4, health={"nodeConditions": [RULE], "maxUnhealthy": "100%"})
    await site.until(lambda: site.ready(4), "four nodes are ready")
    site.slurm.add_job(nodes=["a-0"])
    site.slurm.update_node("a-2", state="IDLE+DRAIN+DYNAMIC_NORM", reason="disk")

    await say(site, good, "False")
    await say(site, bad, "True", message="task jbd2 is\nblocked")
    await site.until(lambda: reason(site, "a-0"), "the node there is drained")

    assert reason(site, "a-0") == f"slurm-operator: health ({site.namespace}/a): KernelDeadlock: task jbd2 is blocked"
    assert reason(site, "a-2") == "disk"
    assert not reason(site, "a-1") + reason(site, "a-3")
    await site.until(lambda: told(site, "Draining", "True", "(health"), "the NodeSet says so")
    assert await site.names() == ["a-0", "a-1", "a-2", "a-3"]

    # Neither what is not known, nor an operator that starts, nor a moment of health gives it back.
    await say(site, bad, "Unknown")
    await site.crash()
    await site.start()
    await say(site, bad, "False", age=0)
    await site.until(lambda: told(site, "HealthBudgetReached", "False", "keeps 1 node drained"), "it is looked at")
    assert reason(site, "a-0")
    await say(site, bad, "False")
    await site.until(lambda: not reason(site, "a-0"), "it is given back")
    assert reason(site, "a-2") == "disk"


async def test_a_check_that_is_wrong_everywhere_drains_the_budget(site: Site, machines: Machines) -> None:
    machines.hosts = [await site.add_host(name) for name in ("one", "two", "three")]
    await site.apply(3, health={"defaults": True})
    await site.until(lambda: site.ready(3), "three nodes are ready")

    for age, host in zip((100, 300, 200), machines.hosts, strict=True):
        await say(site, host, "True", age=age)
    await site.until(
        lambda: told(site, "HealthBudgetReached", "True", "2 nodes are not drained"), "the NodeSet says so"
    )

    assert sum(1 for number in range(3) if reason(site, f"a-{number}")) == 1
    assert await told(site, "Degraded", "HealthBudgetReached", "KernelDeadlock since")
    assert await told(site, "Ready", "True")
    await site.apply(3, health={"defaults": True, "maxUnhealthy": 3})
    await site.until(lambda: all(reason(site, f"a-{number}") for number in range(3)), "there is room for all")
    await site.apply(3)
    await site.until(lambda: not any(reason(site, f"a-{number}") for number in range(3)), "no rule is left")
    await site.until(lambda: told(site, "Degraded", "False"), "and nothing to report")
    assert await site.condition("HealthBudgetReached") == {}


async def test_a_bad_node_is_replaced_once_it_is_empty_and_so_often(site: Site, machines: Machines) -> None:
    async def uid() -> str:
        found = [one for one in (await site.kube.list(PODS, site.namespace)).items if one["metadata"]["name"] == "a-0"]
        return str(found[0]["metadata"]["uid"]) if found else ""

    async def tries() -> list[int]:
        status = (await site.nodeset()).get("status") or {}
        return [one["tries"] for one in status.get("replacements") or ()]

    machines.hosts = [await site.add_host("only")]
    replace = {"policy": "RecreatePod", "backoffSeconds": 0, "maxTries": 2}
    await site.apply(1, health={"nodeConditions": [{**RULE, "forSeconds": 0}], "replace": replace})
    await site.until(lambda: site.ready(1), "the node is ready")
    first, job = await uid(), site.slurm.add_job(nodes=["a-0"])

    await say(site, machines.hosts[0], "True")
    await site.until(lambda: reason(site, "a-0"), "the node is drained")
    assert (await uid(), await tries()) == (first, [])

    # There is no other Node: both tries end where they began.
    site.slurm.finish_job(job.id)
    await site.until(lambda: told(site, "Degraded", "ReplacementFailed", "bad after 2 tries"), "both were in vain")
    assert await uid() not in {first, ""}
    assert await tries() == [2]
    assert reason(site, "a-0")
    await say(site, machines.hosts[0], "False")
    await site.until(lambda: not reason(site, "a-0"), "the Node is well")
    await site.until(lambda: told(site, "Degraded", "False"), "nothing is left to tell")


async def test_pods_show_the_states_of_their_nodes_and_no_more_when_that_is_switched_off(
    site: Site, machines: Machines
) -> None:
    async def states(pod: str) -> dict[str, str]:
        found = (await site.kube.get(PODS, pod, site.namespace))["status"].get("conditions", [])
        kinds = (one for one in found if one["type"].startswith("SlurmNodeState") and one["status"] == "True")
        return {one["type"].removeprefix("SlurmNodeState"): one.get("message", "") for one in kinds}

    async def shows(pod: str, *kinds: str) -> bool:
        return sorted(await states(pod)) == sorted(kinds)

    await site.apply(2, health={"podConditions": "Problems"})
    await site.until(lambda: site.ready(2), "two nodes are ready")
    job = site.slurm.add_job(nodes=["a-0"])
    site.slurm.update_node("a-0", state="ALLOCATED+DRAIN+DYNAMIC_NORM", reason="[HC] ECC\nerrors")
    site.slurm.update_node("a-1", state="DOWN+DYNAMIC_NORM", reason="board")

    await site.until(lambda: shows("a-0", "Allocated", "Drain"), "it is drained, and busy")
    await site.until(lambda: shows("a-1", "Down"), "the other one is down")
    assert await states("a-0") == {"Allocated": "", "Drain": "[HC] ECC errors"}
    site.slurm.finish_job(job.id)
    site.slurm.update_node("a-0", state="IDLE+DRAIN+DYNAMIC_NORM", reason="[HC] ECC errors")
    await site.until(lambda: shows("a-0", "Drain", "Idle"), "it is drained, and proven empty")
    site.slurm.update_node("a-0", state="IDLE+DYNAMIC_NORM", reason="")
    await site.until(lambda: shows("a-0"), "it takes jobs")
    await site.apply(2, health={"podConditions": "All"})
    await site.until(lambda: shows("a-0", "Idle"), "that is shown, too")
    await site.apply(2)
    await site.until(lambda: shows("a-0"), "nothing is shown any more")
    await site.until(lambda: shows("a-1"), "nor of the other one")


async def test_nvsentinel_finds_the_pods_and_the_drains_of_others(site: Site, machines: Machines) -> None:
    good, bad = machines.hosts = [await site.add_host("good"), await site.add_host("bad")]
    health = {"nodeConditions": [RULE], "maxUnhealthy": "100%", "podConditions": "Problems"}
    await site.apply(2, health=health, template={"metadata": {"labels": OF_SLINKY}})
    await site.until(lambda: site.ready(2), "two nodes are ready")

    await say(site, good, "False")
    await say(site, bad, "True")
    await site.until(lambda: drained(site, "a-1"), "the pod shows the drain of the rule")
    site.slurm.update_node("a-0", state="IDLE+DRAIN+DYNAMIC_NORM", reason="[HC] XID 79")
    await site.until(lambda: drained(site, "a-0"), "and that of somebody else")

    assert await seen_by_nvsentinel(site) == {"a-0": "[HC] XID 79"}


@pytest.fixture(params=["24.11", "26.05"])
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    with Host(ensure(request.param)) as host:
        yield host


@pytest.mark.timeout(600)
async def test_a_real_slurm_drains_under_a_job_that_goes_on(
    control_plane: ControlPlane, crds: None, host: Host
) -> None:
    async with real_site(control_plane, host) as site:
        await site.add_host("machine")
        rules = {"nodeConditions": [{**RULE, "reason": 'call "us" (24/7): #1'}], "maxUnhealthy": 1}
        await site.apply(2, health=rules)
        await site.until(lambda: site.ready(2), "two nodes are ready")
        job = host.sbatch("sleep 1000", "-w", "a-0")
        await site.until(lambda: host.job_state(job) == "RUNNING", "the job runs")
        host.run("scontrol", "update", "nodename=a-1", "state=drain", "reason=new disk")

        def record(node: str) -> str:
            return host.run("scontrol", "--oneliner", "show", "node", node).stdout

        await say(site, machine_of(site), "True")
        words = f'Reason=slurm-operator: health ({site.namespace}/a): call "us" (24/7): #1 ['
        await site.until(lambda: words in record("a-0"), "the node is drained")
        assert "DRAIN" in record("a-0").split("State=")[1].split()[0]
        assert host.job_state(job) == "RUNNING"
        await say(site, machine_of(site), "False")
        await site.until(lambda: "DRAIN" not in record("a-0").split("State=")[1].split()[0], "it is given back")
        assert host.job_state(job) == "RUNNING"
        assert "Reason=new disk [" in record("a-1")
        if host.root == ensure("26.05"):
            await _placed(site, host)
            assert host.job_state(job) == "RUNNING"


async def _placed(site: Site, host: Host) -> None:
    """Nodes get their place in a tree by labels of their Node, and lose it with these; switches come by themselves."""
    host.write_file("topology.yaml", TREE, 0o444)
    host.reconfigure()

    def switches() -> dict[str, str]:
        lines = host.run("scontrol", "show", "topology").stdout.splitlines()
        words = [dict(word.split("=") for word in line.split() if "=" in word) for line in lines]
        return {one["SwitchName"]: one.get("Nodes", "") for one in words if one.get("Level") == "0"}

    await site.apply(2, topology=[{"name": "default", "root": "fabric", "nodeLabels": ["zone", "rack"]}])
    await site.label(machine_of(site), zone="eu-1", rack="r7")
    await site.until(lambda: switches() == {"eu-1/r7": "a-[0-1]"}, "both nodes are below the switch of their rack")
    host.reconfigure()
    assert switches() == {"eu-1/r7": "a-[0-1]"}
    await site.label(machine_of(site), rack="r8")
    await site.until(lambda: switches() == {"eu-1/r7": "", "eu-1/r8": "a-[0-1]"}, "they follow their Node")
    await site.label(machine_of(site), rack=None)
    await site.until(lambda: switches() == {"eu-1/r7": "", "eu-1/r8": ""}, "they have no place any more")
    await site.until(lambda: told(site, "Degraded", "TopologyLabelsMissing", "label rack"), "and the NodeSet says why")


@pytest.mark.parametrize(
    ("health", "words"),
    [
        ({}, "health has no effect without them"),
        ({"nodeConditions": [RULE, {**RULE, "status": "False"}]}, r'duplicate entries for key \[type="KernelDeadlock"'),
        ({"nodeConditions": [{**RULE, "reason": "two\nlines"}]}, "should match"),
        ({"nodeConditions": [{**RULE, "forSeconds": 86401}]}, "less than or equal to 86400"),
        ({"defaults": True, "maxUnhealthy": "110%"}, "should match"),
    ],
)
async def test_rules_that_mean_nothing_are_refused(site: Site, health: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.KubeError, match=words):
        await site.apply(1, health=health)
