"""Jobs kept to what they were allocated: a Cluster with a confined NodeSet beside one that is not, on real cgroups.

Who has a job on a confined node can log in there, into the job.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.localkube.kubectl import wait_for
from kubectl_slurm.rules import verification
from slinky_operator.slurm import naming
from tests.support.documents import blocks
from tests.support.job_namespace import JobNamespace
from tests.support.logins import Visitor, keys_of_users, visitor
from tests.support.nodesets import whole
from tests.support.port_forward import port_forward
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("operator"),
    pytest.mark.long(230),
]

TWO_CORES = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "2", "memory": "512Mi"}}

EATS = "head -c 300M /dev/zero | tail -c 250M > /dev/null"
"""Needs 250 MB: tail keeps what it is to print."""

AS_USER = ("setpriv", "--reuid=2001", "--regid=2001", "--clear-groups")

USERS = {"passwd": "alice:x:2001:2001::/tmp:/bin/sh\n"}

PROLOG = "#!/bin/sh\ntouch /tmp/$SLURM_JOB_ID.prolog\n"


GPUS = {"/dev/nvidia0": "/dev/full", "/dev/nvidia1": "/dev/random"}
"""Devices that stand for GPUs, and those of the machine that they are: no other test opens these."""

OPENED = """\
n=0
for one in /dev/nvidia[0-9]; do (exec 3< $one) 2> /dev/null && n=$((n + 1)); done
echo $n"""


@pytest.fixture(scope="module")
def alice(new_slurm: NewSlurm, tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    """A Cluster with both kinds of nodes, and a user who has a key."""
    instance = new_slurm("confined")
    user = visitor(instance, tmp_path_factory.mktemp("alice"), "alice")
    instance.create(
        extraConf="SelectTypeParameters=CR_Core_Memory\nMinJobAge=3600\nGresTypes=gpu\nPrologFlags=Contain",
        configFiles={"gres.conf": "NodeName=confined-0 Name=gpu File=/dev/nvidia[0-1]\n"},
        prologScripts={"look": PROLOG},
        identity={"passwd": {"configMapRef": {"name": "users"}}},
        jobs={"tenants": [{"namespaces": [instance.namespace], "user": "alice"}]},
    )
    about = {"name": "users", "namespace": instance.namespace}
    users = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": USERS}
    instance.kubectl.apply([users, keys_of_users(instance, alice=user.public_key)])
    (example,) = [block for block in blocks("docs/configuration.md") if block.words == "confined.yaml"]
    given = yaml.safe_load(example.text)
    spec = {key: value for key, value in given["spec"].items() if key not in {"clusterName", "replicas"}}
    # The machine is small, and no pod on it has a score that protects slurmstepd less.
    more = {"resources": TWO_CORES, "extraConf": "MemSpecLimit=64", "gres": "gpu:2", "template": with_gpus()}
    more["ssh"] = {"authorizedKeysRef": {"name": "people"}}
    instance.nodeset(given["metadata"]["name"], 1, **{**spec, **more})
    instance.nodeset("plain", 1, resources=TWO_CORES)
    instance.wait_ready()
    instance.wait_idle(["confined-0", "plain-0"])
    return user


@pytest.fixture(scope="module")
def slurm(alice: Visitor) -> SlurmInKubernetes:
    """The Cluster."""
    return alice.slurm


def with_gpus() -> dict[str, Any]:
    """A pod whose slurmd has `GPUS`."""
    names = {path: path.rpartition("/")[2] for path in GPUS}
    mounts = [{"name": name, "mountPath": path} for path, name in names.items()]
    volumes = [{"name": names[path], "hostPath": {"path": it, "type": "CharDevice"}} for path, it in GPUS.items()]
    return {"spec": {"containers": [{"name": "slurmd", "volumeMounts": mounts}], "volumes": volumes}}


def submit(slurm: SlurmInKubernetes, script: str, *options: str) -> str:
    """Submit a job from a confined node, and return its number."""
    options = ("-n1", "--output=/tmp/%j.out", *options)
    return slurm.run("sbatch", "--parsable", *options, f"--wrap={script}", pod="confined-0").strip()


def test_users_cannot_change_what_root_reads_in_a_node(slurm: SlurmInKubernetes) -> None:
    places = ("/run", "/run/slurm", naming.SPOOL_FOLDER, "/dev/termination-log")
    looked = "".join(f"test -w {place} && echo {place}; " for place in places)
    for pod in ("plain-0", "confined-0"):
        assert slurm.run(*AS_USER, "sh", "-c", f"{looked} :", pod=pod).split() == [], pod


def allowed_cores(slurm: SlurmInKubernetes, partition: str) -> int:
    """How many cores a job of one may use, by the number of them that it sees."""
    return int(slurm.run("srun", "-p", partition, "-n1", "--mem=64", "nproc", pod="confined-0"))


def test_the_container_is_not_privileged(slurm: SlurmInKubernetes) -> None:
    (container,) = slurm.slurmd_pods()["confined-0"]["spec"]["containers"]
    assert not container["securityContext"].get("privileged")
    assert "SYS_ADMIN" in container["securityContext"]["capabilities"]["add"]


def test_a_job_has_the_cores_it_was_allocated_and_no_more(slurm: SlurmInKubernetes) -> None:
    everything = int(slurm.run("nproc", pod="plain-0"))
    assert everything >= 2
    assert (allowed_cores(slurm, "confined"), allowed_cores(slurm, "plain")) == (1, everything)


def test_a_job_opens_the_gpus_it_was_allocated_and_no_other(slurm: SlurmInKubernetes) -> None:
    step = ("srun", "-p", "confined", "-n1", "--mem=64")
    asked = [(), ("--gres=gpu:1",), ("--gres=gpu:2",)]
    shown = [slurm.run(*step, *more, "sh", "-c", OPENED, pod="confined-0").strip() for more in asked]
    assert shown == ["0", "1", "2"]
    # What `kubectl slurm verify` asks in such a job.
    check = f"{{ {verification.DEVICES}; }} && echo one || echo another"
    said = [slurm.run(*step, *more, "sh", "-c", check, pod="confined-0").strip() for more in asked]
    assert said == ["another", "one", "another"]


def test_a_job_that_uses_too_much_memory_ends_and_no_other(slurm: SlurmInKubernetes) -> None:
    slurm.run("rm", "-f", "/tmp/go-on", pod="confined-0")
    neighbour = submit(slurm, "until test -e /tmp/go-on; do sleep 0.2; done", "-p", "confined", "--mem=64")
    slurm.wait_job(neighbour, "RUNNING")
    greedy = submit(slurm, EATS, "-p", "confined", "--mem=100")
    slurm.wait_job(greedy, "OUT_OF_MEMORY")
    assert slurm.job_state(neighbour) == "RUNNING"
    slurm.run("touch", "/tmp/go-on", pod="confined-0")
    slurm.wait_job(neighbour, "COMPLETED")
    # Nothing of it was for want of memory in the pod.
    allowed = submit(slurm, EATS, "-p", "plain", "--mem=100")
    slurm.wait_job(allowed, "COMPLETED")


def test_a_slurmjob_says_that_its_memory_was_not_enough(slurm: SlurmInKubernetes) -> None:
    jobs = JobNamespace(slurm, slurm.namespace)
    jobs.submit("greedy", f"#!/bin/sh\n{EATS}\n", partition="confined", memory="100M", tasks=1)
    status = jobs.wait("greedy", state="Failed")
    assert status["reason"] == "OutOfMemory"
    assert slurm.job_state(str(status["jobId"])) == "OUT_OF_MEMORY"


def test_steps_and_scripts_run_as_elsewhere(slurm: SlurmInKubernetes) -> None:
    job = submit(slurm, "srun hostname", "-p", "confined", "--mem=64")
    slurm.wait_job(job, "COMPLETED")
    assert slurm.run("cat", f"/tmp/{job}.out", pod="confined-0").strip() == "confined-0"
    slurm.run("test", "-e", f"/tmp/{job}.prolog", pod="confined-0")
    # slurmstepd gives cores to a process that is not its own.
    step = ("srun", "-p", "confined", "-n1", "--mem=64", "id", "-u")
    assert slurm.run(*AS_USER, *step, pod="confined-0").strip() == "2001"


def test_a_job_ends_with_all_its_processes(slurm: SlurmInKubernetes) -> None:
    job = submit(slurm, "setsid sleep 4321 & sleep 4321", "-p", "confined", "--mem=64")
    slurm.wait_job(job, "RUNNING")
    wait_for("both processes", lambda: processes(slurm, "sleep 4321") == 2, PATIENCE)
    slurm.run("scancel", job, pod="confined-0")
    slurm.wait_job(job, "CANCELLED")
    wait_for("neither of them", lambda: processes(slurm, "sleep 4321") == 0, PATIENCE)


def processes(slurm: SlurmInKubernetes, command: str) -> int:
    """How many processes of a command line a confined node has."""
    shown = slurm.run("ps", "-e", "-o", "args=", pod="confined-0")
    return sum(line.strip() == command for line in shown.splitlines())


def on_node(who: Visitor, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a session on the confined node; the first time its host key becomes known."""
    with port_forward(who.slurm.kubectl, who.slurm.namespace, "pod/confined-0", 22) as port:
        words = [*who.ssh(port, "StrictHostKeyChecking=accept-new"), command]
        return subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_who_has_a_job_logs_in_into_it_and_goes_with_it(alice: Visitor, tmp_path: Path) -> None:
    slurm = alice.slurm
    refused = on_node(alice, "true")
    assert (refused.returncode, refused.stdout) == (255, "")
    assert "Access denied by pam_slurm_adopt: you have no active jobs on this node" in refused.stderr

    options = ("-p", "confined", "-n1", "--mem=64", "--parsable", "--output=/dev/null", "--wrap=sleep 4323")
    job = slurm.run(*AS_USER, "sbatch", *options, pod="confined-0").strip()
    slurm.wait_job(job, "RUNNING")
    seen = on_node(alice, "echo $SLURM_JOB_ID; id -un; nproc; grep memory: /proc/self/cgroup")
    assert seen.stdout.split()[:3] == [job, "alice", "1"], seen
    assert seen.stdout.strip().endswith(f"/job_{job}/step_extern")

    # What users have without SSH, and on other nodes.
    step = ("srun", f"--jobid={job}", "--overlap", "hostname")
    assert slurm.run(*AS_USER, *step, pod="confined-0").strip() == "confined-0"

    place = slurm.kubectl, slurm.namespace, "pod/confined-0"
    with port_forward(*place, 22) as port, (tmp_path / "session").open("w") as out:
        words = [*alice.ssh(port, "StrictHostKeyChecking=yes"), "-tt", "setsid sleep 4324 & exec sleep 4324"]
        session = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.PIPE)
        try:
            wait_for("the session", lambda: processes(slurm, "sleep 4324") == 2, PATIENCE)
            slurm.run("pkill", "-9", "-f", "^sshd: .*listener", pod="confined-0")
            wait_for("another sshd", lambda: on_node(alice, "true").returncode == 0, PATIENCE)
            assert session.poll() is None
            assert processes(slurm, "sleep 4324") == 2
            assert slurm.job_state(job) == "RUNNING"
            slurm.run("scancel", job, pod="confined-0")
            session.wait(PATIENCE)
        finally:
            session.terminate()
            session.communicate()
    wait_for("no process of the session", lambda: processes(slurm, "sleep 4324") == 0, PATIENCE)
    (status,) = slurm.slurmd_pods()["confined-0"]["status"]["containerStatuses"]
    assert status["restartCount"] == 0


