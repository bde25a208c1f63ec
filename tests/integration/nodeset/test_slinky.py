"""Existing objects of Slinky 0.1 to 0.3: the manifests apply and run, and the pods are taken over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from slinky_api import labels
from slinky_operator.kube.calls.writing import Propagation
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NODESETS, PODS
from slinky_operator.slurm.pod_templates import first_process
from tests.integration.nodeset.conftest import Site
from tests.integration.nodeset.machines import Machines
from tests.support import served
from tests.support.control_plane import ControlPlane

MANIFESTS = Path(__file__).parent / "manifests"
FILES = sorted(path.relative_to(MANIFESTS).as_posix() for path in MANIFESTS.glob("slinky-*/*.yaml"))
HASH = "7d9f8c6b5"


def manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((MANIFESTS / name).read_text(encoding="utf-8"))
    return found


def is_within(small: Any, large: Any) -> bool:
    """Whether all that one object says is in another one."""
    if isinstance(small, dict) and isinstance(large, dict):
        return all(key in large and is_within(value, large[key]) for key, value in small.items() if value is not None)
    if isinstance(small, list) and isinstance(large, list):
        return len(small) == len(large) and all(map(is_within, small, large))
    return bool(small == large)


async def create(site: Site, name: str, called: str = "a") -> Object:
    body = manifest(name)
    body["metadata"] |= {"namespace": site.namespace, "name": called}
    return await site.kube.create(NODESETS, body)


@pytest.mark.parametrize("name", FILES)
async def test_a_manifest_applies_unchanged_and_runs(site: Site, machines: Machines, name: str) -> None:
    wanted = manifest(name)["spec"]
    for number in range(2):
        await site.add_host(f"m{number}", labels={"kubernetes.io/os": "linux"})
    await create(site, name)
    await site.until(lambda: site.ready(2), "two nodes are ready")

    stored = await site.nodeset()
    assert is_within(wanted, stored["spec"])
    status = stored["status"]
    assert status["desiredNumberScheduled"] == status["currentNumberScheduled"] == status["replicas"] == 2
    assert status["numberReady"] == status["readyReplicas"] == status["updatedNumberScheduled"] == 2
    pod = (await site.kube.list(PODS, site.namespace)).items[0]
    assert is_within(wanted["template"]["metadata"]["labels"], pod["metadata"]["labels"])
    template = {item["name"]: item for item in wanted["template"]["spec"]["containers"]}
    (slurmd,) = [item for item in pod["spec"]["containers"] if item["name"] == "slurmd"]
    assert slurmd["image"] == template["slurmd"]["image"]
    assert slurmd["command"] == list(first_process.above("slurmd"))
    given = dict(word.split("=") for word in template["slurmd"]["args"][-1].strip("'").split())
    line = dict(word.split("=") for word in slurmd["args"][slurmd["args"].index("--conf") + 1].split())
    assert line["Features"] == f"a,{given['Features']}"
    assert line.get("Weight") == given.get("Weight")


async def test_two_nodesets_whose_labels_are_the_same_do_not_mix(site: Site, machines: Machines) -> None:
    for name in ("a", "a-b"):
        body = manifest("slinky-0.2/nodeset.yaml")
        body["metadata"] |= {"name": name, "namespace": site.namespace}
        await site.kube.create(NODESETS, body)
    await site.until(lambda: site.ready(2), "the first is ready")
    await site.until(lambda: site.ready(2, "a-b"), "and so is the second")

    await site.scale(0)
    await site.until(lambda: _names(site, ["a-b-0", "a-b-1"]), "only the pods of one go")


async def _names(site: Site, wanted: list[str]) -> bool:
    return await site.names() == wanted


# Taking over


def on(host: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": [host]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}


async def leave_behind(
    site: Site, machines: Machines, name: str, pods: dict[str, str], called: str = "a"
) -> dict[str, str]:
    """What their operator leaves: a NodeSet with its status, and running pods; gives their uids."""
    await site.crash()
    obj = await create(site, name, called)
    metadata = obj["metadata"]
    status = {"nodeSetHash": HASH, "observedGeneration": metadata["generation"], "replicas": len(pods)}
    await site.kube.patch_status(NODESETS, called, status, site.namespace)
    template = obj["spec"]["template"]
    owner = {"apiVersion": NODESETS.api_version, "kind": "NodeSet", "name": called, "uid": metadata["uid"]}
    uids = {}
    for pod, host in pods.items():
        node = host or pod
        made = await site.kube.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": pod,
                    "namespace": site.namespace,
                    "labels": {**template["metadata"]["labels"], labels.LABEL_REVISION: HASH},
                    "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
                },
                "spec": {
                    "hostname": node,
                    "containers": [{"name": "slurmd", "image": "slurmd", "args": ["-Z"]}],
                    **({"affinity": {"nodeAffinity": on(host)}} if host else {}),
                },
            },
        )
        uids[pod] = made["metadata"]["uid"]
    await site.until(
        lambda: set(site.slurm.nodes) == {host or pod for pod, host in pods.items()}, "all have registered"
    )
    for pod, host in pods.items():
        site.slurm.update_node(host or pod, comment=f'{{"namespace": "{site.namespace}", "podName": "{pod}"}}')
    return uids


async def _uids(site: Site) -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in (await site.kube.list(PODS, site.namespace)).items
    }


async def test_pods_of_0_3_are_taken_over_as_they_stand(site: Site, machines: Machines) -> None:
    before = await leave_behind(site, machines, "slinky-0.3/nodeset.yaml", {"a-0": "", "a-1": ""})
    job = site.slurm.add_job(nodes=["a-0"])

    await site.start()
    await site.until(lambda: site.ready(2), "both count as ready")
    assert await _uids(site) == before
    assert {node.extra for node in site.slurm.nodes.values()} == {f"{site.namespace}/a"}
    assert not any(node.is_drain for node in site.slurm.nodes.values())
    pod = await site.kube.get(PODS, "a-0", site.namespace)
    assert [one["kind"] for one in pod["metadata"]["ownerReferences"]] == ["NodeSet", "ConfigMap"]
    assert (await site.nodeset())["status"]["updatedReplicas"] == 2

    await site.scale(0)
    await site.until(lambda: _names(site, ["a-0"]), "the idle one goes with a scale-in")
    site.slurm.finish_job(job.id)
    await site.until(lambda: _names(site, []), "and the busy one after its job")


async def test_pods_of_0_1_are_taken_over_as_they_stand(site: Site, machines: Machines) -> None:
    hosts = [await site.add_host(f"m{number}", labels={"kubernetes.io/os": "linux"}) for number in range(2)]
    pods = {f"a-x{number}": host for number, host in enumerate(hosts)}
    before = await leave_behind(site, machines, "slinky-0.1/nodeset-on-every-node.yaml", pods)

    await site.start()
    await site.until(lambda: site.ready(2), "both count as ready")
    assert await _uids(site) == before
    assert (await site.nodeset())["status"]["scalingMode"] == "DaemonSet"


@pytest.mark.parametrize("length", [58, 63])
async def test_one_with_a_longer_name_than_ours_is_drained_and_deleted(
    site: Site, machines: Machines, control_plane: ControlPlane, length: int
) -> None:
    called = "a" * length
    pods = [f"{called}-{number}" for number in range(2)]
    nodes = {pods[0]: "debug-0", pods[1]: "debug-1"}
    with served.any_name(control_plane.kubectl, called):
        await leave_behind(site, machines, "slinky-0.3/nodeset.yaml", nodes, called)
    job = site.slurm.add_job(nodes=["debug-0"])

    await site.start()
    await site.until(lambda: site.ready(2, called), "both count as ready")
    degraded = await site.condition("Degraded", called)
    assert degraded["reason"] == "InvalidSpec"
    assert "metadata.name: must be a DNS label without dots of at most 57 characters" in degraded["message"]
    assert "Create a NodeSet with a shorter name" in degraded["message"]

    await site.scale(1, called)
    await site.until(lambda: _names(site, pods[:1]), "the idle one goes with a scale-in")
    await site.delete(Propagation.BACKGROUND, called)
    await site.until(lambda: site.slurm.nodes["debug-0"].is_drain, "the busy one is drained")
    assert await site.names() == pods[:1]
    site.slurm.finish_job(job.id)
    await site.until(lambda: site.gone(called), "it goes after its job")


async def test_what_had_not_been_updated_is_updated(site: Site, machines: Machines) -> None:
    before = await leave_behind(site, machines, "slinky-0.3/nodeset.yaml", {"a-0": "", "a-1": ""})
    await site.kube.merge_patch(NODESETS, "a", {"spec": {"features": ["new"]}}, site.namespace)

    await site.start()
    await site.until(lambda: site.ready(2), "both are ready")
    await site.until(lambda: _all_new(site, before), "and recreated")


async def _all_new(site: Site, before: dict[str, str]) -> bool:
    now = await _uids(site)
    return await site.ready(2) and set(now) == set(before) and not set(now.values()) & set(before.values())
