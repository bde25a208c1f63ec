"""The pod with the output of a SlurmJob: when it is made, what it is told, and what keeps it from being made."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.joblogs import job_file, tokens
from slinky_operator.joblogs.job_file import Job, JobState
from slinky_operator.joblogs.tokens import Grant
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.errors import Forbidden, Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NODESETS, PODS, SECRETS, SLURMJOBS, Resource
from slinky_operator.slurm import naming
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.logs import bodies, streams
from slinky_operator.slurmjob.logs.facts import Facts
from slinky_operator.slurmjob.logs.streams import Surroundings
from slinky_operator.slurmjob.model.plan import SETTLED
from slinky_operator.slurmjob.observation import INDEXES_OF_JOBS
from slinky_operator.slurmjob.triggers import SlurmJobTriggers
from slurm_client import errors as slurm_errors
from slurm_client.testing.slurmctld.queue import uid_of
from tests.support.slurm_jobs import until
from tests.unit.slurmjob.worlds import JobWorld, job_world

KEY = bytes(range(64))
UID = GID = uid_of("alice")
ON_CLAIM = {"volume": {"claimName": "data", "mountPath": "/data"}}


class LogWorld:
    """A Cluster whose nodes are pods of NodeSet `w`, each with a job log server."""

    def __init__(self, world: JobWorld) -> None:
        self.world, self.kube = world, world.kube
        self.kube.put(NODESETS, nodeset("w", {"jobLogs": {}}))
        for number in range(4):
            self.kube.put(PODS, node_pod(f"w-{number}", f"10.0.0.{number + 1}"))
        own = {labels.LABEL_CLUSTER_UID: "cluster-1", labels.LABEL_CLUSTER_NAME: "slurm"}
        about = {"name": naming.job_logs_key("slurm"), "namespace": "ns", "labels": own}
        data = {naming.JOB_LOGS_KEY: base64.b64encode(KEY).decode()}
        self.kube.put(SECRETS, {"metadata": about, "data": data})

    def find(self, resource: Resource, name: str = "hello-logs") -> Object | None:
        return self.kube.objects.get((resource.plural, "team", name))

    @property
    def pod(self) -> Object:
        found = self.find(PODS)
        assert found is not None
        return found

    @property
    def file(self) -> Job:
        """What the followers are told."""
        found = self.find(SECRETS)
        assert found is not None
        return job_file.parse(base64.b64decode(found["data"][job_file.NAME]), "job.json")

    def grant(self, stream: str = "stdout") -> Grant:
        return tokens.verify(self.file.streams[stream].token, KEY, now=self.world.now().timestamp())

    @property
    def condition(self) -> tuple[str, str, str]:
        return self.world.condition("LogsAvailable")

    async def start(self, **spec: Any) -> int:
        """Submit a job, and let Slurm run it as a user of its own."""
        self.world.job(**{"logs": {}, **spec})
        number = await self.world.submitted()
        await self.world.until(lambda: self.world.status().get("state") == "Running" and self.condition[0])
        return number


def nodeset(name: str, spec: dict[str, Any]) -> Object:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"clusterName": "slurm", **spec}}


def node_pod(name: str, address: str, *, server: bool = True) -> Object:
    own = {
        labels.LABEL_CLUSTER_NAME: "slurm",
        labels.LABEL_NODESET_NAME: "w",
        labels.LABEL_NODESET_UID: "uid-w",
    }
    owner = {"kind": "NodeSet", "name": "w", "uid": "uid-w", "controller": True}
    containers = [{"name": naming.JOB_LOGS_CONTAINER}] if server else []
    return {
        "metadata": {"name": name, "namespace": "ns", "labels": own, "ownerReferences": [owner]},
        "spec": {"initContainers": containers, "hostname": name},
        "status": {"podIP": address},
    }


@pytest.fixture
async def logs() -> AsyncIterator[LogWorld]:
    async with job_world() as world:
        yield LogWorld(world)


async def test_a_pod_follows_both_streams_while_the_job_runs(logs: LogWorld) -> None:
    number = await logs.start()
    assert (logs.condition[0], logs.condition[1]) == ("True", "LogsShown")
    told = logs.file
    (job,) = logs.world.in_slurm()
    address = logs.kube.objects["pods", "ns", job.batch_host]["status"]["podIP"]
    assert (told.job, told.state, told.attempt, told.node) == (str(number), JobState.RUNNING, 0, job.batch_host)
    assert {one.url for one in told.streams.values()} == {f"http://{address}:{naming.JOB_LOGS_PORT}"}
    name = logs.world.status()["logs"]["name"]
    for stream, ending in (("stdout", "out"), ("stderr", "err")):
        grant = logs.grant(stream)
        assert grant.path == f"{naming.JOB_OUTPUT_FOLDER}/{name}-{number}.{ending}"
        assert (grant.uid, grant.gids, grant.job) == (UID, (GID,), str(number))


async def test_the_pod_has_no_rights_and_is_the_jobs_own(logs: LogWorld) -> None:
    await logs.start()
    spec = logs.pod["spec"]
    assert [one["name"] for one in spec["containers"]] == ["stdout", "stderr"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["restartPolicy"] == "Never"
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["runAsUser"] == spec["securityContext"]["runAsGroup"] == 65534
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"]:
        assert container["image"] == "operator:1"
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert container["command"][-1] == container["name"]
    for resource in (PODS, SECRETS):
        found = logs.find(resource)
        assert found is not None
        (owner,) = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("SlurmJob", "uid-team-hello")
    assert logs.pod["metadata"]["labels"][labels.LABEL_JOB_LOGS] == "true"


async def test_nothing_of_the_key_leaves_the_clusters_namespace(logs: LogWorld) -> None:
    await logs.start()
    forms = (KEY, base64.b64encode(KEY), KEY.hex().encode())
    for (_, namespace, _), found in logs.kube.objects.items():
        written = repr(found).encode() + b"".join(map(base64.b64decode, (found.get("data") or {}).values()))
        assert namespace == "ns" or not any(form in written for form in forms)


async def test_the_pod_ends_as_the_job_does(logs: LogWorld) -> None:
    number = await logs.start()
    mark = logs.pod["metadata"]["annotations"][labels.ANNOTATION_JOB_FILE]
    logs.world.slurm.world.exit_job(number, 3)
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    assert (logs.file.state, logs.file.status) == (JobState.ENDED, 3)
    assert logs.pod["metadata"]["annotations"][labels.ANNOTATION_JOB_FILE] != mark
    assert logs.condition[0] == "True"
    assert logs.world.status()["logs"]["isComplete"] is True


async def test_a_pod_deleted_after_the_end_stays_away(logs: LogWorld) -> None:
    number = await logs.start()
    logs.world.slurm.world.exit_job(number)
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    await logs.kube.delete(PODS, "hello-logs", "team")
    await logs.world.kill()
    await logs.world.step()
    await logs.world.step()
    assert logs.find(PODS) is None


async def test_a_pod_deleted_while_the_job_runs_comes_back_at_once(logs: LogWorld) -> None:
    await logs.start()
    async with logs.world.working():
        for _ in range(2):
            before = logs.pod
            logs.kube.forget(PODS, before)
            await until(lambda: logs.find(PODS) is not None)
            assert logs.pod["metadata"]["uid"] != before["metadata"]["uid"]
            assert logs.pod["spec"] == before["spec"]


async def test_a_pod_that_goes_while_it_is_written_comes_back(logs: LogWorld) -> None:
    await logs.start()
    before, change = logs.file, logs.kube.merge_patch

    async def goes(resource: Resource, *arguments: Any, **options: Any) -> Object:
        changed = await change(resource, *arguments, **options)
        if resource is PODS:
            logs.kube.forget(PODS, logs.pod)
            logs.world.upkeep.pod_gone("uid-team-hello")
        return changed

    logs.kube.merge_patch = goes  # type: ignore[method-assign]
    logs.world.ahead += timedelta(minutes=31)
    await logs.world.step()
    assert logs.file != before
    assert logs.find(PODS) is None
    logs.kube.merge_patch = change  # type: ignore[method-assign]
    await logs.world.step()
    assert logs.find(PODS) is not None


def test_the_loss_of_a_pod_wakes_its_job() -> None:
    jobs, lost = Store(INDEXES_OF_JOBS), list[str]()
    jobs.put({"metadata": {"name": "hello", "namespace": "team", "uid": "u", "resourceVersion": "1"}, "spec": {}})
    nothing = cast("Any", None)
    triggers = SlurmJobTriggers(jobs, nothing, nothing, nothing, lost.append)
    pod = node_pod("w-0", "10.0.0.1")
    ours = {**pod, "metadata": {**pod["metadata"], "ownerReferences": [{"kind": "SlurmJob", "uid": "u"}]}}
    bodies.prune_pod(ours)
    assert ours.keys() == {"metadata", "status"}
    assert list(triggers.log_pod(None, ours)) == []
    assert list(triggers.log_pod(ours, ours)) == []
    assert list(triggers.log_pod(pod, None)) == []
    assert lost == ["uid-w"]
    assert list(triggers.log_pod(ours, None)) == [("team", "hello")]


async def test_a_job_that_ends_at_once_has_its_pod_too(logs: LogWorld) -> None:
    logs.world.job(logs={})
    number = await logs.world.submitted()
    logs.world.slurm.world.exit_job(number)
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    assert (logs.file.state, logs.file.status) == (JobState.ENDED, 0)
    assert logs.pod


async def test_a_job_that_waits_has_no_pod(logs: LogWorld) -> None:
    logs.world.job("first", nodes=4)
    await logs.world.submitted("first")
    await logs.world.until(lambda: logs.world.status("first").get("state") == "Running")
    logs.world.job(nodes=4, logs={})
    await logs.world.submitted()
    await logs.world.until(lambda: logs.condition[1] == "JobNotStarted")
    assert logs.find(PODS) is None
    assert logs.find(SECRETS) is None


async def test_without_the_field_there_is_neither_pod_nor_condition(logs: LogWorld) -> None:
    logs.world.job()
    await logs.world.submitted()
    await logs.world.until(lambda: logs.world.status().get("state") == "Running")
    assert logs.find(PODS) is None
    assert logs.condition == ("", "", "")
    (job,) = logs.world.in_slurm()
    assert not job.standard_output.startswith(naming.JOB_OUTPUT_FOLDER)


async def test_tokens_are_renewed_while_the_job_runs(logs: LogWorld) -> None:
    await logs.start()
    before = logs.grant().expires
    logs.world.ahead += timedelta(minutes=31)
    await logs.world.step()
    assert logs.grant().expires > before
    result = await logs.world.step()
    assert result.requeue_after is not None
    assert 0 < result.requeue_after <= 1800


async def test_a_pass_that_changes_nothing_writes_nothing(logs: LogWorld) -> None:
    await logs.start()
    versions = [logs.pod["metadata"]["resourceVersion"], (logs.find(SECRETS) or {})["metadata"]["resourceVersion"]]
    for _ in range(3):
        await logs.world.step()
    assert versions == [
        logs.pod["metadata"]["resourceVersion"],
        (logs.find(SECRETS) or {})["metadata"]["resourceVersion"],
    ]


async def test_a_job_that_runs_again_elsewhere_is_followed_there(logs: LogWorld) -> None:
    number = await logs.start()
    logs.world.slurm.world.set_job_state(
        number, "RUNNING", nodes=("w-3",), node_list="w-3", batch_host="w-3", restarts=1
    )
    await logs.world.until(lambda: logs.file.attempt == 1)
    assert (logs.file.node, logs.file.streams["stdout"].url) == ("w-3", f"http://10.0.0.4:{naming.JOB_LOGS_PORT}")


async def test_the_next_submission_is_followed_by_the_same_pod(logs: LogWorld) -> None:
    first = await logs.start(backoffLimit=1)
    name, uid = logs.world.status()["logs"]["name"], logs.pod["metadata"]["uid"]
    logs.world.slurm.world.exit_job(first, 1)
    await logs.world.until(lambda: logs.world.status().get("jobId") not in {None, first})
    assert logs.file.state is JobState.RUNNING
    second = logs.world.status()["jobId"]
    await logs.world.until(lambda: logs.file.job == str(second))
    assert logs.file.attempt == 1
    assert logs.grant().path == f"{naming.JOB_OUTPUT_FOLDER}/{name}-{second}.out"
    assert logs.pod["metadata"]["uid"] == uid
    logs.world.slurm.world.exit_job(second, 4)
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    assert (logs.file.state, logs.file.status) == (JobState.ENDED, 4)


async def test_the_pod_ends_when_the_next_submission_is_cancelled_before_it_arrives(
    logs: LogWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: Any) -> None:
        raise slurm_errors.Timeout("no answer")

    first = await logs.start(backoffLimit=1)
    monkeypatch.setattr(slurm_calls, "submit", lost)
    logs.world.slurm.world.exit_job(first, 3)
    await logs.world.until(lambda: logs.world.condition("Submitted")[1] == "Submitting")
    assert logs.file.state is JobState.RUNNING
    logs.world.annotate(cancel="true")
    logs.world.ahead += SETTLED + timedelta(seconds=5)
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    assert (logs.file.job, logs.file.state) == (str(first), JobState.ENDED)
    assert logs.condition[1] == "LogsShown"


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


async def test_one_task_of_an_array_is_followed(logs: LogWorld) -> None:
    number = await logs.start(array="1-3", logs={"task": 2})
    await logs.world.until(lambda: logs.find(SECRETS))
    assert logs.file.job == f"{number}_2"
    assert logs.grant().path.endswith(f"-{number}_2.out")
    (task,) = [job for job in logs.world.in_slurm() if job.array_task_id == 2]
    logs.world.slurm.world.exit_job(task.id, 5)
    await logs.world.until(lambda: logs.file.state is JobState.ENDED)
    assert logs.file.status == 5
    assert logs.world.condition("Finished")[0] == "False"
    await logs.world.step()
    assert logs.condition[0] == "True"


async def test_the_first_task_is_followed_by_default(logs: LogWorld) -> None:
    number = await logs.start(array="3,5")
    await logs.world.until(lambda: logs.find(SECRETS))
    assert logs.file.job == f"{number}_3"


@pytest.mark.parametrize("spec", [{"array": "0-3"}, {}])
async def test_a_task_that_does_not_exist_is_refused(logs: LogWorld, spec: dict[str, Any]) -> None:
    logs.world.job(logs={"task": 4}, **spec)
    await logs.world.until(lambda: logs.world.condition("Submitted")[1] == "InvalidSpec")
    assert "spec.logs.task" in logs.world.condition("Submitted")[2]
    assert logs.world.in_slurm() == []


async def test_output_on_a_claim_is_read_there_as_the_user_of_the_job(logs: LogWorld) -> None:
    number = await logs.start(output="/data/a/%j.out", logs=ON_CLAIM)
    place = logs.file.streams["stdout"]
    assert (place.file, place.url, place.token) == (f"/data/a/{number}.out", "", "")
    assert (logs.pod["spec"]["securityContext"]["runAsUser"], logs.pod["spec"]["securityContext"]["runAsGroup"]) == (
        UID,
        GID,
    )
    (claim,) = [one["persistentVolumeClaim"] for one in logs.pod["spec"]["volumes"] if "persistentVolumeClaim" in one]
    assert claim == {"claimName": "data", "readOnly": True}
    for container in logs.pod["spec"]["containers"]:
        (mount,) = [one for one in container["volumeMounts"] if one["mountPath"] == "/data"]
        assert mount["readOnly"] is True


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
        (external, "runs elsewhere"),
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
    assert "is no pod of Cluster slurm" in logs.condition[2]
    assert logs.find(SECRETS) is None


@pytest.mark.parametrize(("uid", "gid"), [(0, GID), (0, 0), (None, GID), (UID, None)])
def test_output_of_root_or_of_nobody_known_is_not_shown(uid: int | None, gid: int | None) -> None:
    cluster = Cluster.parse({"metadata": {"name": "slurm", "namespace": "ns", "uid": "cluster-1"}, "spec": {}})
    path = f"{naming.JOB_OUTPUT_FOLDER}/a.out"
    known = Facts("7", JobState.RUNNING, "w-0", uid, gid, 0, (("stdout", path),))
    around = Surroundings(cluster, node_pod("w-0", "10.0.0.1"), KEY, None, 1.8e9, "u")
    assert streams.way(path, known, around).place is None
    assert streams.way(path, replace(known, uid=UID, gid=GID), around).place is not None


async def test_a_key_of_another_cluster_signs_nothing_and_the_right_one_is_waited_for(logs: LogWorld) -> None:
    stored = logs.kube.objects["secrets", "ns", naming.job_logs_key("slurm")]
    about = {**stored["metadata"], "labels": {labels.LABEL_CLUSTER_UID: "cluster-0"}}
    logs.kube.put(SECRETS, {**stored, "metadata": about})
    await logs.start()
    assert "the key of the job log servers is not known yet" in logs.condition[2]
    assert logs.find(SECRETS) is None
    logs.kube.put(SECRETS, stored)
    await logs.world.kill()
    await logs.world.until(lambda: logs.condition[0] == "True")


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


def test_a_long_name_is_cut() -> None:
    one, other = ("a" * 252 + end for end in "bc")
    assert len(bodies.name_of(one)) <= 253
    assert bodies.name_of(one) != bodies.name_of(other)