def test_its_slurmd_follows_the_configuration(slurm: SlurmInKubernetes) -> None:
    uid = slurm.pod_uid("confined-0")
    change = {"spec": {"prologScripts": {"look": PROLOG.replace(".prolog", ".later")}}}
    slurm.kube("patch", "cluster.slinky.slurm.net", slurm.name, "--type=merge", "--patch", json.dumps(change))

    def has_run() -> bool:
        job = submit(slurm, "true", "-p", "confined", "--mem=64")
        slurm.wait_job(job, "COMPLETED")
        return "later" in slurm.run("sh", "-c", f"ls /tmp/{job}.*", pod="confined-0")

    # The kubelet brings new files about a minute later.
    wait_for("the new prolog", has_run, 240)
    assert slurm.pod_uid("confined-0") == uid


def test_a_node_changes_when_its_job_is_over(slurm: SlurmInKubernetes) -> None:
    before, job = slurm.pod_uid("plain-0"), slurm.hold("plain-0")
    slurm.nodeset("plain", 1, resources=TWO_CORES, confinement="Constrain")
    wait_for("its drain", lambda: "drain" in slurm.states().get("plain-0", "").lower(), 120)
    assert slurm.pod_uid("plain-0") == before
    slurm.release(job, "plain-0")
    slurm.wait_job(job, "COMPLETED")
    wait_for("the update", lambda: slurm.is_replaced("plain-0", before) and whole(slurm, "plain", 1), 240)
    slurm.wait_idle_nodes("plain-0")
    assert allowed_cores(slurm, "plain") == 1
