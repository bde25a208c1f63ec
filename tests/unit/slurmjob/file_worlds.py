"""SlurmJobs with files: the orders of their pods, and how these end."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PERSISTENTVOLUMECLAIMS, PODS, SECRETS, Resource
from slinky_operator.pod_programs.joblogs.copies import orders, permits
from slinky_operator.pod_programs.joblogs.copies.orders import Copy, Place, Report
from slinky_operator.pod_programs.joblogs.copies.permits import Permit
from tests.unit.slurmjob.log_worlds import KEY, LogWorld
from tests.unit.slurmjob.worlds import JobWorld, job_world

SERVED = "/var/spool/job-output/run"
SHARED = {"claimName": "data", "mountPath": "/data"}


def result(path: str | None = SERVED, **more: Any) -> dict[str, Any]:
    found = {"volume": {"persistentVolumeClaim": {"claimName": "out"}}, **more}
    return found if path is None else {**found, "path": path}


class FileWorld(LogWorld):
    """A Cluster whose nodes have job log servers, and a claim `out` in namespace `team`."""

    def __init__(self, world: JobWorld) -> None:
        super().__init__(world)
        self.claim("out")

    def claim(self, name: str) -> None:
        self.kube.put(PERSISTENTVOLUMECLAIMS, {"metadata": {"name": name, "namespace": "team"}})

    def get(self, resource: Resource, name: str) -> Object:
        found = self.find(resource, name)
        assert found is not None, [key for key in self.kube.objects if key[1] == "team"]
        return found

    def copies(self, name: str = "hello-results") -> tuple[Copy, ...]:
        """The orders of a pod."""
        return orders.parse(base64.b64decode(self.get(SECRETS, name)["data"][orders.NAME]))

    def permit(self, place: Place) -> Permit:
        return permits.verify(place.token, KEY, now=self.world.now().timestamp())

    def names(self) -> list[str]:
        """The pods that copy."""
        return sorted(name for plural, _, name in self.kube.objects if plural == "pods" and name.startswith("hello-"))

    async def ended(self, code: int = 0, **spec: Any) -> int:
        """Run a job to its end."""
        self.world.job(**spec)
        number = await self.world.submitted()
        await self.world.until(lambda: self.world.status().get("state") == "Running")
        self.world.slurm.world.exit_job(number, code)
        await self.world.until(lambda: self.world.condition("Finished")[0] == "True")
        return number

    def pod_says(self, name: str = "hello-results", **status: Any) -> None:
        found = self.get(PODS, name)
        self.kube.put(PODS, {**found, "status": status})

    def pod_ends(self, reports: Sequence[Report] | str, name: str = "hello-results") -> None:
        text = reports if isinstance(reports, str) else orders.message(reports)
        is_bad = isinstance(reports, str) or any(one.why for one in reports)
        state = {"terminated": {"message": text, "exitCode": int(is_bad), "reason": "Error" if is_bad else "Completed"}}
        phase = "Failed" if is_bad else "Succeeded"
        self.pod_says(name, phase=phase, containerStatuses=[{"name": "copy", "state": state}])

    def files(self) -> Object:
        found: Object = self.world.status()["files"]
        return found


@asynccontextmanager
async def file_world() -> AsyncIterator[FileWorld]:
    async with job_world() as world:
        yield FileWorld(world)


def collected(files: FileWorld) -> tuple[str, str, str]:
    """What is shown of the results of the job."""
    return files.world.condition("ResultsCollected")
