"""What stands in the way of a pod with output: a restart, an end that was not seen, files out of reach, forgeries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.kube.errors import Forbidden, Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NODESETS, PODS, SECRETS, SLURMJOBS, Resource
from slinky_operator.pod_programs.joblogs.follower.job_file import JobState
from slinky_operator.slurm import naming
from slinky_operator.slurmjob.pods import routes
from slinky_operator.slurmjob.pods.log_facts import Facts
from slinky_operator.slurmjob.pods.routes import LogContext
from tests.unit.slurmjob.log_worlds import GID, KEY, ON_CLAIM, UID, LogWorld, node_pod, nodeset
from tests.unit.slurmjob.worlds import job_world


@pytest.fixture
async def logs() -> AsyncIterator[LogWorld]:
    async with job_world() as world:
        yield LogWorld(world)


@pytest.mark.parametrize("before", ["Running", "Finished"])
async def test_an_operator_that_ends_goes_on_where_it_was(logs: LogWorld, before: str) -> None:
    class Ended(BaseException):
        pass

    def end(status: Object) -> None:
        if any(one["type"] == before and one["status"] == "True" for one in status.get("conditions") or ()):
            logs.kube.before_status = None
            raise Ended

    logs.world.job(logs={})
    number = await logs.world.submitted()
    if before == "Finished":
        await logs.world.until(lambda: logs.find(PODS))
        logs.world.slurm.world.exit_job(number, 2)
    logs.kube.before_status = end
    with pytest.raises(Ended):
        await logs.world.until(lambda: False)
    uid = logs.pod["metadata"]["uid"]
    await logs.world.kill()
    if before == "Running":
        logs.world.slurm.world.exit_job(number, 2)
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    assert (logs.file.state, logs.file.status) == (JobState.ENDED, 2)
    assert logs.pod["metadata"]["uid"] == uid


async def test_the_end_from_slurmdbd_ends_the_pod(logs: LogWorld) -> None:
    logs.world.cluster(accounting={})
    number = await logs.start()
    before = logs.file.streams
    await logs.world.clients.close_all()
    logs.world.slurm.world.exit_job(number, 7)
    logs.world.slurm.world.clock.advance(1000)
    await logs.world.start()
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    assert (logs.file.state, logs.file.status, logs.file.streams) == (JobState.ENDED, 7, before)


async def test_an_end_that_was_not_seen_ends_the_pod(logs: LogWorld) -> None:
    number = await logs.start()
    await logs.world.clients.close_all()
    logs.world.slurm.world.exit_job(number)
    logs.world.slurm.world.clock.advance(1000)
    await logs.world.start()
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    assert (logs.file.state, logs.file.status) == (JobState.ENDED, 255)


async def test_output_elsewhere_is_out_of_reach(logs: LogWorld) -> None:
    await logs.start(output="/home/alice/%j.out")
    assert logs.condition[:2] == ("False", "OutputOutOfReach")
    assert "/home/alice/" in logs.condition[2]
    assert "spec.logs.volume" in logs.condition[2]
    assert logs.find(PODS) is None
    assert logs.find(SECRETS) is None


@pytest.mark.parametrize("output", ["/data/../home/alice/out", "/database/out"])
async def test_a_path_that_leads_out_of_the_claim_is_out_of_reach(logs: LogWorld, output: str) -> None:
    await logs.start(output=output, logs=ON_CLAIM)
    assert logs.condition[:2] == ("False", "OutputOutOfReach")
    assert logs.find(PODS) is None


def external(logs: LogWorld) -> None:
    logs.world.cluster(server="http://there:6820", token={"secretRef": "t"})


def without_servers(logs: LogWorld) -> None:
    logs.kube.put(NODESETS, nodeset("other", {}))


def outside(logs: LogWorld) -> None:
    logs.world.cluster(nodes=[{"name": "metal"}])


def old_pod(logs: LogWorld) -> None:
    logs.kube.put(PODS, node_pod("w-2", "10.0.0.3", server=False))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (external, "Cluster ns/slurm is external"),
        (without_servers, "NodeSet other of Cluster ns/slurm has no jobLogs"),
        (outside, "outside Kubernetes"),
        (old_pod, "pod w-2 has no job log server yet"),
    ],
)
async def test_a_job_that_may_run_without_a_server_writes_where_slurm_says(
    logs: LogWorld, change: Callable[[LogWorld], None], words: str
) -> None:
    change(logs)
    await logs.start()
    (job,) = logs.world.in_slurm()
    assert naming.JOB_OUTPUT_FOLDER not in job.standard_output
    assert logs.condition[:2] == ("False", "OutputOutOfReach")
    assert words in logs.condition[2]
    assert logs.find(PODS) is None


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["w", "gone"], "NodeSet gone of Cluster ns/slurm does not exist"),
        (["ends"], "ends of Cluster ns/slurm is being deleted"),
    ],
)
async def test_a_nodeset_of_the_partition_that_may_come_without_a_server_counts_as_one(
    logs: LogWorld, names: list[str], words: str
) -> None:
    ending = nodeset("ends", {"jobLogs": {}})
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    logs.kube.put(NODESETS, ending)
    logs.world.cluster(partitions=[{"name": "main", "nodeSets": names}])
    await logs.start(partition="main")
    (job,) = logs.world.in_slurm()
    assert naming.JOB_OUTPUT_FOLDER not in job.standard_output
    assert words in logs.condition[2]


async def test_a_partition_with_servers_is_enough(logs: LogWorld) -> None:
    without_servers(logs)
    logs.world.cluster(partitions=[{"name": "main", "nodeSets": ["w"]}], nodes=[{"name": "metal"}])
    await logs.start(partition="main")
    assert logs.condition[0] == "True"


@pytest.mark.parametrize(
    "owners",
    [
        [{"kind": "ReplicaSet", "name": "w", "uid": "uid-w", "controller": True}],
        [],
        [{"kind": "NodeSet", "name": "w", "uid": "uid-w"}],
        [{"kind": "NodeSet", "name": "w", "uid": "of another", "controller": True}],
        [{"kind": "ConfigMap", "name": "w", "uid": "uid-w", "controller": True}],
    ],
)
async def test_a_pod_that_only_says_so_is_no_node(logs: LogWorld, owners: list[dict[str, Any]]) -> None:
    for number in range(4):
        forged = node_pod(f"w-{number}", "10.9.9.9")
        forged["metadata"]["ownerReferences"] = owners
        logs.kube.put(PODS, forged)
    await logs.start()
    assert logs.condition[:2] == ("False", "OutputOutOfReach")
    assert "is not a pod of Cluster slurm" in logs.condition[2]
    assert logs.find(SECRETS) is None


@pytest.mark.parametrize(("uid", "gid"), [(0, GID), (0, 0), (None, GID), (UID, None)])
def test_output_of_root_or_of_nobody_known_is_not_shown(uid: int | None, gid: int | None) -> None:
    cluster = Cluster.parse({"metadata": {"name": "slurm", "namespace": "ns", "uid": "cluster-1"}, "spec": {}})
    path = f"{naming.JOB_OUTPUT_FOLDER}/a.out"
    known = Facts("7", JobState.RUNNING, "w-0", uid, gid, 0, (("stdout", path),))
    around = LogContext(cluster, node_pod("w-0", "10.0.0.1"), KEY, None, 1.8e9, "u")
    assert routes.log_route(path, known, around).place is None
    assert routes.log_route(path, replace(known, uid=UID, gid=GID), around).place is not None


async def test_a_key_of_another_cluster_signs_nothing_and_the_right_one_is_waited_for(logs: LogWorld) -> None:
    stored = logs.kube.objects["secrets", "ns", naming.job_logs_key("slurm")]
    about = {**stored["metadata"], "labels": {labels.LABEL_CLUSTER_UID: "cluster-0"}}
    logs.kube.put(SECRETS, {**stored, "metadata": about})
    await logs.start()
    assert "the operator does not have the key of the job log servers yet" in logs.condition[2]
    assert logs.find(SECRETS) is None
    logs.kube.put(SECRETS, stored)
    await logs.world.kill()
    await logs.world.until(lambda: logs.condition[0] == "True")


async def test_a_node_that_is_no_pod_is_looked_for_ever_more_rarely(logs: LogWorld) -> None:
    pods = [logs.kube.find(PODS, f"w-{number}", "ns") for number in range(4)]
    for pod in pods:
        assert pod is not None
        logs.kube.forget(PODS, pod)
    await logs.start(output="/var/spool/job-output/mine-%j.out")
    assert "is not a pod of Cluster slurm" in logs.condition[2]
    first, last = routes.LOOKS_S
    result = await logs.world.step()
    assert result.requeue_after is not None
    assert result.requeue_after >= first
    logs.world.ahead += timedelta(minutes=4)
    result = await logs.world.step()
    assert result.requeue_after is not None
    assert 60 <= result.requeue_after < last
    logs.world.ahead += timedelta(days=3)
    assert (await logs.world.step()).requeue_after == last
    for pod in pods:
        assert pod is not None
        logs.kube.put(PODS, pod)
    result = await logs.world.step()
    assert logs.condition[0] == "True"
    assert result.requeue_after != last


async def test_somebody_elses_pod_is_left_alone(logs: LogWorld) -> None:
    theirs = logs.kube.put(PODS, {"metadata": {"name": "hello-logs", "namespace": "team"}, "spec": {"a": "b"}})
    await logs.start()
    assert logs.condition[:2] == ("False", "LogPodRefused")
    assert logs.pod["spec"] == theirs["spec"]
    assert logs.world.status()["state"] == "Running"


async def test_a_refused_pod_keeps_nothing_from_the_job(logs: LogWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    create = logs.kube.create

    async def refuse(resource: Resource, body: Object, namespace: str | None = None) -> Object:
        if resource == PODS:
            raise Forbidden(Target("create", "pods", "team", "hello-logs"), "exceeded quota", status=403)
        return await create(resource, body, namespace)

    monkeypatch.setattr(logs.kube, "create", refuse)
    number = await logs.start()
    assert logs.condition[:2] == ("False", "LogPodRefused")
    assert "exceeded quota" in logs.condition[2]
    logs.world.slurm.world.exit_job(number, 6)
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    monkeypatch.undo()
    await logs.world.until(lambda: logs.find(PODS))
    assert (logs.file.state, logs.file.status) == (JobState.ENDED, 6)


async def test_a_status_that_somebody_has_written_names_no_file(logs: LogWorld) -> None:
    logs.world.job(logs={}, suspend=True)
    await logs.world.until(lambda: logs.world.condition("Submitted")[1] == "Suspended")
    found = logs.kube.objects["slurmjobs", "team", "hello"]
    status = {**found["status"], "logs": {"name": "../../etc/x"}}
    logs.kube.put(SLURMJOBS, {**found, "status": status})
    logs.world.job(suspend=False)
    await logs.world.submitted()
    (job,) = logs.world.in_slurm()
    assert ".." not in job.standard_output
    assert job.standard_output.startswith(f"{naming.JOB_OUTPUT_FOLDER}/{logs.world.status()['logs']['name']}")
