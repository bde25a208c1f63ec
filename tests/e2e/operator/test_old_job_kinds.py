"""Manifests of sylabs' operators as people wrote them: scripts, arrays, files in and out, and containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from slinky_api import labels
from slinky_api.resource import Resource
from slinky_api.sylabs import slurm as slurm_kinds
from slinky_api.sylabs import wlm
from tests.support import image_registry
from tests.support.job_namespace import JobNamespace
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]

FOLDER = "/var/spool/job-output"
"""What the nodes share, and the server of each node reads and writes."""


def full(resource: Resource) -> str:
    """Name of a kind for kubectl: three kinds share the short one."""
    return f"{resource.plural}.{resource.group}"


class Team(JobNamespace):
    """The namespace with the jobs, which are alice's."""

    def apply(self, resource: Resource, name: str, **spec: Any) -> None:
        """Create an object of an old kind."""
        about = {"name": name, "namespace": self.namespace}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": about, "spec": spec}
        self.kubectl.apply([body])

    def wait_word(self, resource: Resource, name: str, word: str) -> dict[str, Any]:
        """Wait for a word of the old status, and return the status."""
        seen: dict[str, Any] = {}

        def shown() -> bool:
            seen.update(self.kubectl.get("--namespace", self.namespace, full(resource), name).get("status") or {})
            assert seen.get("status") in {None, "Pending", "Running", word}, seen
            return seen.get("status") == word

        wait_for(f"{full(resource)} {name} {word}", shown, PATIENCE)
        return seen

    def wait_collected(self, child: str) -> None:
        """Wait until the results of an object's SlurmJob are on their volume."""
        ours = f"slurmjobs.slinky.slurm.net/{child}"
        self.kube("wait", ours, "--for=condition=ResultsCollected", f"--timeout={PATIENCE:.0f}s", timeout=2 * PATIENCE)


@pytest.fixture(scope="module")
def team(new_slurm: NewSlurm) -> Iterator[Team]:
    """A Cluster that runs old kinds, one node with containers, and a namespace whose jobs are alice's."""
    slurm = new_slurm("sylabs")
    namespace = f"{slurm.namespace}-alice"
    users = {
        "passwd": "alice:x:2001:2001::/tmp:/bin/sh\n",
        "group": "alice:x:2001:\n",
        "local.conf": image_registry.TRUSTED,
    }
    slurm.create(
        identity={"passwd": {"configMapRef": {"name": "site"}}},
        containers={"mounts": [FOLDER]},
        jobs={
            "tenants": [{"namespaces": [namespace], "user": "alice", "uid": 2001, "gid": 2001}],
            "sylabs": {"labels": [{"name": "wlm.sylabs.io/cuda", "value": "10", "features": "cuda10"}], "logs": True},
        },
    )
    about = {"name": "site", "namespace": slurm.namespace}
    consent = {labels.ANNOTATION_SYLABS_JOBS: f"{slurm.namespace}/{slurm.name}"}
    slurm.kubectl.apply(
        [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": users},
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "annotations": consent}},
            claim(slurm.namespace, "output"),
            claim(namespace, "kept"),
        ]
    )
    slurm.nodeset(
        "compute",
        1,
        image=slurm.image("slurmd-oci"),
        containers="Rootless",
        features=["cuda10"],
        jobLogs={},
        template=image_registry.beside_slurmd("site", "output"),
    )
    slurm.wait_ready()
    slurm.wait_idle(["compute-0"])
    yield Team(slurm, namespace)
    slurm.kubectl("delete", "namespace", namespace, "--wait=false")


def claim(namespace: str, name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}
    about = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec}


def volume(name: str) -> dict[str, Any]:
    return {"name": "data", "persistentVolumeClaim": {"claimName": name}}


def test_scripts_run_and_show_the_old_words(team: Team) -> None:
    script = "#!/bin/sh\n#SBATCH --nodes=1 --ntasks=1\nsrun id -un\n"
    team.apply(wlm.SLURMJOB, "hello", batch=script, nodeSelector={"wlm.sylabs.io/cuda": 10})
    team.apply(slurm_kinds.SLURMJOB, "hello", batch="#!/bin/sh\nexit 3\n")
    status = team.wait_word(wlm.SLURMJOB, "hello", "Succeeded")
    job = team.slurm.job(str(status["jobId"]))
    assert (job["UserId"], job["Features"]) == ("alice(2001)", "cuda10")
    logs = ("logs", "wlm-slurmjob-hello-logs", "--container=stdout")
    wait_for("its output", lambda: team.kube(*logs) == "alice\n", PATIENCE)
    assert team.wait_word(slurm_kinds.SLURMJOB, "hello", "Failed")["reason"] == "NonZeroExitCode"
    shown = team.kube("get", full(wlm.SLURMJOB)).splitlines()
    assert shown[0].split() == ["NAME", "AGE", "STATUS", "JOB", "REASON"]
    assert shown[1].split()[2:] == ["Succeeded", str(status["jobId"]), "Completed"]


