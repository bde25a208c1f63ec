"""From caches to the snapshot of one group of pods."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol

from slinky_api import labels
from slinky_api.v1alpha1.cluster.jobs import Bridge
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.bridge.pods.absent_hosts import AbsentHosts
from slinky_operator.bridge.pods.clusters import BridgeClusters
from slinky_operator.bridge.pods.device_reader import DeviceReader
from slinky_operator.bridge.pods.model import lift, membership, slurmjobs
from slinky_operator.bridge.pods.model.group_owners import Owner
from slinky_operator.bridge.pods.model.membership import GroupKey, GroupKind
from slinky_operator.bridge.pods.model.plan import needs_owner, needs_place
from slinky_operator.bridge.pods.model.slurmjobs import OF_GROUP
from slinky_operator.bridge.pods.model.snapshot import Absent, Away, GroupJob, Member, Snapshot
from slinky_operator.bridge.pods.model.translation.device_requests import ClaimsPending, DeviceRequest
from slinky_operator.bridge.pods.model.translation.largest import different, too_large
from slinky_operator.bridge.pods.model.translation.request import Request, request_of
from slinky_operator.bridge.pods.owners import Owners
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Indexer, Store, key_of
from slinky_operator.kube.cache.stubs import is_stub
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Getter
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.reconcile.writes.parts import stored_status
from slurm_client.models import Node

UID: Final = "uid"
GROUP: Final = "bridge group"
PLACED_BY: Final = "placed by"

MOST_LOST: Final = 4
"""SlurmJobs that a pass asks for which the cache does not show."""

MOST_JOBS: Final = 32
"""SlurmJobs of a group that a pass reads, the last ones."""

_REMEMBERED: Final = 8192
"""Pods whose translation is kept, and Jobs of which is known that each pod is a group."""

TOO_LARGE: Final = frozenset({"PartitionConfig", "BadConstraints", "SubmissionRefused"})
"""Words of Slurm, or of the operator, for a job that fits on no node, among other things."""

SIZES_S: Final = 30.0
"""Seconds for which sizes of nodes count once read."""

_TURN: Final = 64
"""Pods that are translated before others have their turn."""


def _by_uid(pod: Object) -> list[str]:
    return [str(pod["metadata"].get("uid") or "")]


def _by_group(pod: Object) -> list[str]:
    return [f"{pod['metadata'].get('namespace')}/{membership.group_of(pod)}"]


def _by_job(pod: Object) -> list[str]:
    name = membership.placed_by(pod)
    return [f"{pod['metadata'].get('namespace')}/{name}"] if name else []


INDEXES_OF_PODS: Final[Mapping[str, Indexer]] = {UID: _by_uid, GROUP: _by_group, PLACED_BY: _by_job}
"""Indexes the cache of pods must have."""

INDEXES_OF_JOBS: Final[Mapping[str, Indexer]] = {OF_GROUP: slurmjobs.by_group}
"""Indexes the cache of SlurmJobs must have."""


class Singles:
    """Jobs of which each pod is a group, although its pods have indexes: only the Job itself says so."""

    def __init__(self) -> None:
        self._uids: OrderedDict[str, None] = OrderedDict()

    def add(self, uid: str) -> None:
        """Note a Job."""
        self._uids[uid] = None
        while len(self._uids) > _REMEMBERED:
            _ = self._uids.popitem(last=False)

    def group_of(self, pod: Object) -> GroupKey:
        """The group of a pod, as far as it is known."""
        key = membership.group_of(pod)
        is_single = key.kind is GroupKind.JOB and key.name in self._uids and not membership.asked_kind(pod)
        return membership.single(str(pod["metadata"].get("uid") or "")) if is_single else key


@dataclass(frozen=True, slots=True)
class Apart:
    """Pods that look like one group are groups each."""

    pods: tuple[str, ...]
    """Their uids."""


@dataclass(frozen=True, slots=True)
class NotShown:
    """There was no room in the cache for a SlurmJob of the group."""


class WithNodes(Protocol):
    """What is used of a Cluster's `ClusterClient`."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Its nodes."""
        ...


