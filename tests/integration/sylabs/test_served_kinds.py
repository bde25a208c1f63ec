"""The operator as a process on a real API server: kopf watches all kinds of jobs, two of which have the same plural."""

from __future__ import annotations

import asyncio
import tarfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.images.rootfs import ensure
from hack.localkube.kubectl import wait_for
from hack.packaging.render import ROOT, render
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NAMESPACES, SECRETS, SLURMJOBS
from slinky_operator.sylabs.kinds import KINDS, OldKind
from tests.support import control_plane as support
from tests.support import served, service_account
from tests.support.control_plane import ControlPlane
from tests.support.daemons import short_host_name
from tests.support.operator_process import operator
from tests.support.slurm_host import SlurmHost
from tests.support.slurm_series import OLDER_IN_FULL

FOLDERS = (ROOT / "config/crd/jobs", ROOT / "config/crd/jobs/sylabs")
SPECS: dict[str, dict[str, Any]] = {
    "wlm-slurmjob": {"batch": "#!/bin/sh\nhostname\n", "nodeSelector": {"site/gpu": 10}},
    "wlm-wlmjob": {"image": "docker://alpine:3", "resources": {"nodes": 2, "cpuPerNode": 4, "wallTime": 90}},
    "slurm-slurmjob": {"batch": "#!/bin/sh\nhostname\n"},
}
SYLABS = {"labels": [{"name": "site/gpu", "value": "10", "features": "a100"}], "folder": "/srv", "sharedFolder": True}

USER = "daemon"
FOLDER = "/tmp"
"""Where jobs start, and write, that name no other place."""

HELLO: dict[str, Any] = {
    "batch": '#!/bin/sh\n#SBATCH --nodes=1\necho "Hello"\n',
    "nodeSelector": {"kubernetes.io/hostname": "slurm-minikube-cpu"},
}
BATCH: dict[str, Any] = {
    "batch": "#!/bin/sh\n#SBATCH --nodes=1\nsrun sleep 5\nsrun hostname\n",
    "nodeSelector": {"wlm.sylabs.io/cuda": 10},
}
CONTAINERS = {"wlm.sylabs.io/containers": "singularity"}
COW: dict[str, Any] = {
    "batch": (
        "#!/bin/sh\n#SBATCH --nodes=1\n#SBATCH --output cow.out\n"
        "srun singularity pull -U library://site/cow\nsrun singularity run cow_latest.sif\nsrun rm cow_latest.sif\n"
    ),
    "nodeSelector": CONTAINERS,
}
FOX: dict[str, Any] = {
    "batch": (
        "#!/bin/bash\n#SBATCH -J singularity-mpi\n#SBATCH -N 2 # total number of nodes\n#SBATCH --time=00:05:00\n"
        "set -e\ngit clone https://site.example/fox.git fox\nsingularity pull -U mpi.sif library://site/mpi\n"
        "singularity exec mpi.sif make -C fox\nmpirun -n 9 singularity exec --pwd $PWD/fox mpi.sif ./main\n"
        "tar -czf fox.tar.gz fox\nrm -r mpi.sif fox\n"
    ),
    "nodeSelector": CONTAINERS,
}
"""The programs and options of the examples cow and fox, without their results."""

RUN = {
    "hello": ("cpu", 1, "slurm-%j.out", "Hello"),
    "batch": ("10", 1, "slurm-%j.out", short_host_name()),
    "cow": ("singularity", 1, "cow.out", "said by cow_latest.sif"),
    "fox": ("singularity", 2, "slurm-%j.out", "9 ranks"),
}
"""Partition, nodes, and the file with these words in it, of each that runs."""

PROGRAMS = {
    "singularity": """\
file() { case "$1" in library://*) echo "${1##*/}_latest.sif";; *) echo "$1";; esac; }
folder=.
case "$1 $2" in
"pull -U") : > "$(file "$3")"; exit;;
"exec --pwd") folder=$3; shift 2;;
esac
[ -e "$2" ] || exit 9
[ "$1" = run ] && exec echo "said by $2"
shift 2
cd "$folder" && exec "$@"
""",
    "git": 'mkdir "$3"\n',
    "make": 'printf \'#!/bin/sh\\necho said > A.txt\\n\' > "$2/main"; chmod +x "$2/main"\n',
    "mpirun": 'echo "$2 ranks"; shift 2; exec "$@"\n',
}
"""Stand-ins for what the examples need of the nodes: none of these is in the tests' images."""