def test_an_array_has_ended_when_all_its_tasks_have(team: Team) -> None:
    script = "#!/bin/sh\n#SBATCH --array=0-2\n#SBATCH --output=/dev/null\nexit $((SLURM_ARRAY_TASK_ID / 2))\n"
    team.apply(wlm.SLURMJOB, "tasks", batch=script)
    status = team.wait_word(wlm.SLURMJOB, "tasks", "Failed")
    ends = team.slurm.control("squeue", "--noheader", "--array", "--states=all", f"--job={status['jobId']}", "-o%K %T")
    assert sorted(ends.splitlines()) == ["0 COMPLETED", "1 COMPLETED", "2 FAILED"]


def test_files_are_prepared_and_results_collected(team: Team) -> None:
    first = f"#!/bin/sh\n#SBATCH --chdir={FOLDER}\nmkdir -p out\necho of the first > out/said\n"
    team.apply(wlm.SLURMJOB, "first", batch=first, results={"mount": volume("kept"), "from": f"{FOLDER}/out"})
    team.wait_word(wlm.SLURMJOB, "first", "Succeeded")
    team.wait_collected("wlm-slurmjob-first")
    # As the example prepare-and-results of wlm-operator, with claims: its script finds the volume `inputs` there.
    said = "grep 'of the first' inputs/first/out/said > bar/output.txt"
    second = f"#!/bin/sh\n#SBATCH --nodes=1\nmkdir bar\n{said}\n"
    files = {"prepare": {"to": ".", "mount": {**volume("kept"), "name": "inputs"}}}
    results = {"from": "bar", "mount": volume("kept")}
    team.apply(wlm.SLURMJOB, "second", batch=second, results=results, **files)
    team.wait_word(wlm.SLURMJOB, "second", "Succeeded")
    team.wait_collected("wlm-slurmjob-second")


def test_a_container_runs_as_the_user_and_leaves_results(team: Team) -> None:
    # The image names no user: it is root inside, and alice outside.
    says = f'[ "$OF_IMAGE" = yes ] && [ ! -e /etc/slurm ] && id -u > {FOLDER}/told'
    team.slurm.run("sh", "-ec", image_registry.IMAGE, "sh", says)
    image = f"docker://{image_registry.SAMPLE}"
    team.apply(wlm.WLMJOB, "box", image=image, results={"mount": volume("kept"), "from": f"{FOLDER}/told"})
    team.wait_word(wlm.WLMJOB, "box", "Succeeded")
    assert team.slurm.run("sh", "-c", f"cat {FOLDER}/told; stat -c %U {FOLDER}/told").split() == ["0", "alice"]
    team.wait_collected("wlm-wlmjob-box")


def test_what_has_no_meaning_here_is_refused_by_name(team: Team) -> None:
    team.apply(slurm_kinds.SLURMJOB, "by-ssh", batch="#!/bin/sh\ntrue\n", ssh={"user": "me"})
    team.apply(wlm.WLMJOB, "bound", image="docker://alpine:3", options={"binds": ["/data:/mnt"]})
    refused = team.wait_word(slurm_kinds.SLURMJOB, "by-ssh", "Failed")
    assert (refused["reason"], "spec.ssh" in refused["message"]) == ("InvalidSpec", True)
    refused = team.wait_word(wlm.WLMJOB, "bound", "Failed")
    assert (refused["reason"], "spec.options.binds" in refused["message"]) == ("InvalidSpec", True)


def test_deletion_cancels_the_job(team: Team) -> None:
    team.apply(wlm.SLURMJOB, "long", batch="#!/bin/sh\nsleep 600\n")
    job = str(team.wait_word(wlm.SLURMJOB, "long", "Running")["jobId"])
    team.kube("delete", full(wlm.SLURMJOB), "long", timeout=PATIENCE)
    team.slurm.wait_job(job, "CANCELLED")
