"""Jobs as objects: who they run as, how they end, what deletes them, and that there is one for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hack.installing.operator import NAMESPACE, Installation
from hack.localkube.kubectl import wait_for
from tests.support.job_namespace import JobNamespace
from tests.support.slurm_in_kubernetes import PATIENCE, RELEASED, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.alone, pytest.mark.usefixtures("operator"), pytest.mark.long(390)]

PASSWD = "alice:x:2001:2001::/home/alice:/bin/sh\nbob:x:2002:2002::/home/bob:/bin/sh\n"
GROUP = "alice:x:2001:\nbob:x:2002:\nlab:x:2100:alice\n"
LONG = "#!/bin/sh\nsleep 600\n"


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with two users, each of whom a namespace may submit as."""
    instance = new_slurm("jobs")
    teams = [
        {"namespaces": [f"{instance.namespace}-{user}"], "user": user, "uid": number, "gid": number}
        for user, number in (("alice", 2001), ("bob", 2002))
    ]
    users = {"passwd": PASSWD, "group": GROUP}
    instance.create(
        identity={"passwd": {"configMapRef": {"name": "users"}}},
        jobs={"tenants": teams},
        partitions=[{"name": "batch", "nodeSets": ["compute"], "config": "Default=YES"}],
    )
    about = {"name": "users", "namespace": instance.namespace}
    instance.kubectl.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": users}])
    instance.kubectl.apply([claim(instance.namespace, "output")])
    shared = {"name": "job-output", "persistentVolumeClaim": {"claimName": "output"}}
    instance.nodeset("compute", 2, jobLogs={}, template={"spec": {"volumes": [shared]}})
    instance.wait_ready()
    instance.wait_idle(["compute-0", "compute-1"])
    return instance


@pytest.fixture(scope="module")
def alice(slurm: SlurmInKubernetes) -> Iterator[JobNamespace]:
    yield from team(slurm, "alice")


@pytest.fixture(scope="module")
def bob(slurm: SlurmInKubernetes) -> Iterator[JobNamespace]:
    yield from team(slurm, "bob")


def team(slurm: SlurmInKubernetes, user: str) -> Iterator[JobNamespace]:
    namespace = f"{slurm.namespace}-{user}"
    slurm.kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
    yield JobNamespace(slurm, namespace)
    slurm.kubectl("delete", "namespace", namespace, "--wait=false")