ON_HOST = {"name": "data", "hostPath": {"path": "/home/job-results", "type": "DirectoryOrCreate"}}
ON_NFS = {"name": "data", "nfs": {"server": "192.0.2.41", "path": "/results"}}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "cow-on-host": (
        {"nodeSelector": CONTAINERS, "results": {"from": "cow.out", "mount": ON_HOST}},
        "results.mount.hostPath",
    ),
    "fox-on-nfs": (
        {"nodeSelector": CONTAINERS, "results": {"from": "fox.tar.gz", "mount": ON_NFS}},
        "results.mount.nfs",
    ),
    "prepare-on-host": (
        {**HELLO, "prepare": {"to": ".", "mount": ON_HOST}, "results": {"from": "bar", "mount": ON_HOST}},
        "prepare.mount.hostPath",
    ),
}
"""Examples of wlm-operator and of its fork, with the field that is refused in them as they are."""


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One of its own: other tests install the old kinds, and remove them."""
    with support.running("sylabs") as instance:
        served.apply_crds(instance.kubectl)
        for folder in FOLDERS:
            instance.kubectl("apply", f"--kustomize={folder}")
        names = ",".join(str(one) for one in (SLURMJOBS, *(kind.resource for kind in KINDS)))

        def listed() -> bool:
            _ = instance.kubectl.get(names, "--all-namespaces")
            return True

        wait_for("all kinds of jobs are served", listed, 120)
        yield instance


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        yield KubeClient(connection, fence=OpenFence(), field_manager="test")


def with_the_charts_rights(control_plane: ControlPlane, namespace: str, file: Path) -> Path:
    """Access to a namespace with the rights that the chart gives with both switches on, once they count."""
    kubectl = control_plane.kubectl
    values = {"watchNamespaces": [namespace], "jobs": {"enabled": True, "sylabs": True}}
    kubectl.apply(render(values=values, namespace=namespace))
    for resource in ("slurmjobs.slinky.slurm.net", "leases.coordination.k8s.io"):
        served.wait_until_allowed(kubectl, service_account.user_of(namespace), "create", resource, namespace)
    return service_account.kubeconfig_of(kubectl, control_plane.kubeconfig, namespace, file)


async def create(kube: KubeClient, kind: OldKind, namespace: str, name: str, **spec: Any) -> Object:
    resource = kind.resource
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
    return await kube.create(resource, {**head, "spec": {**SPECS[kind.name], **spec}}, namespace)


async def until_status(kube: KubeClient, kind: OldKind, namespace: str, name: str, reason: str) -> Object:
    """Wait for a reason, and return the status."""
    while True:
        status: Object = (await kube.get(kind.resource, name, namespace)).get("status") or {}
        if status.get("reason") == reason:
            return status
        await asyncio.sleep(0.05)


async def test_every_kind_becomes_slurmjobs_that_the_api_server_takes(
    control_plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> None:
    namespace = f"jobs-{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
    kubeconfig = with_the_charts_rights(control_plane, namespace, tmp_path / "kubeconfig")
    jobs = {"tenants": [{"namespaces": [namespace], "user": "alice"}], "sylabs": SYLABS}
    head = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "metadata": {"name": "slurm"}}
    await kube.create(CLUSTERS, {**head, "spec": {"jobs": jobs}}, namespace)
    owners = {kind.name: await create(kube, kind, namespace, "hello") for kind in KINDS}
    flags = ("--slurmjobs", "--sylabs-jobs", "--no-watch-nodes")
    async with operator(kubeconfig, namespace, tmp_path, *flags) as running:
        await running.until_status("/readyz", 200)
        for kind in KINDS:
            # There is no Node on which a Slurm could run: the SlurmJob waits, and the old status says for what.
            shown = await until_status(kube, kind, namespace, "hello", "ClusterNotReady")
            assert (shown["status"], shown["observedGeneration"]) == ("Pending", 1)
            child = await kube.get(SLURMJOBS, kind.child("hello"), namespace)
            (owner,) = child["metadata"]["ownerReferences"]
            assert owner["uid"] == owners[kind.name]["metadata"]["uid"]
            assert child["spec"]["clusterName"] == "slurm"
        labelled = await kube.get(SLURMJOBS, KINDS[0].child("hello"), namespace)
        assert labelled["spec"]["features"] == "a100"
        image = await kube.get(SLURMJOBS, KINDS[1].child("hello"), namespace)
        assert (image["spec"]["nodes"], image["spec"]["cpusPerTask"], image["spec"]["time"]) == ("2", 4, "2")
        assert "/srv" in image["spec"]["script"]
        for kind in KINDS:
            await create(kube, kind, namespace, "misspelt", bacth="a")
            refused = await until_status(kube, kind, namespace, "misspelt", "InvalidSpec")
            assert (refused["status"], refused["message"]) == ("Failed", "spec.bacth: is not a field of this kind")
        assert not any("Traceback" in line or "orbidden" in line for line in running.said())


@pytest.fixture(params=OLDER_IN_FULL)
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """Two nodes, and the partitions that the examples name."""
    names = ("cpu", "10", "singularity")
    partitions = "".join(f"PartitionName={name} Nodes=ALL State=UP\n" for name in names)
    host = SlurmHost(ensure(request.param), extra_conf=partitions)
    output = host.binds[FOLDER] = host.folder / "output"
    output.mkdir()
    output.chmod(0o1777)
    programs = host.binds["/usr/local/bin"] = host.folder / "programs"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}")
        (programs / name).chmod(0o755)
    with host:
        host.add_node("w-0", cpus=2, wait=False)
        host.add_node("w-1", cpus=2)
        host.wait_for(lambda: host.node_is_up("w-0"), "node w-0 registers")
        yield host


async def test_the_examples_of_wlm_operator_on_real_slurm(
    control_plane: ControlPlane, kube: KubeClient, slurm: SlurmHost, tmp_path: Path
) -> None:
    """Which of them run as they are: to their output, or to what must be written instead."""
    namespace = f"jobs-{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
    kubeconfig = with_the_charts_rights(control_plane, namespace, tmp_path / "kubeconfig")
    consent = {"cluster.slinky.slurm.net/server": slurm.url}
    secret = {"metadata": {"name": "token", "annotations": consent}, "stringData": {"auth-token": slurm.token("slurm")}}
    await kube.create(SECRETS, secret, namespace)
    spec = {
        "server": slurm.url,
        "token": {"secretRef": "token"},
        "jobs": {"tenants": [{"namespaces": [namespace], "user": USER}], "sylabs": {}},
    }
    head = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "metadata": {"name": "slurm"}}
    await kube.create(CLUSTERS, {**head, "spec": spec}, namespace)
    kind = KINDS[0]
    for name, example in {"hello": HELLO, "batch": BATCH, "cow": COW, "fox": FOX}.items():
        await create(kube, kind, namespace, name, nodeSelector=example["nodeSelector"], batch=example["batch"])
    for name, (fields, _) in REFUSED.items():
        await create(kube, kind, namespace, name, **fields)
    flags = ("--slurmjobs", "--sylabs-jobs", "--no-watch-nodes")
    async with operator(kubeconfig, namespace, tmp_path, *flags) as running:
        await running.until_status("/readyz", 200)
        for name, (partition, nodes, file, output) in RUN.items():
            shown = await until_status(kube, kind, namespace, name, "Completed")
            assert shown["status"] == "Succeeded"
            job = slurm.run("scontrol", "--oneliner", "show", "job", str(shown["jobId"])).stdout
            assert f" Partition={partition} " in job
            assert f" NumNodes={nodes} " in job
            assert f"UserId={USER}(" in job
            assert output in (slurm.binds[FOLDER] / file.replace("%j", str(shown["jobId"]))).read_text()
        with tarfile.open(slurm.binds[FOLDER] / "fox.tar.gz") as results:
            assert sorted(results.getnames()) == ["fox", "fox/A.txt", "fox/main"]
        assert not [*slurm.binds[FOLDER].glob("*.sif"), *slurm.binds[FOLDER].glob("fox")]
        for name, (_, field) in REFUSED.items():
            shown = await until_status(kube, kind, namespace, name, "InvalidSpec")
            assert shown["status"] == "Failed"
            assert shown["message"].startswith(f"spec.{field}: write persistentVolumeClaim: {{claimName: NAME}}")
        assert not any("Traceback" in line or "orbidden" in line for line in running.said())
