"""A kubelet API for tests: pods and their SlurmJobs in a table, output on a real job log server, callers by TLS."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import CLUSTERS, NODESETS, PODS, SECRETS
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.reconcile.cached.job_nodes import INDEXES_OF_PODS, Nodes
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.job_output import JobOutput
from slinky_operator.virtual_nodes.kubelet.answers import Answers, Limits
from slinky_operator.virtual_nodes.kubelet.callers import Callers
from slinky_operator.virtual_nodes.kubelet.output import Sources
from slinky_operator.virtual_nodes.kubelet.served_pods import ServedPod
from slinky_operator.virtual_nodes.kubelet.service import KubeletApi, Serving
from tests.support.memory_kube import MemoryKube

KEY = bytes(range(64))
NODE = "slurm-site-cpu"
STARTED = "2026-11-27T10:00:00Z"


@dataclass
class Table:
    """Pods on virtual Nodes."""

    pods: dict[tuple[str, str], ServedPod] = field(default_factory=dict)

    def find(self, namespace: str, name: str) -> ServedPod | None:
        return self.pods.get((namespace, name))

    def put(
        self, namespace: str, name: str, path: str = "", uid: int = 20001, *, state: str = "Running", starts: int = 0
    ) -> None:
        """A pod whose job writes to a file of node w-0; one without a file waits."""
        pod: Object = {
            "metadata": {"namespace": namespace, "name": name, "uid": f"uid-{name}"},
            "spec": {"nodeName": NODE, "containers": [{"name": "main"}]},
            "status": {"containerStatuses": [{"state": {"waiting": {"reason": "Queued"}}}]},
        }
        place = {"job": "7", "node": "w-0", "uid": uid, "gid": uid, "path": path, "starts": starts}
        times = {"startTime": STARTED} | ({"endTime": "2026-11-27T11:00:00Z"} if state == "Succeeded" else {})
        status: Mapping[str, Any] = (
            {"state": state, "logs": {"place": place}, **times} if path else {"state": "Pending"}
        )
        spec = {"clusterName": "slurm", "clusterNamespace": "slurm"}
        job: Object = {"metadata": {"namespace": namespace, "name": name}, "spec": spec, "status": status}
        self.pods[namespace, name] = ServedPod(pod, job)


def objects_of_slurm(address: str = "127.0.0.1") -> MemoryKube:
    """A Cluster slurm in a namespace of that name, whose one node w-0 is at an address, and the key of its servers."""
    kube = MemoryKube()
    about = {"namespace": "slurm", "name": "slurm", "uid": "cluster-1"}
    for resource, indexes in ((CLUSTERS, {}), (NODESETS, INDEXES_OF_NODESETS), (PODS, INDEXES_OF_PODS)):
        kube.cache(resource, indexes)
    kube.put(CLUSTERS, {"metadata": about, "spec": {}})
    nodeset = {"namespace": "slurm", "name": "w", "uid": "uid-w"}
    kube.put(NODESETS, {"metadata": nodeset, "spec": {"clusterName": "slurm"}})
    own = {labels.LABEL_CLUSTER_NAME: "slurm", labels.LABEL_NODESET_NAME: "w", labels.LABEL_NODESET_UID: "uid-w"}
    owner = {"kind": "NodeSet", "name": "w", "uid": "uid-w", "controller": True}
    pod = {"namespace": "slurm", "name": "w-0", "labels": own, "ownerReferences": [owner]}
    spec = {"initContainers": [{"name": naming.JOB_LOGS_CONTAINER}], "hostname": "w-0"}
    kube.put(PODS, {"metadata": pod, "spec": spec, "status": {"podIP": address}})
    key = {"namespace": "slurm", "name": naming.job_logs_key("slurm")}
    of_cluster = {labels.LABEL_CLUSTER_UID: "cluster-1", labels.LABEL_CLUSTER_NAME: "slurm"}
    data = {naming.JOB_LOGS_KEY: base64.b64encode(KEY).decode()}
    kube.put(SECRETS, {"metadata": {**key, "labels": of_cluster}, "data": data})
    return kube


@dataclass
class Api:
    """A kubelet API that runs."""

    service: KubeletApi
    answers: Answers
    table: Table
    told: list[str]
    leads: list[bool]

    @property
    def port(self) -> int:
        return self.service.port


@asynccontextmanager
async def kubelet_api(
    kube: Kube,
    slurm: MemoryKube,
    *,
    limits: Limits | None = None,
    certificate_folder: Path | None = None,
    output: JobOutput | None = None,
    host: str = "127.0.0.1",
) -> AsyncIterator[Api]:
    """Run a kubelet API on loopback; `kube` reviews callers, `slurm` has the objects of the Cluster."""
    table, told, leads = Table(), list[str](), [True]
    nodes = Nodes(slurm.caches["nodesets"], slurm.caches["pods"])
    secrets = SecretReader(slurm)  # type: ignore[arg-type]
    sources = Sources(ClusterReader(slurm.caches["clusters"]), nodes, secrets)
    async with output or JobOutput() as reader:
        answers = Answers(
            table,
            Callers(kube),
            sources,
            reader,
            lambda: leads[0],
            mark="mark",
            limits=limits or Limits(),
            now=lambda: datetime.now(UTC),
        )
        serving = Serving(host, 0, certificate_folder, None, (host,))
        service = KubeletApi(serving, answers, kube, tell=told.append)
        running = asyncio.create_task(service.run())
        await until(lambda: bool(service.port) or running.done(), "it does not listen")
        try:
            yield Api(service, answers, table, told, leads)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def caller(certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """What a caller connects with; it believes any certificate, as API servers do by default."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context


async def ask(
    port: int, path: str, context: ssl.SSLContext, *, token: str = "", method: str = "GET", headers: str = ""
) -> tuple[int, str]:
    """Ask once; status and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{authorization}{headers}\r\n".encode())
    try:
        answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode(errors="replace")


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for what must come."""
    deadline = asyncio.get_running_loop().time() + 120
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, what
        await asyncio.sleep(0.02)
