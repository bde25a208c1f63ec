"""The interfaces of the simulation: a Kubernetes API and a Slurm as the controller sees them.

Before every query to Slurm, something may happen: `meanwhile` is called. Between an answer and the write that follows
from it nothing happens: in reality that gap exists too, as long as one round trip, and no rule can close it.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.resources import (
    CONFIGMAPS,
    CONTROLLERREVISIONS,
    MACHINES,
    NODES,
    NODESETS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    REBOOTNODES,
    Resource,
)
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slinky_operator.slurm.connection.slurmd_status import NoStatus, SlurmdStatus
from slurm_client import errors as slurm_errors
from slurm_client.models import Diag, Job, Node, Reservation
from slurm_client.models.database.history import JobRecord
from tests.support import conditions
from tests.support.memory_kube import merge
from tests.unit.nodeset.simulation.objects import REGISTERED, Object, clone
from tests.unit.nodeset.simulation.world import World

Meanwhile = Callable[[], None]

SHARED_FOR = 0.0
"""Seconds for which an answer about jobs is shared; with 6,000 jobs it would be 25."""


class KubeDoor:
    """The API server."""

    def __init__(self, world: World) -> None:
        self.world = world

    def _fail(self, target: Target) -> None:
        self.world.check_alive()
        if self.world.fail_kube:
            self.world.fail_kube -= 1
            raise errors.Unavailable(target, "no connection", maybe_done=False)

    def _lose(self, target: Target) -> None:
        self.world.watch_death()
        if self.world.lose_kube:
            self.world.lose_kube -= 1
            raise errors.Unavailable(target, "the answer was lost", maybe_done=True)

    def _all(self, resource: Resource) -> dict[str, Object]:
        world = self.world
        if resource == NODESETS:
            return {world.nodeset["metadata"]["name"]: world.nodeset} if world.nodeset is not None else {}
        kinds = {
            PODS: world.pods,
            CONFIGMAPS: world.maps,
            CONTROLLERREVISIONS: world.revisions,
            PERSISTENTVOLUMECLAIMS: world.claims,
            NODES: world.hosts,
            REBOOTNODES: world.reboots,
            MACHINES[0]: world.capi,
        }
        return kinds.get(resource, {})

    def _refuse(self, target: Target) -> None:
        """What a write about a machine may meet."""
        if self.world.lacks_rights:
            raise errors.Forbidden(target, "no rights", status=403)
        refusal = self.world.refusal
        self.world.refusal = refusal if refusal == "lost" else ""
        match refusal:
            case "409":
                raise errors.Conflict(target, "somebody else was first", status=409)
            case "403":
                raise errors.Forbidden(target, "a policy", status=403)
            case "422":
                raise errors.Invalid(target, "a policy", status=422)
            case "500":
                raise errors.Unavailable(target, "an error", status=500, maybe_done=False)
            case _:
                pass

    def _lose_at_machines(self, target: Target) -> None:
        """The answer may be lost of what has been carried out."""
        if self.world.refusal == "lost":
            self.world.refusal = ""
            raise errors.Unavailable(target, "the answer was lost", maybe_done=True)
        self._lose(target)

    def _delete_machine(self, target: Target, resource: Resource, name: str, uid: str | None) -> Object:
        """Delete a Node, or the Machine of one."""
        self._refuse(target)
        found = self._find(target, resource, name)
        if found["metadata"]["uid"] != uid:
            raise errors.Conflict(target, "another uid", status=409)
        if resource == NODES:
            self.world.order_delete_host(name)
        else:
            self.world.order_machine(name)
        self._lose_at_machines(target)
        return clone(found)

    def _is_checks(self, resource: Resource, name: str) -> bool:
        return resource == CONFIGMAPS and name.startswith("nodeset-checks-")

    def _find(self, target: Target, resource: Resource, name: str) -> Object:
        found = self._all(resource).get(name)
        if found is None:
            raise errors.NotFound(target, "not found", status=404)
        return found

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        self.world.check_alive()
        if self.world.lacks_rights and (resource in {NODES, REBOOTNODES} or resource in MACHINES):
            raise errors.Forbidden(Target("get", str(resource), namespace, name), "no rights", status=403)
        if self._is_checks(resource, name):
            target = Target("get", str(resource), namespace, name)
            self._fail(target)
            if self.world.checks is None:
                raise errors.NotFound(target, "not found", status=404)
            return clone(self.world.checks)
        return clone(self._find(Target("get", str(resource), namespace, name), resource, name))

    async def each(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> AsyncIterator[Object]:
        self.world.check_alive()
        if field_selector is not None:
            assert resource == PODS
            for obj in self.world.shown_at(field_selector.removeprefix("spec.nodeName=")):
                yield obj
            return
        key, _, value = (label_selector or "").partition("=")
        # All at one version, as the pages of a list are.
        found = [
            clone(obj)
            for obj in self._all(resource).values()
            if not key or (obj["metadata"].get("labels") or {}).get(key) == value
        ]
        for obj in found:
            yield obj

    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        name = body["metadata"]["name"]
        target = Target("create", str(resource), namespace, name)
        self._fail(target)
        if resource == REBOOTNODES:
            self._refuse(target)
            if name in self.world.reboots:
                raise errors.AlreadyExists(target, "exists", status=409)
            self.world.order_reboot(body)
            self._lose_at_machines(target)
            return clone(self.world.reboots[name])
        if self._is_checks(resource, name):
            return self._keep_checks(target, body)
        if name in self._all(resource):
            raise errors.AlreadyExists(target, "exists", status=409)
        obj = clone(body)
        if resource == PODS:
            self.world.order_create_pod(obj)
        elif resource == CONTROLLERREVISIONS:
            self.world.order_record(obj)
        elif resource == PERSISTENTVOLUMECLAIMS:
            self.world.order_claim(obj)
        else:
            self.world.order_guard(obj)
        self._lose(target)
        return self.world.told(obj)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None,
        resource_version: str | None = None,
    ) -> Object:
        target = Target("delete", str(resource), namespace, name)
        self._fail(target)
        if resource == NODES or resource in MACHINES:
            return self._delete_machine(target, resource, name, uid)
        metadata = self._find(target, resource, name)["metadata"]
        if uid is not None and metadata["uid"] != uid:
            raise errors.Conflict(target, "another uid", status=409)
        if resource_version is not None and metadata["resourceVersion"] != resource_version:
            raise errors.Conflict(target, "another version", status=409)
        if resource == PODS:
            if "deletionTimestamp" not in metadata:
                self.world.order_delete_pod(name)
        elif resource == CONTROLLERREVISIONS:
            self.world.order_drop(name)
        elif resource == PERSISTENTVOLUMECLAIMS:
            self.world.order_unclaim(name)
        else:
            del self.world.maps[name]
            if any(self.world.is_ours(pod) for pod in self.world.pods.values()):
                self.world.violations.append("the guard went before the pods")
        self._lose(target)
        return {}

    async def merge_patch(
        self,
        resource: Resource,
        name: str,
        patch: Object,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Object:
        target = Target("patch", str(resource), namespace, name)
        self._fail(target)
        if self._is_checks(resource, name):
            return self._keep_checks(target, patch, uid, resource_version)
        obj = self._find(target, resource, name)
        if resource == NODES:
            self._refuse(target)
        if resource_version is not None and obj["metadata"]["resourceVersion"] != resource_version:
            raise errors.Conflict(target, "another version", status=409)
        if resource == NODES:
            assert (uid, resource_version) == (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"])
            self.world.order_host(name, patch)
            self._lose_at_machines(target)
            return self.world.told(obj)
        if resource == CONTROLLERREVISIONS:
            obj["revision"] = patch["revision"]
            self.world.tell("revisions", "MODIFIED", obj)
            return self.world.told(obj)
        if uid is not None and obj["metadata"]["uid"] != uid:
            raise errors.Conflict(target, "another uid", status=409)
        if resource == PERSISTENTVOLUMECLAIMS:
            self.world.order_mark_claim(name, patch["metadata"]["annotations"])
            self._lose(target)
            return self.world.told(obj)
        if resource == PODS:
            self.world.order_mark(name, patch["metadata"])
            self._lose(target)
            return self.world.told(obj)
        assert resource == NODESETS
        if len(patch["metadata"]["finalizers"]) < len(obj["metadata"].get("finalizers") or ()):
            self.world.order_let_go()
        obj["metadata"]["finalizers"] = patch["metadata"]["finalizers"]
        self.world.tell("nodesets", "MODIFIED", obj)
        self.world.release()
        self._lose(target)
        return self.world.told(obj)

    def _keep_checks(
        self, target: Target, body: Object, uid: str | None = None, resource_version: str | None = None
    ) -> Object:
        """Create or change the ConfigMap with checks."""
        known = self.world.checks
        if known is not None and uid is None:
            raise errors.AlreadyExists(target, "exists", status=409)
        if known is None and uid is not None:
            raise errors.NotFound(target, "not found", status=404)
        if known is not None and (known["metadata"]["uid"], known["metadata"]["resourceVersion"]) != (
            uid,
            resource_version,
        ):
            raise errors.Conflict(target, "another version", status=409)
        data = {**(known["data"] if known is not None else {}), **body["data"]}
        data = {key: text for key, text in data.items() if text is not None}
        self.world.order_checks(data)
        number = self.world.next()
        metadata = known["metadata"] if known is not None else {**body["metadata"], "uid": f"checks-{number}"}
        self.world.checks = {**clone(body), "metadata": {**metadata, "resourceVersion": str(number)}, "data": data}
        self._lose(target)
        return clone(self.world.checks)

    async def apply(
        self,
        resource: Resource,
        body: Object,
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = True,
    ) -> Object:
        metadata = body["metadata"]
        target = Target("apply", str(resource), metadata["namespace"], metadata["name"])
        self._fail(target)
        obj = self._find(target, resource, metadata["name"])
        if obj["metadata"]["uid"] != metadata["uid"]:
            raise errors.Conflict(target, "another uid", status=409)
        if subresource is None:
            self.world.order_owners(metadata["name"], metadata["ownerReferences"])
            self._lose(target)
            return self.world.told(obj)
        written = body["status"]["conditions"]
        kinds = {one["type"] for one in written}
        others = [one for one in obj["status"].get("conditions") or [] if one["type"] not in kinds]
        obj["status"]["conditions"] = [*others, *written]
        self.world.tell("pods", "MODIFIED", obj)
        self.world.watch_states(metadata["name"])
        if REGISTERED in kinds and metadata["uid"] not in self.world.ever_known:
            self.world.violations.append(f"pod {metadata['name']} was marked as registered, and it never has")
        self._lose(target)
        return self.world.told(obj)

    async def patch_status(
        self,
        resource: Resource,
        name: str,
        status: Object,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Object:
        assert resource_version is None
        target = Target("patch", str(resource), namespace, name)
        self._fail(target)
        obj = self._find(target, resource, name)
        before = self.world.replacements()
        obj["status"] = merge(obj.get("status") or {}, status)
        self.world.watch_tries(before)
        conditions.check(obj["status"])
        self.world.tell("nodesets", "MODIFIED", obj)
        self._lose(target)
        return self.world.told(obj)


class SlurmDoor:
    """A Cluster's Slurm, its client and its node cache in one."""

    def __init__(self, world: World, meanwhile: Meanwhile) -> None:
        self.world = world
        self.meanwhile = meanwhile
        self.client = self
        self.namespace, self.name = "ns", "c"
        self.shared: tuple[datetime, Iterable[Job]] | None = None

    @property
    def contact(self) -> Contact:
        if self.world.ready:
            return Contact(ContactState.READY, datetime(2026, 1, 1, tzinfo=UTC), "")
        return Contact(ContactState.UNREACHABLE, datetime(2026, 1, 1, tzinfo=UTC), "no answer")

    # The cache is read as an attribute and asked for as a call, under the same name in two objects.

    @property
    def nodes_at(self) -> float | None:
        return self.world.picture_at

    async def refresh(self, names: Iterable[str]) -> Mapping[str, Node | None]:
        self.meanwhile()
        self.world.check_slurm()
        found: dict[str, Node | None] = {}
        for name in names:
            record = self.world.records.get(name)
            found[name] = self.world.show(record) if record is not None else None
            if record is None:
                self.world.picture.pop(name, None)
            else:
                self.world.picture[name] = self.world.show(record)
        return found

    def show_output(self, nodeset: str, shares: tuple[float, float] | None) -> None:
        assert shares is None, f"{nodeset} has no job log server"

    def hurry(self, *, whole: bool = False) -> None:
        self.world.do_poll(0)

    async def shared_jobs(self, since: float = -math.inf) -> Iterable[Job]:
        """An answer that may have been given to somebody else before, a good while ago where jobs are many.

        The clock stands still while much happens: an answer of that very moment may be from before.
        """
        old = self.shared is None or (self.world.now - self.shared[0]).total_seconds() > SHARED_FOR
        if self.shared is None or old or self.shared[0].timestamp() <= since:
            self.shared = self.world.now, await self.fresh_jobs()
        return self.shared[1]

    async def fresh_jobs(self) -> Iterable[Job]:
        self.meanwhile()
        self.world.check_slurm()
        return [self.world.show_job(job) for job in self.world.jobs]

    async def jobs_with_nodes(self) -> Iterable[Job]:
        return [job for job in await self.fresh_jobs() if job.nodes]

    @property
    def db(self) -> SlurmDoor:
        return self

    async def job_records(self, job_id: int) -> Iterable[JobRecord]:
        """slurmdbd has no end of a job that runs."""
        self.world.check_slurm()
        return ()

    async def steps_at(self, address: str) -> SlurmdStatus:
        """A slurmd shows what really runs there, whatever slurmctld knows; its pod's uid is its address."""
        self.meanwhile()
        started = self.world.running.get(address)
        # A slurmd whose pod is gone from the API server runs on until its kubelet has heard of that.
        nodes = {self.world.uid_of(name): self.world.node_of(name) for name in self.world.pods}
        nodes |= {one.slurmd: one.name for one in self.world.records.values()}
        if started is None or address not in nodes:
            raise NoStatus("nobody listens")
        jobs = frozenset(job.id for job in (*self.world.jobs, *self.world.lost_jobs) if address in job.alive)
        return SlurmdStatus(nodes[address], started, None, jobs)

    async def reservations(self) -> Iterable[Reservation]:
        self.world.check_slurm()
        return ()

    async def diag(self) -> Diag:
        self.meanwhile()
        self.world.check_slurm()
        return Diag(now=self.world.slurm_now)

    async def drain_nodes(self, names: Iterable[str], reason: str) -> None:
        self.world.order_drain(list(names), reason)

    async def undrain_nodes(self, names: Iterable[str]) -> None:
        self.world.order_undrain(list(names))

    async def resume_nodes(self, names: Iterable[str]) -> None:
        self.world.order_resume(list(names))

    async def update_nodes(
        self,
        names: Iterable[str],
        *,
        state: str | None = None,
        reason: str | None = None,
        extra: str | None = None,
        features: Sequence[str] | None = None,
        active_features: Sequence[str] | None = None,
        topology: str | None = None,
    ) -> None:
        if topology is not None and not self.world.keeps_instance:
            # That is 24.11, whose data parsers do not know of it.
            raise slurm_errors.NotSupported("no such field", available_in=["v0.0.45"])
        if state is None:
            assert features == active_features
            self.world.order_traits(list(names), features, topology)
            return
        assert state == "DOWN"
        self.world.order_down(list(names), reason)

    async def job(self, job_id: int, *, details: bool = True) -> Job:
        self.world.check_slurm()
        found = [job for job in self.world.jobs if job.id == job_id]
        if not found:
            raise slurm_errors.NotFound(f"job {job_id}")
        return self.world.show_job(found[0])

    async def cancel_job(self, job: Job | int) -> None:
        self.world.order_end_jobs(job, "Cancel")

    async def requeue_job(self, job: Job | int) -> None:
        if not self.world.keeps_instance:
            # Slurm 24.11, which takes new instance ids, has no data parser with that call.
            raise slurm_errors.NotSupported("no such call", available_in=["v0.0.45"])
        self.world.order_end_jobs(job, "Requeue")

    async def delete_nodes(self, names: Iterable[str], *, are_nodes: bool = False) -> None:
        self.world.order_delete_records(list(names))

    @property
    def nodes(self) -> Any:
        return _Nodes(self.world.picture, self)


class _Nodes(dict[str, Node]):
    """The cache as a mapping, which can also be called for a fresh list, as the client's method of that name is."""

    def __init__(self, picture: Mapping[str, Node], door: SlurmDoor) -> None:
        super().__init__(picture)
        self._door = door

    async def __call__(self) -> Iterable[Node]:
        self._door.meanwhile()
        self._door.world.check_slurm()
        return [self._door.world.show(record) for record in self._door.world.records.values()]
