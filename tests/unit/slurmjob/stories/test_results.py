"""Results of SlurmJobs: when they are collected, from where, by which pod, and what is said of those that are not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PERSISTENTVOLUMECLAIMS, PODS, SECRETS, Resource
from slinky_operator.pod_programs.joblogs.copies import permits
from slinky_operator.pod_programs.joblogs.copies.orders import Report
from slinky_operator.reconcile import pod_trouble
from slinky_operator.slurm import naming
from slinky_operator.slurmjob.execute.submission import LACKING_S
from slinky_operator.slurmjob.pods import bodies, copy_pod, copy_routes
from slurm_client.testing.slurmctld.queue import uid_of
from tests.unit.slurmjob.file_worlds import SERVED, SHARED, FileWorld, collected, result
from tests.unit.slurmjob.log_worlds import KEY

UID = uid_of("alice")
COPIED = Report("", is_final=True, files=3, size=120)
AWAY = Report("the server does not answer")
MISSING = Report("there is no run", is_final=True)


async def test_a_result_is_read_from_the_node_and_written_to_its_claim(files: FileWorld) -> None:
    number = await files.ended(results=[result(f"{SERVED}/%j", maxSize="2Gi", maxFiles=7)])
    await files.world.until(lambda: files.names() == ["hello-results"])
    (copy,) = files.copies()
    node = files.files()["node"]
    address = files.kube.objects["pods", "ns", node]["status"]["podIP"]
    assert copy.source.url == f"http://{address}:{naming.JOB_LOGS_PORT}"
    permit = files.permit(copy.source)
    assert copy.source.proof_key == permits.proof_key(copy.source.token, KEY)
    assert (permit.uid, permit.gids, permit.path) == (UID, (UID,), f"{SERVED}/{number}")
    assert (permit.writes, permit.max_bytes, permit.max_entries) == (False, 2 * 2**30, 7)
    assert (copy.target.folder, copy.target.path) == ("/volumes/0", f"hello/{number}")
    assert (copy.limits.size, copy.limits.entries) == (2 * 2**30, 7)
    assert collected(files)[:2] == ("Unknown", "Copying")
    files.pod_ends([COPIED])
    await files.world.until(lambda: collected(files)[0] == "True")
    assert collected(files) == ("True", "Copied", "results[0]: 3 files, 120 bytes")
    assert files.files()["results"]["copies"] == [
        {"name": "results[0]", "isCopied": True, "files": 3, "size": 120, "message": ""}
    ]


async def test_the_pod_is_the_users_and_has_no_rights(files: FileWorld) -> None:
    await files.ended(results=[result()])
    await files.world.until(files.names)
    pod = files.get(PODS, "hello-results")
    spec = pod["spec"]
    assert spec["securityContext"]["runAsUser"] == spec["securityContext"]["runAsGroup"] == UID
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["fsGroup"] == UID
    assert spec["automountServiceAccountToken"] is False
    (container,) = spec["containers"]
    assert container["image"] == "operator:1"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    claims = [one["persistentVolumeClaim"] for one in spec["volumes"] if "persistentVolumeClaim" in one]
    assert claims == [{"claimName": "out"}]
    for found in (pod, files.get(SECRETS, "hello-results")):
        (owner,) = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("SlurmJob", "uid-team-hello")


async def test_a_result_on_a_claim_that_nodes_mount_is_read_there(files: FileWorld) -> None:
    await files.ended(sharedVolume=SHARED, results=[result("/data/run/a.txt", to="kept/here")])
    await files.world.until(files.names)
    (copy,) = files.copies()
    assert (copy.source.folder, copy.source.path, copy.source.url) == ("/shared", "run/a.txt", "")
    assert copy.target.path == "kept/here/a.txt"
    spec = files.get(PODS, "hello-results")["spec"]
    assert "fsGroup" not in spec["securityContext"], "it would change the group of everybody's files"
    (mount,) = [one for one in spec["containers"][0]["volumeMounts"] if one["mountPath"] == "/shared"]
    assert mount["readOnly"] is True
    (shared,) = [one["persistentVolumeClaim"] for one in spec["volumes"] if one["name"] == "shared"]
    assert shared == {"claimName": "data"}


def claims_of(pod: Object) -> dict[str, str]:
    """Claims by the names of a pod's volumes."""
    found = (one for one in pod["spec"]["volumes"] if "persistentVolumeClaim" in one)
    return {one["name"]: one["persistentVolumeClaim"]["claimName"] for one in found}


def mounts_of(pod: Object) -> dict[str, tuple[str, bool]]:
    """Volume by folder, and whether it is read-only there."""
    found = pod["spec"]["containers"][0]["volumeMounts"]
    return {one["mountPath"]: (one["name"], one.get("readOnly", False)) for one in found}


