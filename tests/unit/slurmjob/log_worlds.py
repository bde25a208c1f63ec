"""SlurmJobs with output (`worlds`), whose nodes are pods with a job log server."""

from __future__ import annotations

import base64
from typing import Any

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NODESETS, PODS, SECRETS, Resource
from slinky_operator.pod_programs.joblogs import tokens
from slinky_operator.pod_programs.joblogs.follower import job_file
from slinky_operator.pod_programs.joblogs.follower.job_file import Job
from slinky_operator.pod_programs.joblogs.tokens import Grant
from slinky_operator.slurm import naming
from slurm_client.testing.slurmctld.queue import uid_of
from tests.unit.slurmjob.worlds import JobWorld

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
        """The file that the followers read."""
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