def claim(namespace: str, name: str) -> dict[str, Any]:
    """A claim on what the default StorageClass provisions, which all Nodes of the tests share."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}}
    about = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec}


def output(slurm: SlurmInKubernetes, name: str, node: str) -> str:
    """What a job has written, in the pod of its node."""
    return slurm.kube("exec", node, "--container=slurmd", "--", "cat", f"/tmp/{name}.out")


def test_a_job_runs_as_the_user_of_its_namespace(
    slurm: SlurmInKubernetes, alice: JobNamespace, bob: JobNamespace
) -> None:
    for one, user in ((alice, "alice"), (bob, "bob")):
        name = f"of-{user}"
        one.submit(name, "#!/bin/sh\n#SBATCH --ntasks=1 --time=5\nid\n")
        one.kube("wait", "--for=condition=Finished", f"slurmjob/{name}", f"--timeout={PATIENCE:.0f}s")
        status = one.status(name)
        assert (status["state"], status["reason"], status.get("exitCode")) == ("Succeeded", "Completed", 0)
        assert status["user"] == user
        assert slurm.job(str(status["jobId"]))["UserId"].startswith(f"{user}(")
        assert f"({user})" in output(slurm, name, status["nodes"])
    lines = alice.kube("get", "slurmjobs").splitlines()
    assert lines[0].split() == ["NAME", "STATE", "JOBID", "REASON", "NODES", "AGE"]
    assert "Succeeded" in lines[1]


def test_how_jobs_end(slurm: SlurmInKubernetes, alice: JobNamespace) -> None:
    alice.submit_all({"code": "#!/bin/sh\nexit 3\n", "signal": "#!/bin/sh\nkill -9 $$\n", "outside": LONG})
    assert alice.wait("code", state="Failed")["exitCode"] == 3
    assert alice.status("code")["reason"] == "NonZeroExitCode"
    assert alice.wait("signal", state="Failed")["signal"] == 9
    job = str(alice.wait("outside", state="Running")["jobId"])
    slurm.control("scancel", job)
    assert alice.wait("outside", state="Failed")["reason"] == "Cancelled"
    alice.submit("again", "#!/bin/sh\nexit 1\n", backoffLimit=1)
    assert len(alice.wait("again", state="Failed")["failedAttempts"]) == 1


def test_a_job_is_shown_without_being_submitted_and_cancelled_without_being_deleted(
    slurm: SlurmInKubernetes, alice: JobNamespace
) -> None:
    before = slurm.control("squeue", "--noheader", "--states=all", "--format=%i").split()
    alice.submit("dry", LONG, dryRun=True)
    alice.kube("wait", "--for=condition=Finished", "slurmjob/dry", f"--timeout={PATIENCE:.0f}s", timeout=2 * PATIENCE)
    assert "sleep 600" in alice.status("dry")["request"]["body"]
    after = slurm.control("squeue", "--noheader", "--states=all", "--format=%i").split()
    assert set(after) <= set(before)
    alice.submit("ended", LONG)
    job = str(alice.wait("ended", state="Running")["jobId"])
    alice.kube("annotate", "slurmjob", "ended", "slurmjob.slinky.slurm.net/cancel=true")
    assert alice.wait("ended", state="Failed")["reason"] == "Cancelled"
    assert slurm.job_state(job) == "CANCELLED"


def test_an_array_and_a_job_that_waits_for_it(slurm: SlurmInKubernetes, alice: JobNamespace) -> None:
    alice.submit("after", "#!/bin/sh\ntrue\n", dependsOn=[{"name": "tasks", "type": "afterany"}])
    wait_for("the wait", lambda: alice.condition("after", "Submitted")[1] == "DependencyNotSubmitted", PATIENCE)
    alice.submit("tasks", "#!/bin/sh\nexit $SLURM_ARRAY_TASK_ID\n", array="0-2%1", output="/dev/null")
    counts = alice.wait("tasks", state="Failed")["array"]
    assert (counts["succeeded"], counts["failed"], counts["pending"]) == (1, 2, 0)
    alice.wait("after", state="Succeeded")


def test_what_may_not_be_asked_for(slurm: SlurmInKubernetes, alice: JobNamespace) -> None:
    before = slurm.control("squeue", "--noheader", "--states=all", "--format=%i").split()
    alice.submit("as-bob", LONG, user="bob")
    alice.submit("nonsense", "#!/bin/sh\n#SBATCH --no-such-option\n")
    alice.submit("nowhere", LONG, partition="nowhere")
    wanted = {"as-bob": "JobsNotAllowed", "nonsense": "InvalidSpec", "nowhere": "SubmissionRefused"}
    wait_for("the reasons", lambda: wanted == {one: alice.condition(one, "Submitted")[1] for one in wanted}, PATIENCE)
    assert "does not grant user bob" in alice.condition("as-bob", "Submitted")[2]
    assert "line 2" in alice.condition("nonsense", "Submitted")[2]
    assert "partition" in alice.condition("nowhere", "Submitted")[2].lower()
    after = slurm.control("squeue", "--noheader", "--states=all", "--format=%i").split()
    assert set(after) <= set(before)
    alice.kube("delete", "slurmjobs", *wanted, "--wait", timeout=PATIENCE)


def test_deletion_cancels_what_waits_and_what_runs(slurm: SlurmInKubernetes, alice: JobNamespace) -> None:
    alice.submit("runs", LONG, nodes=2)
    alice.wait("runs", state="Running")
    alice.submit("waits", LONG, nodes=2)
    waiting = alice.wait("waits", state="Pending", slurmReason="Resources")
    assert waiting["reason"] == "Queued"
    jobs = [str(alice.status(name)["jobId"]) for name in ("runs", "waits")]
    alice.kube("delete", "slurmjobs", "runs", "waits", "--wait", timeout=PATIENCE)
    assert [slurm.job_state(job) for job in jobs] == ["CANCELLED", "CANCELLED"]
    slurm.wait_idle(["compute-0", "compute-1"])


def test_a_job_is_suspended_before_it_starts_and_resumed(slurm: SlurmInKubernetes, alice: JobNamespace) -> None:
    alice.submit("later", "#!/bin/sh\ntrue\n", suspend=True)
    wait_for("the wait", lambda: alice.condition("later", "Submitted")[1] == "Suspended", PATIENCE)
    alice.submit("fills", LONG, nodes=2)
    alice.wait("fills", state="Running")
    alice.kube("patch", "slurmjob", "later", "--type=merge", '--patch={"spec":{"suspend":false}}')
    job = str(alice.wait("later", state="Pending")["jobId"])
    alice.kube("patch", "slurmjob", "later", "--type=merge", '--patch={"spec":{"suspend":true}}')
    alice.wait("later", held=True, reason="Held")
    assert slurm.job(job)["Reason"].startswith("JobHeldUser")
    alice.kube("patch", "slurmjob", "later", "--type=merge", '--patch={"spec":{"suspend":false}}')
    alice.kube("delete", "slurmjob", "fills", "--wait", timeout=PATIENCE)
    alice.wait("later", state="Succeeded")


@pytest.mark.full
def test_the_operator_is_killed_while_jobs_are_submitted(
    slurm: SlurmInKubernetes, alice: JobNamespace, operator: Installation
) -> None:
    names = [f"many-{number}" for number in range(20)]
    for begin in (0, 10):
        wait_for("a leader that is there", lambda: operator.leader() in operator.pods(), PATIENCE)
        alice.submit_all(dict.fromkeys(names[begin : begin + 10], "#!/bin/sh\ntrue\n"), output="/dev/null")
        operator.cluster.kubectl(
            "--namespace", NAMESPACE, "delete", "pod", operator.leader(), "--grace-period=0", "--force"
        )
    for name in names:
        alice.wait(name, state="Succeeded")
    found = slurm.control("squeue", "--noheader", "--states=all", "--format=%j").split()
    assert sorted(name for name in found if name.startswith("many-")) == sorted(names)


def test_the_output_is_shown_live_and_its_pod_ends_as_the_job(slurm: SlurmInKubernetes, alice: JobNamespace) -> None:
    script = f"#!/bin/sh\nid -un\necho trouble >&2\nuntil [ -e {RELEASED}$SLURM_JOB_ID ]; do sleep 0.1; done\nexit 4\n"
    alice.submit("talks", script, output=None, logs={})
    status = alice.wait("talks", state="Running")

    def said(container: str) -> str:
        return alice.kube("logs", "talks-logs", f"--container={container}")

    wait_for("the first line", lambda: "alice" in said("stdout"), PATIENCE)
    wait_for("the error", lambda: "trouble" in said("stderr"), PATIENCE)
    assert "trouble" not in said("stdout")
    assert alice.status("talks")["state"] == "Running"
    assert alice.condition("talks", "LogsAvailable")[0] == "True"
    slurm.release(str(status["jobId"]), status["nodes"])

    def codes() -> list[int]:
        pod = alice.kubectl.get("--namespace", alice.namespace, "pod", "talks-logs")
        states = [one["state"].get("terminated") for one in pod["status"]["containerStatuses"]]
        return [one["exitCode"] for one in states if one]

    wait_for("the exit code of the job", lambda: codes() == [4, 4], PATIENCE)
    alice.kube("delete", "slurmjob", "talks", "--wait", timeout=PATIENCE)
    wait_for("the end of its pod", lambda: not logs_of(alice, "talks"), PATIENCE)


def test_the_output_is_cut_by_tail_and_since(alice: JobNamespace) -> None:
    alice.submit("counts", "#!/bin/sh\nseq 1 1000\n", output=None, logs={})
    alice.wait("counts", state="Succeeded")
    logs = ("logs", "counts-logs", "--container=stdout")
    wait_for("all of the output", lambda: len(alice.kube(*logs).splitlines()) == 1000, PATIENCE)
    assert alice.kube(*logs, "--tail=2").split() == ["999", "1000"]
    # The time of a line is that at which the pod has written it.
    stamp = alice.kube(*logs, "--timestamps", "--tail=1").split()[0]
    assert alice.kube(*logs, f"--since-time={stamp}").split()[-1] == "1000"
    assert alice.kube(*logs, "--since-time=2100-01-01T00:00:00Z") == ""
    alice.kube("delete", "slurmjob", "counts", "--wait", timeout=PATIENCE)


def test_an_object_goes_when_its_time_is_over(slurm: SlurmInKubernetes, alice: JobNamespace) -> None:
    alice.submit("brief", "#!/bin/sh\ntrue\n", ttlSecondsAfterFinished=1)
    listed = ("get", "slurmjobs", "--output=name")
    wait_for("its end", lambda: "slurmjob.slinky.slurm.net/brief" not in alice.kube(*listed).split(), PATIENCE)
    assert slurm.control("squeue", "--noheader", "--states=all", "--name=brief", "--format=%T").split() == ["COMPLETED"]


@pytest.mark.full
def test_five_hundred_are_submitted_once_each_and_deleted_at_once(slurm: SlurmInKubernetes, bob: JobNamespace) -> None:
    names = {f"mass-{number}" for number in range(500)}
    bob.submit_all(dict.fromkeys(names, LONG), output="/dev/null", nodes=2)

    def numbers() -> set[int]:
        items = bob.kubectl.get("--namespace", bob.namespace, "slurmjobs")["items"]
        ours = (job.get("status", {}).get("jobId") for job in items if job["metadata"]["name"] in names)
        return {number for number in ours if number}

    def in_slurm(*options: str) -> list[str]:
        listed = slurm.control("squeue", "--noheader", "--user=bob", "--format=%j", *options).split()
        return sorted(name for name in listed if name.startswith("mass-"))

    wait_for("500 submitted", lambda: len(numbers()) == 500, 2 * PATIENCE)
    assert in_slurm() == sorted(names)
    bob.kube("delete", "slurmjobs", "--all", "--wait=false", timeout=2 * PATIENCE)
    wait_for("500 gone", lambda: not bob.kube("get", "slurmjobs", "--output=name"), 2 * PATIENCE)
    assert in_slurm() == []
    assert in_slurm("--states=CANCELLED") == sorted(names)


def logs_of(team: JobNamespace, name: str) -> list[str]:
    """The pods with the output of a job."""
    found = team.kubectl.get("--namespace", team.namespace, "pods")["items"]
    return [pod["metadata"]["name"] for pod in found if pod["metadata"]["name"] == f"{name}-logs"]


def test_files_are_prepared_and_results_collected_also_of_a_job_that_fails(alice: JobNamespace) -> None:
    folder = "/var/spool/job-output"
    about = {"name": "input", "namespace": alice.namespace}
    given = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"word": "from the map\n"}}
    alice.kubectl.apply([given, claim(alice.namespace, "kept")])
    out = {"persistentVolumeClaim": {"claimName": "kept"}}
    script = f"#!/bin/sh\nmkdir {folder}/$SLURM_JOB_ID\ncat {folder}/given/word >{folder}/$SLURM_JOB_ID/said\nexit 3\n"
    first = [{"volume": {"configMap": {"name": "input"}}, "path": f"{folder}/given"}]
    # Both copies go to one claim.
    results = [{"volume": out, "path": f"{folder}/%j"}, {"volume": out, "path": f"{folder}/%j/said", "to": "second"}]
    alice.submit("fails", script, prepare=first, results=results)
    job = alice.wait("fails", state="Failed", exitCode=3)["jobId"]
    assert alice.condition("fails", "Prepared")[0] == "True"
    wait_for("its results", lambda: alice.condition("fails", "ResultsCollected")[0] == "True", PATIENCE)
    # Another job reads what was collected of the first.
    again = [
        {"volume": out, "from": f"fails/{job}", "path": f"{folder}/again"},
        {"volume": out, "from": "second/said", "path": f"{folder}/second"},
    ]
    script = (
        f"#!/bin/sh\ngrep -q 'from the map' {folder}/again/said && cmp {folder}/again/said {folder}/second"
        f' && [ "$(stat -c %U {folder}/again/said)" = alice ]\n'
    )
    alice.submit("reads", script, prepare=again)
    alice.wait("reads", state="Succeeded")
    alice.kube("delete", "slurmjobs", "fails", "reads", "--wait", timeout=PATIENCE)