async def test_results_on_one_claim_have_one_volume(files: FileWorld) -> None:
    files.claim("other")
    elsewhere = {**result(f"{SERVED}/c"), "volume": {"persistentVolumeClaim": {"claimName": "other"}}}
    await files.ended(results=[result(f"{SERVED}/a"), result(f"{SERVED}/b", to="more"), elsewhere])
    await files.world.until(files.names)
    pod = files.get(PODS, "hello-results")
    assert claims_of(pod) == {"volume-0": "out", "volume-2": "other"}
    mounts = mounts_of(pod)
    assert [mounts[one.target.folder] for one in files.copies()] == [
        ("volume-0", False),
        ("volume-0", False),
        ("volume-2", False),
    ]


async def test_a_result_for_the_claim_that_nodes_mount_too_has_one_volume(files: FileWorld) -> None:
    files.claim("data")
    kept = {**result("/data/run"), "volume": {"persistentVolumeClaim": {"claimName": "data"}}}
    await files.ended(sharedVolume=SHARED, results=[kept])
    await files.world.until(files.names)
    pod = files.get(PODS, "hello-results")
    assert claims_of(pod) == {"volume-0": "data"}
    assert mounts_of(pod)["/volumes/0"] == ("volume-0", False)
    assert mounts_of(pod)["/shared"] == ("volume-0", True)


async def test_a_claim_that_nodes_mount_keeps_its_group_also_if_it_is_only_written_to(files: FileWorld) -> None:
    files.claim("data")
    kept = {**result(), "volume": {"persistentVolumeClaim": {"claimName": "data"}}}
    await files.ended(sharedVolume=SHARED, results=[kept])
    await files.world.until(files.names)
    assert "fsGroup" not in files.get(PODS, "hello-results")["spec"]["securityContext"]


async def test_the_claim_of_the_output_counts_too(files: FileWorld) -> None:
    await files.ended(output="/data/%j.out", logs={"volume": SHARED}, results=[result(None)])
    await files.world.until(lambda: "hello-results" in files.names())
    (copy,) = files.copies()
    assert copy.source.path == f"{files.world.status()['jobId']}.out"


async def test_standard_output_is_named_by_the_operator_and_collected(files: FileWorld) -> None:
    number = await files.ended(results=[result(None)])
    await files.world.until(files.names)
    (copy,) = files.copies()
    (job,) = files.world.in_slurm()
    assert files.permit(copy.source).path == job.standard_output.replace("%j", str(number))
    assert copy.target.path == f"hello/slurm-{number}.out"
    assert files.world.condition("LogsAvailable") == ("", "", "")


async def test_relative_paths_are_below_the_folder_of_the_job(files: FileWorld) -> None:
    await files.ended(workingDirectory="/data/alice", sharedVolume=SHARED, results=[result("./a//b/")])
    await files.world.until(files.names)
    (copy,) = files.copies()
    assert (copy.source.path, copy.target.path) == ("alice/a/b", "hello/b")


@pytest.mark.parametrize(
    ("when", "code", "is_wanted"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnSuccess", 0, True),
        ("OnSuccess", 1, False),
        ("Never", 0, False),
    ],
)
async def test_when_results_are_collected(files: FileWorld, when: str, code: int, is_wanted: bool) -> None:
    await files.ended(code, results=[result(when=when)])
    await files.world.until(lambda: collected(files)[1] in {"Copying", "NothingToCopy"})
    assert bool(files.names()) == is_wanted
    assert (collected(files)[0] == "True") == (not is_wanted)


async def test_a_job_that_never_ran_has_no_results(files: FileWorld) -> None:
    files.world.job("first", nodes=4)
    await files.world.submitted("first")
    files.world.job(nodes=4, results=[result()])
    number = await files.world.submitted()
    files.world.slurm.world.set_job_state(number, "CANCELLED")
    await files.world.until(lambda: collected(files)[0] == "True")
    assert collected(files)[1] == "NothingToCopy"
    assert files.names() == []


async def test_without_the_field_nothing_is_said(files: FileWorld) -> None:
    await files.ended()
    assert collected(files) == ("", "", "")
    assert "files" not in files.world.status()


async def test_a_claim_that_does_not_exist_keeps_the_job_back(files: FileWorld) -> None:
    files.world.job(results=[{"volume": {"persistentVolumeClaim": {"claimName": "nowhere"}}, "path": SERVED}])
    await files.world.until(lambda: files.world.condition("Submitted")[1] == "VolumeNotFound")
    assert "nowhere" in files.world.condition("Submitted")[2]
    assert files.world.in_slurm() == []
    assert "VolumeNotFound" in files.world.events.reasons()
    files.claim("nowhere")
    files.world.ahead += timedelta(seconds=LACKING_S[0])
    await files.world.submitted()


