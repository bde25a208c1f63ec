"""Files that are copied to the nodes before a SlurmJob is submitted: by which way, as whom, and what holds it back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, PODS, SECRETS
from slinky_operator.pod_programs.joblogs.copies.orders import Report
from slinky_operator.slurm import naming
from slinky_operator.slurmjob.execute.submission import LACKING_S
from tests.unit.slurmjob.file_worlds import SHARED, FileWorld, file_world, result
from tests.unit.slurmjob.log_worlds import node_pod

UID, GID = 2001, 2002
COPIED = Report("", is_final=True, files=2, size=10)
MISSING = Report("there is no key", is_final=True)
AWAY = Report("the server does not answer")
CLAIM = {"persistentVolumeClaim": {"claimName": "in"}}
TARGET = "/var/spool/job-output/given"
SHARED_OUTPUT = {"name": "job-output", "persistentVolumeClaim": {"claimName": "output"}}


def asked(volume: dict[str, Any] = CLAIM, path: str = "/data/given", **more: Any) -> dict[str, Any]:
    given = {"from" if name == "source" else name: value for name, value in more.items()}
    return {"volume": volume, "path": path, **given}


def node_with(number: int, volume: Object) -> Object:
    pod = node_pod(f"w-{number}", f"10.0.0.{number + 1}")
    return {**pod, "spec": {**pod["spec"], "volumes": [volume]}}


@pytest.fixture
async def files() -> AsyncIterator[FileWorld]:
    async with file_world() as world:
        world.world.tenants = [{**world.world.tenants[0], "uid": UID, "gid": GID}]
        world.world.cluster()
        world.claim("in")
        yield world


def prepared(files: FileWorld) -> tuple[str, str, str]:
    return files.world.condition("Prepared")


def submitted(files: FileWorld) -> tuple[str, str, str]:
    return files.world.condition("Submitted")


def share_output(files: FileWorld) -> None:
    for number in range(4):
        files.kube.put(PODS, node_with(number, SHARED_OUTPUT))


async def test_the_job_is_submitted_once_its_files_are_there(files: FileWorld) -> None:
    files.world.job(sharedVolume=SHARED, prepare=[asked(maxSize="3Mi", maxFiles=5, source="a/b")])
    await files.world.until(lambda: files.names() == ["hello-prepare"])
    (copy,) = files.copies("hello-prepare")
    assert (copy.source.folder, copy.source.path, copy.source.is_projected) == ("/volumes/0", "a/b", False)
    assert (copy.target.folder, copy.target.path) == ("/shared", "given")
    assert (copy.limits.size, copy.limits.entries, copy.is_private) == (3 * 2**20, 5, True)
    spec = files.get(PODS, "hello-prepare")["spec"]
    assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsGroup"]) == (UID, GID)
    assert "fsGroup" not in spec["securityContext"]
    mounts = {one["mountPath"]: one.get("readOnly", False) for one in spec["containers"][0]["volumeMounts"]}
    assert mounts == {"/run/copies": True, "/volumes/0": True, "/shared": False}
    assert submitted(files)[:2] == ("False", "Preparing")
    assert prepared(files)[:2] == ("Unknown", "Copying")
    assert files.world.in_slurm() == []
    files.pod_ends([COPIED], "hello-prepare")
    await files.world.submitted()
    assert prepared(files) == ("True", "Copied", "prepare[0]: 2 files, 10 bytes")
    assert len(files.world.in_slurm()) == 1
    await files.world.until(lambda: files.world.status().get("state") == "Running")
    assert prepared(files)[0] == "True"


async def test_files_go_through_a_server_where_nodes_share_its_folder(files: FileWorld) -> None:
    share_output(files)
    files.world.job(prepare=[asked(path=TARGET)])
    await files.world.until(files.names)
    (copy,) = files.copies("hello-prepare")
    assert copy.target.url == f"http://10.0.0.1:{naming.JOB_LOGS_PORT}"
    permit = files.permit(copy.target)
    assert (permit.uid, permit.gids, permit.path, permit.writes) == (UID, (GID,), TARGET, True)


@pytest.mark.parametrize(
    "volume",
    [{"name": "job-output", "emptyDir": {}}, {"name": "job-output", "persistentVolumeClaim": {"claimName": "b"}}],
)
async def test_a_folder_that_nodes_do_not_share_is_not_written_to(files: FileWorld, volume: Object) -> None:
    share_output(files)
    files.kube.put(PODS, node_with(2, volume))
    files.world.job(prepare=[asked(path=TARGET)])
    await files.world.until(lambda: prepared(files)[1] == "FilesOutOfReach")
    assert "do not share" in prepared(files)[2]
    assert files.names() == []
    files.kube.put(PODS, node_with(2, SHARED_OUTPUT))
    await files.world.until(files.names)


async def test_another_attempt_asks_another_node(files: FileWorld) -> None:
    share_output(files)
    files.world.job(prepare=[asked(path=TARGET)])
    await files.world.until(files.names)
    files.pod_ends([AWAY], "hello-prepare")
    await files.world.until(lambda: prepared(files)[1] == "CopyFailed")
    files.world.ahead += timedelta(seconds=31)
    await files.world.until(lambda: "hello-prepare-2" in files.names())
    (copy,) = files.copies("hello-prepare-2")
    assert copy.target.url == f"http://10.0.0.2:{naming.JOB_LOGS_PORT}"


async def test_keys_of_config_maps_and_secrets_are_files(files: FileWorld) -> None:
    volumes: list[dict[str, Any]] = [{"configMap": {"name": "input"}}, {"secret": {"secretName": "password"}}]
    for resource, name in ((CONFIGMAPS, "input"), (SECRETS, "password")):
        files.kube.put(resource, {"metadata": {"name": name, "namespace": "team"}})
    files.world.job(sharedVolume=SHARED, prepare=[asked(one) for one in volumes])
    await files.world.until(files.names)
    assert all(one.source.is_projected for one in files.copies("hello-prepare"))
    mounted = files.get(PODS, "hello-prepare")["spec"]["volumes"]
    assert [{key: one[key] for key in one if key != "name"} for one in mounted[1:3]] == volumes


@pytest.mark.parametrize(
    ("volume", "name"),
    [
        ({"persistentVolumeClaim": {"claimName": "nowhere"}}, "PersistentVolumeClaim nowhere"),
        ({"configMap": {"name": "nowhere"}}, "ConfigMap nowhere"),
        ({"secret": {"secretName": "nowhere"}}, "Secret nowhere"),
    ],
)
async def test_a_volume_that_does_not_exist_is_named(files: FileWorld, volume: dict[str, Any], name: str) -> None:
    files.world.job(sharedVolume=SHARED, prepare=[asked(volume)])
    await files.world.until(lambda: submitted(files)[1] == "VolumeNotFound")
    assert name in submitted(files)[2]
    assert files.names() == []
    assert files.world.in_slurm() == []


async def test_a_missing_claim_for_results_keeps_files_from_being_prepared(files: FileWorld) -> None:
    wanted = result()
    wanted["volume"] = {"persistentVolumeClaim": {"claimName": "nowhere"}}
    files.world.job(sharedVolume=SHARED, prepare=[asked()], results=[wanted])
    await files.world.until(lambda: submitted(files)[1] == "VolumeNotFound")
    assert files.names() == []


async def test_what_fails_keeps_the_job_from_being_submitted(files: FileWorld) -> None:
    files.world.job(sharedVolume=SHARED, prepare=[asked(), asked(path="/data/b")])
    await files.world.until(files.names)
    files.pod_ends([MISSING, COPIED], "hello-prepare")
    await files.world.until(lambda: submitted(files)[1] == "PrepareFailed")
    assert "prepare[0]: there is no key" in submitted(files)[2]
    assert prepared(files)[:2] == ("False", "CopyFailed")
    for _ in range(3):
        await files.world.step()
    assert files.world.in_slurm() == []
    assert files.names() == ["hello-prepare"]
    files.world.delete()
    await files.world.until(lambda: not files.world.exists())


async def test_without_a_uid_nothing_is_copied(files: FileWorld) -> None:
    files.world.tenants = [{"namespaces": ["team"], "user": "alice"}]
    files.world.cluster()
    files.world.job(sharedVolume=SHARED, prepare=[asked()])
    await files.world.until(lambda: prepared(files)[1] == "FilesOutOfReach")
    assert "uid and gid" in prepared(files)[2]
    assert files.names() == []


@pytest.mark.parametrize(
    ("path", "words"),
    [("given", "relative"), ("/home/alice/given", "not below"), ("/data/%j", "no id before")],
)
async def test_paths_that_cannot_be_reached_are_named(files: FileWorld, path: str, words: str) -> None:
    files.world.job(sharedVolume=SHARED, prepare=[asked(path=path)])
    await files.world.until(lambda: submitted(files)[1] == "PrepareFailed")
    assert words in submitted(files)[2]
    assert files.names() == []


async def test_a_relative_path_is_below_the_folder_of_the_job(files: FileWorld) -> None:
    files.world.job(sharedVolume=SHARED, workingDirectory="/data/alice", prepare=[asked(path="a/b")])
    await files.world.until(files.names)
    assert files.copies("hello-prepare")[0].target.path == "alice/a/b"


async def test_a_suspended_job_is_not_prepared(files: FileWorld) -> None:
    files.world.job(sharedVolume=SHARED, suspend=True, prepare=[asked()])
    await files.world.until(lambda: submitted(files)[1] == "Suspended")
    assert files.names() == []


async def test_an_operator_that_ends_goes_on_where_it_was(files: FileWorld) -> None:
    class Ended(BaseException):
        pass

    def end(status: Object) -> None:
        if any(one["type"] == "Prepared" for one in status.get("conditions") or ()):
            files.kube.before_status = None
            raise Ended

    files.world.job(sharedVolume=SHARED, prepare=[asked()])
    for _ in range(2):
        files.kube.before_status = end
        with pytest.raises(Ended):
            await files.world.until(lambda: False)
        await files.world.kill()
        if not files.get(PODS, "hello-prepare").get("status"):
            files.pod_ends([COPIED], "hello-prepare")
    await files.world.submitted()
    assert files.names() == ["hello-prepare"]
    assert len(files.world.in_slurm()) == 1


async def test_files_are_prepared_once_for_all_submissions(files: FileWorld) -> None:
    files.world.job(sharedVolume=SHARED, prepare=[asked()], backoffLimit=1)
    await files.world.until(files.names)
    files.pod_ends([COPIED], "hello-prepare")
    first = await files.world.submitted()
    files.world.slurm.world.exit_job(first, 1)
    await files.world.until(lambda: files.world.status().get("jobId") not in {None, first})
    assert files.names() == ["hello-prepare"]
    assert prepared(files)[0] == "True"


async def test_both_lists_have_pods_of_their_own(files: FileWorld) -> None:
    files.world.job(sharedVolume=SHARED, prepare=[asked()], results=[result("/data/run")])
    await files.world.until(files.names)
    files.pod_ends([COPIED], "hello-prepare")
    number = await files.world.submitted()
    await files.world.until(lambda: files.world.status().get("state") == "Running")
    files.world.slurm.world.exit_job(number)
    await files.world.until(lambda: files.names() == ["hello-prepare", "hello-results"])
    files.pod_ends([COPIED])
    await files.world.until(lambda: files.world.condition("ResultsCollected")[0] == "True")
    assert prepared(files)[0] == "True"


async def test_a_job_that_is_cancelled_while_files_are_copied_is_not_submitted(files: FileWorld) -> None:
    files.world.job(sharedVolume=SHARED, prepare=[asked()])
    await files.world.until(lambda: files.names() == ["hello-prepare"])
    files.world.annotate(cancel="true")
    await files.world.until(lambda: files.world.condition("Finished")[0] == "True")
    assert prepared(files)[:2] == submitted(files)[:2] == ("False", "Cancelled")
    files.pod_ends([AWAY], "hello-prepare")
    for _ in range(3):
        await files.world.step()
    assert files.names() == ["hello-prepare"]
    assert files.world.in_slurm() == []
    assert not files.world.kube.objects["slurmjobs", "team", "hello"]["metadata"].get("finalizers")


async def test_a_dry_run_needs_the_volumes_and_copies_nothing(files: FileWorld) -> None:
    wanted: dict[str, Any] = {
        "sharedVolume": SHARED,
        "prepare": [asked({"secret": {"secretName": "s"}})],
        "results": [result()],
    }
    files.world.job(dryRun=True, **wanted)
    await files.world.until(lambda: submitted(files)[1] == "VolumeNotFound")
    assert submitted(files)[2].startswith("namespace team has no Secret s")
    files.kube.put(SECRETS, {"metadata": {"name": "s", "namespace": "team"}})
    files.world.ahead += timedelta(seconds=LACKING_S[0])
    await files.world.until(lambda: files.world.status()["state"] == "DryRun")
    assert files.names() == []
    assert prepared(files) == ("", "", "")
    await files.world.until(lambda: files.world.condition("ResultsCollected")[:2] == ("True", "NothingToCopy"))


async def test_files_from_one_claim_and_for_the_same_have_one_volume(files: FileWorld) -> None:
    files.claim("data")
    source = {"persistentVolumeClaim": {"claimName": "data"}}
    files.world.job(sharedVolume=SHARED, prepare=[asked(source), asked(source, path="/data/b")])
    await files.world.until(files.names)
    spec = files.get(PODS, "hello-prepare")["spec"]
    claims = [one for one in spec["volumes"] if "persistentVolumeClaim" in one]
    assert claims == [{"name": "volume-0", "persistentVolumeClaim": {"claimName": "data"}}]
    mounts = {one["mountPath"]: one for one in spec["containers"][0]["volumeMounts"]}
    assert {mounts[folder]["name"] for folder in ("/volumes/0", "/volumes/1", "/shared")} == {"volume-0"}
    assert [mounts[folder].get("readOnly", False) for folder in ("/volumes/0", "/volumes/1", "/shared")] == [
        True,
        True,
        False,
    ]
