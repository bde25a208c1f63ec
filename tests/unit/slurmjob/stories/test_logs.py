"""The pod with the output of a SlurmJob: when it is made, what it reads, and what keeps it from being made."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, cast

import pytest

from hack.localkube.paths import PROJECT
from slinky_api import labels
from slinky_api.v1alpha1.slurmjob.files import JobLogVolume
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS, SECRETS, Resource
from slinky_operator.pod_programs.joblogs.follower.job_file import JobState
from slinky_operator.slurm import naming
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.model.stages.late_calls import SETTLED
from slinky_operator.slurmjob.observation import INDEXES_OF_JOBS
from slinky_operator.slurmjob.pods import bodies, log_pod
from slinky_operator.slurmjob.triggers import SlurmJobTriggers
from slurm_client import errors as slurm_errors
from tests.support.slurm_jobs import until
from tests.unit.slurmjob.log_worlds import GID, KEY, ON_CLAIM, UID, LogWorld, node_pod
from tests.unit.slurmjob.worlds import job_world


@pytest.fixture
async def logs() -> AsyncIterator[LogWorld]:
    async with job_world() as world:
        yield LogWorld(world)


def test_the_volume_of_the_output_covers_nothing_that_the_pod_needs() -> None:
    image = (PROJECT / "containers" / "operator" / "Dockerfile").read_text()
    (program,) = set(re.findall(r"ENV PATH=(/[^:]+)/bin:", image))
    for needed in (program, log_pod.FOLDER, "/usr/lib/python3", "/bin/sh", "/etc/passwd", "/run"):
        with pytest.raises(ValueError, match="must not cover the log pod's own program and system"):
            JobLogVolume.model_validate({"claimName": "data", "mountPath": needed})
    assert JobLogVolume.model_validate(ON_CLAIM["volume"]).mount_path == "/data"


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
            logs.world.logs.pod_gone("uid-team-hello")
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
    triggers = SlurmJobTriggers(jobs, nothing, nothing, lost.append)
    pod = node_pod("w-0", "10.0.0.1")
    owner = [{"kind": "SlurmJob", "uid": "u"}]
    forged = {**pod, "metadata": {**pod["metadata"], "ownerReferences": owner}}
    ours = {**pod, "metadata": {**pod["metadata"], "namespace": "team", "ownerReferences": owner}}
    bodies.prune_pod(ours)
    assert ours.keys() == {"metadata", "status"}
    assert list(triggers.log_pod(None, ours)) == []
    assert list(triggers.log_pod(ours, ours)) == []
    assert list(triggers.log_pod(pod, None)) == []
    assert list(triggers.log_pod(forged, None)) == []
    assert lost == []
    assert list(triggers.log_pod(ours, None)) == [("team", "hello")]
    assert lost == ["u"]


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


def test_a_long_name_is_cut() -> None:
    one, other = ("a" * 252 + end for end in "bc")
    assert len(log_pod.name_of(one)) <= 253
    assert log_pod.name_of(one) != log_pod.name_of(other)