async def test_claims_that_do_not_exist_are_looked_for_ever_more_rarely(
    files: FileWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    real = files.kube.get

    async def get(resource: Resource, name: str, *more: Any, **options: Any) -> Object:
        if resource == PERSISTENTVOLUMECLAIMS:
            asked.append(name)
        return await real(resource, name, *more, **options)

    monkeypatch.setattr(files.kube, "get", get)
    names = [f"nowhere-{number}" for number in range(8)]
    wanted = [{"volume": {"persistentVolumeClaim": {"claimName": name}}, "path": SERVED} for name in names]
    files.world.job(results=wanted)
    await files.world.until(lambda: files.world.condition("Submitted")[1] == "VolumeNotFound")
    for looks, pause in enumerate([*LACKING_S, LACKING_S[-1]], start=1):
        for _ in range(3):
            found = await files.world.step()
            assert 0 < (found.requeue_after or 0) <= pause
        assert asked == names * looks
        files.world.ahead += timedelta(seconds=pause)
    for name in names:
        files.claim(name)
    await files.world.submitted()


async def test_a_claim_that_goes_while_the_job_runs_is_named_and_waited_for(files: FileWorld) -> None:
    files.world.job(results=[result()])
    number = await files.world.submitted()
    await files.world.until(lambda: files.world.status().get("state") == "Running")
    del files.kube.objects["persistentvolumeclaims", "team", "out"]
    files.world.slurm.world.exit_job(number)
    await files.world.until(lambda: collected(files)[1] == "VolumeNotFound")
    assert "PersistentVolumeClaim out" in collected(files)[2]
    files.claim("out")
    files.pod_ends([COPIED])
    await files.world.until(lambda: collected(files)[0] == "True")


async def test_what_keeps_the_pod_from_starting_is_said(files: FileWorld) -> None:
    await files.ended(results=[result()])
    await files.world.until(files.names)
    words = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    files.pod_says(phase="Pending", conditions=[words])
    await files.world.until(lambda: collected(files)[1] == "CopyPodWaits")
    assert "0/3 nodes are available" in collected(files)[2]
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    files.pod_says(phase="Pending", containerStatuses=[{"name": "copy", "state": waiting}])
    await files.world.until(lambda: "no such image" in collected(files)[2])
    files.pod_says(phase="Running")
    await files.world.until(lambda: collected(files)[1] == "Copying")


async def test_a_pod_whose_volumes_are_not_mounted_says_so_after_a_minute(files: FileWorld) -> None:
    await files.ended(results=[result()])
    await files.world.until(files.names)
    pod = files.get(PODS, "hello-results")
    about = {**pod["metadata"], "creationTimestamp": files.world.now().strftime("%Y-%m-%dT%H:%M:%SZ")}
    files.kube.put(PODS, {**pod, "metadata": about})
    creating = {"waiting": {"reason": "ContainerCreating"}}
    files.pod_says(phase="Pending", containerStatuses=[{"name": "copy", "state": creating}])
    await files.world.step()
    assert collected(files)[1] == "Copying"
    files.world.ahead += pod_trouble.SLOW + timedelta(seconds=1)
    await files.world.until(lambda: collected(files)[1] == "CopyPodWaits")
    assert "a volume cannot be mounted (kubectl -n team describe pod hello-results says which)" in collected(files)[2]
    assert "CopyPodWaits" in files.world.events.reasons()


def of_root() -> SlurmJob:
    status: dict[str, Any] = {
        "state": "Succeeded",
        "jobId": 7,
        "files": {"uid": 0, "gid": 0, "node": "w-0", "folder": "/", "output": "/root/a"},
    }
    spec = {"clusterName": "slurm", "script": "#!/bin/sh\n", "results": [result()]}
    return SlurmJob.model_validate({"metadata": {"name": "a", "namespace": "team"}, "spec": spec, "status": status})


def test_files_of_root_are_not_copied() -> None:
    (item,) = copy_routes.results(of_root(), copy_routes.CopyContext(None, None, b"", 0.0))
    assert item.copy is None
    assert "root" in item.why


@pytest.mark.parametrize("length", [1, 240, 245, 253])
def test_names_are_never_too_long_and_never_the_same(length: int) -> None:
    names = {
        copy_pod.name_of(job, copy_pod.RESULTS, attempt)
        for job in ("a" * length, "a" * (length - 1) + "b")
        for attempt in (0, 1)
    }
    assert len(names) == 4
    assert all(len(name) <= 253 for name in names)


async def test_a_pod_that_ends_wakes_its_object(files: FileWorld) -> None:
    await files.ended(results=[result()])
    await files.world.until(files.names)
    triggers = files.world.triggers

    def seen(**status: Any) -> Object:
        files.pod_says(**status)
        pod = {**files.get(PODS, "hello-results")}
        bodies.prune_pod(pod)
        return pod

    running, ended = seen(phase="Running"), seen(phase="Failed", message="evicted")
    assert list(triggers.log_pod(None, running)) == []
    assert list(triggers.log_pod(running, running)) == []
    assert list(triggers.log_pod(running, ended)) == [("team", "hello")]
    assert list(triggers.log_pod(ended, ended)) == []
    assert list(triggers.log_pod(ended, None)) == [("team", "hello")]