class SlurmByUid(Protocol):
    """What is used of `slinky_operator.slurm.connection.clients.ClientMap`."""

    def get(self, uid: str) -> WithNodes | None:
        """The Slurm of a Cluster."""
        ...


class Observer:
    """Builds snapshots.

    Parameters
    ----------
    kube
        Reads what holds groups together, and SlurmJobs that the cache does not show.
    pods, jobs
        Caches of pods and SlurmJobs.
    clusters
        Chooses the Cluster.
    singles
        Jobs whose pods are groups each.
    now, clock
        The wall clock, and monotonic seconds.
    slurm
        The Slurm of every Cluster, whose nodes say how large a pod may be; None if nobody knows.
    devices
        ResourceClaims and devices; None if the settings let Slurm give none to pods.
    hosts
        The cache of Kubernetes Nodes; None if nobody looks whether they still exist.
    """

    def __init__(
        self,
        kube: Getter,
        pods: Store,
        jobs: Store,
        clusters: BridgeClusters,
        singles: Singles,
        *,
        now: Callable[[], datetime],
        clock: Callable[[], float],
        slurm: SlurmByUid | None = None,
        devices: DeviceReader | None = None,
        hosts: Store | None = None,
    ) -> None:
        self._kube = kube
        self._hosts = None if hosts is None else AbsentHosts(kube, hosts, clock)
        self._devices = devices
        self._pods = pods
        self._jobs = jobs
        self._clusters = clusters
        self._owners = Owners(kube, clock)
        self._singles = singles
        self._now = now
        self._clock = clock
        self._slurm = slurm
        self._sizes: dict[str, tuple[float, tuple[Node, ...]]] = {}
        self._empty_since: dict[tuple[str, str], float] = {}
        self._requests: OrderedDict[str, tuple[Object, object, Request | InvalidJob]] = OrderedDict()

    def forget(self, namespace: str, key: GroupKey) -> None:
        """Forget a group that has nothing any more."""
        _ = self._empty_since.pop((namespace, str(key)), None)
        self._owners.forget(namespace, key)

    async def observe(self, namespace: str, key: GroupKey) -> Snapshot | Apart | NotShown | None:
        """Read everything that a pass needs; None if there is nothing of such a group.

        Raises
        ------
        KubeError
            The API server failed, or refused a read.
        """
        jobs = self._group_jobs(namespace, key)
        if jobs is None:
            return NotShown()
        pods = self._members(namespace, key, jobs)
        if not jobs and not pods:
            self.forget(namespace, key)
            return None
        apart = await self._apart(namespace, key, jobs, pods)
        if apart is not None:
            return apart
        lost, foreign, found = await self._elsewhere(namespace, key, jobs, pods)
        jobs = sorted([*jobs, *found], key=lambda one: one.attempt)
        members = tuple(Member(pod, membership.rank_of(pod, key.kind), claims=self._claims(pod)) for pod in pods)
        snapshot = Snapshot(key, namespace, self._now(), members, tuple(jobs), lost, foreign)
        snapshot = replace(snapshot, empty_s=self._empty_s(snapshot))
        if needs_owner(snapshot):
            snapshot = replace(snapshot, owner=await self._owners.read(snapshot))
        if needs_place(snapshot):
            snapshot = await self._understood(snapshot)
        snapshot = replace(snapshot, absent=await self._absent(snapshot))
        return await self._measured(snapshot)

    def _group_jobs(self, namespace: str, key: GroupKey) -> list[GroupJob] | None:
        found: list[GroupJob] = []
        for obj in self._jobs.find(OF_GROUP, f"{namespace}/{key}"):
            if is_stub(obj):
                return None
            job = _group_job(key, obj)
            if job is not None:
                found.append(job)
        # One that the group does not own counts only where it owns none: somebody may have made it in advance.
        owned = [one for one in found if one.is_owned]
        return sorted(owned or found, key=lambda one: one.attempt)[-MOST_JOBS:]

    def _members(self, namespace: str, key: GroupKey, jobs: list[GroupJob]) -> list[Object]:
        by_uid: dict[str, Object] = {}
        if key.kind is GroupKind.POD:
            found = [one for one in self._pods.find(UID, key.name) if key_of(one)[0] == namespace]
        else:
            found = self._pods.find(GROUP, f"{namespace}/{key}")
        for pod in found:
            by_uid[str(pod["metadata"]["uid"])] = pod
        for job in jobs:
            for pod in self._pods.find(PLACED_BY, f"{namespace}/{job.name}"):
                by_uid[str(pod["metadata"]["uid"])] = pod
        # What another group has placed is that group's, whatever it looks like now.
        placed = {uid: membership.placed_by(pod) for uid, pod in by_uid.items()}
        groups = {name: self._group_that_placed(namespace, name) for name in set(placed.values())}
        return [pod for uid, pod in by_uid.items() if groups[placed[uid]] in {None, key}]

    def _group_that_placed(self, namespace: str, name: str) -> GroupKey | None:
        job = self._jobs.get(namespace, name)
        return None if job is None else GroupKey.read(slurmjobs.members_of(job))

    async def _apart(self, namespace: str, key: GroupKey, jobs: list[GroupJob], pods: list[Object]) -> Apart | None:
        """Whether pods of a Job are groups each: what was made before wins over what the Job says now."""
        if key.kind is not GroupKind.JOB or jobs or not pods:
            return None
        if any(membership.asked_kind(pod) == GroupKind.JOB for pod in pods):
            return None
        uids = tuple(str(pod["metadata"]["uid"]) for pod in pods)
        is_apart = any(self._jobs.find(OF_GROUP, f"{namespace}/{membership.single(uid)}") for uid in uids)
        if not is_apart:
            owner = await self._owners.read(
                Snapshot(key, namespace, self._now(), tuple(Member(pod, None) for pod in pods))
            )
            is_apart = isinstance(owner, Owner) and not owner.is_group
        if not is_apart:
            return None
        self._singles.add(key.name)
        return Apart(uids)

    async def _elsewhere(
        self, namespace: str, key: GroupKey, jobs: list[GroupJob], pods: list[Object]
    ) -> tuple[frozenset[str], frozenset[str], list[GroupJob]]:
        """SlurmJobs that pods name and that are not among those of the group: lost, of others, or not shown yet."""
        known = {job.name for job in jobs}
        living = (pod for pod in pods if (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed"})
        names = sorted({membership.placed_by(pod) for pod in living} - known - {""})
        lost: set[str] = set()
        foreign: set[str] = set()
        found: list[GroupJob] = []
        for name in names[:MOST_LOST]:
            obj = self._jobs.get(namespace, name)
            if obj is None:
                try:
                    obj = await self._kube.get(SLURMJOBS, name, namespace)
                except errors.NotFound:
                    lost.add(name)
                    continue
                except ValueError:
                    # Somebody has written what is no name.
                    foreign.add(name)
                    continue
            job = _group_job(key, obj)
            if job is not None and job.is_owned:
                found.append(job)
            else:
                foreign.add(name)
        return frozenset(lost), frozenset(foreign), found

    def _empty_s(self, snapshot: Snapshot) -> float:
        where, now = (snapshot.namespace, str(snapshot.key)), self._clock()
        if snapshot.living or snapshot.job is None or snapshot.job.is_over:
            _ = self._empty_since.pop(where, None)
            return 0.0
        return now - self._empty_since.setdefault(where, now)

    async def _understood(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with where its job runs, and what its pods ask for."""
        cluster = await self._clusters.find(snapshot)
        if isinstance(cluster, Away):
            return replace(snapshot, place=cluster)
        owner = snapshot.owner if isinstance(snapshot.owner, Owner) else None
        if owner is None and snapshot.job is not None and not snapshot.is_single:
            # Pods that come later inherit what the first ones did.
            found = await self._owners.read(snapshot)
            owner = found if isinstance(found, Owner) else None
        members: list[Member] = []
        for number, member in enumerate(snapshot.members):
            if number % _TURN == _TURN - 1:
                await asyncio.sleep(0)
            if member.waits:
                member = replace(member, request=self._request(member, snapshot.key.kind, cluster, owner))  # noqa: PLW2901
            members.append(member)
        user = next((one.request.user for one in members if isinstance(one.request, Request)), None)
        place = await self._clusters.granted(cluster, snapshot.namespace, user)
        snapshot = replace(snapshot, place=place, members=tuple(members))
        return await self._devices.read(snapshot, cluster) if self._devices is not None else snapshot

    async def _measured(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with what no node has of what its job asks for, where Slurm says that it fits nowhere."""
        job = snapshot.job
        if self._slurm is None or job is None or job.is_running or not snapshot.waiting:
            return snapshot
        if TOO_LARGE.isdisjoint({job.status.slurm_reason, job.status.reason}):
            return snapshot
        cluster = await self._clusters.find(snapshot)
        entry = self._slurm.get(cluster.uid) if isinstance(cluster, Cluster) else None
        if entry is None or isinstance(cluster, Away) or cluster.spec.jobs.bridge is None:
            return snapshot
        known = self._sizes.get(cluster.uid)
        if known is None or self._clock() - known[0] >= SIZES_S:
            known = self._clock(), different(entry.nodes.values(), cluster.spec.jobs.bridge.name)
            self._sizes[cluster.uid] = known
        return replace(snapshot, too_large=too_large(job.parts, known[1]))

    async def _absent(self, snapshot: Snapshot) -> Absent:
        """Nodes that pods wait for, or are to be placed on, and that do not exist."""
        if self._hosts is None:
            return Absent()
        job = snapshot.job
        names = {lift.waits_for(one.obj, snapshot.now) for one in snapshot.living if one.job} - {""}
        if snapshot.waiting and job is not None and job.is_running:
            taken = {one.slot for one in snapshot.living if one.job == job.name}
            names.update(node for number, node in enumerate(slurmjobs.slots(job)) if number not in taken)
        return await self._hosts.find(names)

    def _claims(self, pod: Object) -> Mapping[str, Object]:
        """ResourceClaims of a pod that waits."""
        if self._devices is None or not membership.is_gated(pod):
            return {}
        return self._devices.claims_of(pod)

    def _request(
        self, member: Member, kind: GroupKind, cluster: Cluster, owner: Owner | None
    ) -> Request | InvalidJob | ClaimsPending:
        pod, uid, bridge = member.obj, member.uid, cluster.spec.jobs.bridge
        assert bridge is not None  # noqa: S101 - for the type checker
        annotations = owner.annotations if owner is not None else {}
        deadline = owner.deadline_s if owner is not None else None
        asked = {name: claim.get("spec") for name, claim in member.claims.items()}
        about = (bridge, dict(annotations), deadline, asked)
        known = self._requests.get(uid)
        if known is not None and known[0] is pod and known[1] == about:
            return known[2]
        try:
            devices = self._device_requests(member, bridge)
            if isinstance(devices, ClaimsPending):
                return devices
            found: Request | InvalidJob = request_of(pod, kind, bridge, annotations, deadline, devices)
        except InvalidJob as error:
            found = error
        self._requests[uid] = pod, about, found
        self._requests.move_to_end(uid)
        while len(self._requests) > _REMEMBERED:
            _ = self._requests.popitem(last=False)
        return found

    def _device_requests(self, member: Member, bridge: Bridge) -> tuple[DeviceRequest, ...] | ClaimsPending:
        if not member.obj["spec"].get("resourceClaims"):
            return ()
        if self._devices is None:
            reason = "the operator's settings let Slurm give no devices to pods (bridge.devices of its chart)"
            raise InvalidJob("spec.resourceClaims", reason)
        return self._devices.requests_of(member.obj, member.claims, bridge)


def _group_job(key: GroupKey, obj: Object) -> GroupJob | None:
    attempt = slurmjobs.attempt_of(key, obj)
    if attempt is None or slurmjobs.members_of(obj) != str(key):
        return None
    uid = key.name if key.has_uid else str((obj["metadata"].get("labels") or {}).get(labels.LABEL_BRIDGE_GROUP))
    return GroupJob(obj, stored_status(SlurmJobStatus, obj), attempt, slurmjobs.is_owned(key, obj, uid))
