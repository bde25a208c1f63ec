"""What is removed from the spec is removed from the daemons; what others have added stays. With a real API server."""

from __future__ import annotations

import copy
from typing import Any

from slinky_operator.kube.resources import DEPLOYMENTS, SERVICES, STATEFULSETS
from tests.integration.cluster.conftest import Bench, passes, ready

SIDE: dict[str, Any] = {"name": "side", "image": "busybox:1", "ports": [{"containerPort": 80}]}


def template(own: str) -> dict[str, Any]:
    """A template with one of everything, for the daemon whose container has this name."""
    container = {
        "name": own,
        "env": [
            {"name": "MORE", "value": "yes"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "ports": [{"name": "more", "containerPort": 9999}],
        "volumeMounts": [{"name": "more", "mountPath": "/more"}],
        "securityContext": {
            "allowPrivilegeEscalation": True,
            "capabilities": {"add": ["SYS_ADMIN"]},
            "privileged": True,
        },
    }
    token: dict[str, Any] = {"serviceAccountToken": {"path": "token"}}
    name = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    return {
        "metadata": {"annotations": {"more": "yes"}, "labels": {"team": "hpc"}},
        "spec": {
            "containers": [container, SIDE],
            "hostPID": True,
            "nodeSelector": {"disk": "fast", "zone": "a"},
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
            "volumes": [
                {"name": "more", "emptyDir": {}},
                {"name": "made", "projected": {"sources": [token, {"downwardAPI": {"items": [name]}}]}},
            ],
        },
    }


FULL: dict[str, Any] = {
    "controller": {
        "template": template("slurmctld"),
        "service": {"annotations": {"more": "yes"}, "labels": {"team": "hpc"}},
    },
    "restapi": {"template": template("slurmrestd")},
}
BARE: dict[str, Any] = {
    "controller": {"template": None, "service": None},
    "restapi": {"template": None},
}


def parts(live: dict[str, Any], own: str) -> dict[str, Any]:
    """Everything of the templates above that an object still has."""
    pod = live["spec"]["template"]
    spec = pod["spec"]
    container = next(one for one in spec["containers"] if one["name"] == own)
    found = {
        "annotation": (pod["metadata"].get("annotations") or {}).get("more"),
        "label": pod["metadata"]["labels"].get("team"),
        "sidecar": [one["name"] for one in spec["containers"] if one["name"] == "side"],
        "env": [one["name"] for one in container.get("env") or () if one["name"] in {"MORE", "NODE"}],
        "port": [one for one in container["ports"] if one["containerPort"] == 9999],
        "mount": [one for one in container["volumeMounts"] if one["name"] == "more"],
        "volumes": [one["name"] for one in spec["volumes"] if one["name"] in {"more", "made"}],
        "privilege": container["securityContext"].get("privileged"),
        "capability": container["securityContext"]["capabilities"].get("add"),
        "hostPID": spec.get("hostPID"),
        "selector": spec.get("nodeSelector"),
        "tolerations": spec.get("tolerations"),
    }
    return {name: value for name, value in found.items() if value}


async def rests(bench: Bench, operator: Any) -> bool:
    """Whether passes write nothing, once answers to the last writes have come."""
    for _ in range(20):
        operator.requests.clear()
        await passes(operator, (bench.namespace, "slurm"), 5)
        if not operator.writes:
            return True
    return False


async def daemons(bench: Bench) -> tuple[dict[str, Any], dict[str, Any]]:
    return (
        await bench.kube.get(STATEFULSETS, "slurm-controller", bench.namespace),
        await bench.kube.get(DEPLOYMENTS, "slurm-restapi", bench.namespace),
    )


async def until_parts(bench: Bench, *, there: bool) -> None:
    while True:
        slurmctld, slurmrestd = await daemons(bench)
        found = parts(slurmctld, "slurmctld"), parts(slurmrestd, "slurmrestd")
        if all(map(bool, found)) if there else not any(found):
            return


async def test_every_part_of_a_template_goes_with_it(bench: Bench) -> None:
    await bench.create(FULL)
    async with bench.operator() as operator:
        await bench.until(ready)
        await until_parts(bench, there=True)
        assert await rests(bench, operator)
        operator.requests.clear()
        generation = await bench.edit(BARE)
        await bench.until(lambda status: ready(status) and status["observedGeneration"] >= generation)
        await until_parts(bench, there=False)
        # slurmctld's pod is replaced by one that has been tried, as for any other change.
        assert sum(one[:2] == ("create", "pods") for one in operator.requests) == 1
        service = await bench.kube.get(SERVICES, "slurm-controller", bench.namespace)
        assert "more" not in (service["metadata"].get("annotations") or {})
        assert "team" not in service["metadata"]["labels"]
        assert await rests(bench, operator)
        await bench.no_preflights()


async def test_a_part_of_what_is_one_value_goes_too(bench: Bench) -> None:
    await bench.create(FULL)
    async with bench.operator() as operator:
        await bench.until(ready)
        await until_parts(bench, there=True)
        smaller = copy.deepcopy(FULL)
        for field in ("controller", "restapi"):
            spec = smaller[field]["template"]["spec"]
            del spec["nodeSelector"]["zone"], spec["tolerations"][0]["tolerationSeconds"]
        smaller["controller"]["template"]["spec"]["nodeSelector"]["zone"] = None
        smaller["restapi"]["template"]["spec"]["nodeSelector"]["zone"] = None
        await bench.edit(smaller)
        while True:
            specs = [one["spec"]["template"]["spec"] for one in await daemons(bench)]
            if all(one["nodeSelector"] == {"disk": "fast"} for one in specs) and not any(
                "tolerationSeconds" in one["tolerations"][0] for one in specs
            ):
                break
        assert await rests(bench, operator)


async def test_what_others_add_stays_and_is_not_written_over(bench: Bench) -> None:
    await bench.create()
    async with bench.operator() as operator:
        await bench.until(ready)
        slurmctld, slurmrestd = await daemons(bench)
        for resource, live in ((STATEFULSETS, slurmctld), (DEPLOYMENTS, slurmrestd)):
            live["metadata"]["labels"]["theirs"] = "yes"
            live["spec"]["template"]["spec"]["containers"].append({"name": "theirs", "image": "busybox:1"})
            live["spec"]["template"]["spec"]["nodeSelector"] = {"theirs": "yes"}
            await bench.kube.replace(resource, live)
        await bench.kube.merge_patch(
            SERVICES, "slurm-controller", {"metadata": {"labels": {"theirs": "yes"}}}, bench.namespace
        )
        assert await rests(bench, operator)
        # A change of ours leaves theirs in place, also where slurmctld's pod is tried first.
        await bench.edit(FULL)
        await until_parts(bench, there=True)
        await bench.edit(BARE)
        while True:
            both = await daemons(bench)
            if not any("side" in str(one["spec"]["template"]["spec"]["containers"]) for one in both):
                break
        for live in both:
            assert live["metadata"]["labels"]["theirs"] == "yes"
            assert "theirs" in [one["name"] for one in live["spec"]["template"]["spec"]["containers"]]
        assert await rests(bench, operator)


async def test_an_operator_without_memory_writes_nothing_to_what_an_older_one_has_made(bench: Bench) -> None:
    await bench.create(FULL)
    async with bench.operator() as operator:
        await bench.until(ready)
        await until_parts(bench, there=True)
        assert await rests(bench, operator)
        before = await daemons(bench)
    async with bench.operator() as operator:
        assert await rests(bench, operator)
        after = await daemons(bench)
    for field in ("generation", "resourceVersion"):
        assert [one["metadata"][field] for one in after] == [one["metadata"][field] for one in before]
