"""ResourceClaims of pods, and devices of the nodes of their jobs: from caches, and what Slurm and the API server say.

Slurm is asked for each node of a job once, after the job was seen to run: what its node was made of does not change
while a job is on it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from slinky_api.v1alpha1.cluster.jobs import Bridge
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.bridge.caches import OF_NODE
from slinky_operator.bridge.device_claims import OF_CLAIM, claims_of_pod, holders
from slinky_operator.bridge.devices import classes_of, devices_of, readable_word
from slinky_operator.bridge.pods.model.snapshot import ENDED, GroupJob, Member, Numbered, Snapshot
from slinky_operator.bridge.pods.model.translation.device_requests import ClaimsPending, DeviceRequest, device_requests
from slinky_operator.bridge.pods.model.translation.request import Request
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Getter
from slinky_operator.kube.resources import DEVICECLASSES
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.slurm.nodes.bridge_gres import gres_by_class
from slurm_client import errors as slurm_errors
from slurm_client.models import Node

READ_S: Final = 30.0
"""Seconds for which a DeviceClass that was read counts."""

_REMEMBERED: Final = 8192
"""Nodes of jobs, and DeviceClasses, that are remembered, the last ones."""


class Client(Protocol):
    """What is used of `slurm_client.SlurmClient`."""

    async def node(self, name: str) -> Node:
        """One node, asked for now."""
        ...


class Slurm(Protocol):
    """What is used of a Cluster's `ClusterClient`."""

    @property
    def client(self) -> Client:
        """Its client."""
        ...


class SlurmByUid(Protocol):
    """What is used of `slinky_operator.slurm.connection.clients.ClientMap`."""

    def get(self, uid: str) -> Slurm | None:
        """The Slurm of a Cluster."""
        ...


class DeviceReader:
    """Reads claims and devices.

    Parameters
    ----------
    kube
        Reads DeviceClasses.
    slices, claims, pods
        Caches of ResourceSlices, of ResourceClaims, and of pods that Slurm places.
    slurm
        The Slurm of every Cluster.
    clock
        Monotonic seconds.
    """

    def __init__(
        self,
        kube: Getter,
        slices: Store,
        claims: Store,
        pods: Store,
        slurm: SlurmByUid,
        clock: Callable[[], float],
    ) -> None:
        self._kube = kube
        self._slices = slices
        self._claims = claims
        self._pods = pods
        self._slurm = slurm
        self._clock = clock
        self._words: OrderedDict[tuple[object, ...], str] = OrderedDict()
        self._classes: OrderedDict[str, tuple[float, Object | None]] = OrderedDict()

    def claims_of(self, pod: Object) -> dict[str, Object]:
        """The ResourceClaims of a pod that are there, by their names in it."""
        namespace = pod["metadata"].get("namespace")
        found = {name: self._claims.get(namespace, claim) for name, claim in claims_of_pod(pod).items()}
        return {name: claim for name, claim in found.items() if claim is not None}

    def requests_of(
        self, pod: Object, claims: Mapping[str, Object], bridge: Bridge
    ) -> tuple[DeviceRequest, ...] | ClaimsPending:
        """What the ResourceClaims of a pod ask for.

        Raises
        ------
        InvalidJob
            For what Slurm cannot keep, and for a claim that another pod names, too.
        """
        metadata = pod["metadata"]
        for name, claim in claims_of_pod(pod).items():
            for other in self._pods.find(OF_CLAIM, f"{metadata.get('namespace')}/{claim}"):
                about, phase = other["metadata"], (other.get("status") or {}).get("phase")
                if about.get("uid") != metadata.get("uid") and phase not in ENDED:
                    reason = f"pod {about['name']} names ResourceClaim {claim[:253]}, too: use a ResourceClaimTemplate"
                    raise InvalidJob(f"spec.resourceClaims[{name[:63]}]", reason)
        return device_requests(pod, claims, gres_by_class(bridge))

    async def read(self, snapshot: Snapshot, cluster: Cluster) -> Snapshot:
        """The snapshot with the devices of the nodes of its job, if pods of it wait for some.

        Raises
        ------
        KubeError
            The API server failed.
        """
        job, bridge = snapshot.job, cluster.spec.jobs.bridge
        wanted = {one.device_class for member in snapshot.waiting for one in _devices(member)}
        if job is None or bridge is None or not job.is_running or not wanted:
            return snapshot
        if not self._claims.is_whole:
            words = "not all ResourceClaims fit into the operator's memory, so it does not know which devices are free"
            return replace(snapshot, devices_unknown=words)
        slurm = self._slurm.get(cluster.uid)
        if slurm is None:
            return replace(snapshot, devices_unknown="the Cluster has no connection to its Slurm")
        try:
            words_of = await self._words_of(cluster.uid, job, slurm.client)
        except slurm_errors.SlurmError as error:
            return replace(snapshot, devices_unknown=f"Slurm does not show the nodes of the job: {error}")
        classes = classes_of(bridge)
        numbered = {
            name: Numbered(devices_of(self._slices.find(OF_NODE, name), classes), word)
            for name, word in words_of.items()
        }
        pools = {(device.driver, device.pool) for one in numbered.values() for device in one.devices.order}
        return replace(
            snapshot,
            numbered=numbered,
            holders=holders(pools, self._claims),
            classes=await self._read_classes(wanted),
        )

    async def _words_of(self, cluster: str, job: GroupJob, client: Client) -> dict[str, str]:
        """What the nodes of a job were made of; those that Slurm does not show are missing."""
        status = job.status
        about = (cluster, job.obj["metadata"].get("uid"), status.job_id, status.start_time)
        names = list(dict.fromkeys(one.node for one in status.allocation or ()))
        found = {name: self._words[*about, name] for name in names if (*about, name) in self._words}
        missing = [name for name in names if name not in found]
        for name, answer in zip(missing, await gather_limited(map(client.node, missing)), strict=True):
            if isinstance(answer, Node):
                found[name] = self._words[*about, name] = readable_word(answer.features)
            elif not isinstance(answer, slurm_errors.NotFound):
                raise answer
        while len(self._words) > _REMEMBERED:
            _ = self._words.popitem(last=False)
        return found

    async def _read_classes(self, names: set[str]) -> dict[str, Object]:
        found: dict[str, Object] = {}
        for name in sorted(names):
            known, now = self._classes.get(name), self._clock()
            if known is None or now - known[0] >= READ_S:
                try:
                    known = now, await self._kube.get(DEVICECLASSES, name)
                except errors.NotFound:
                    known = now, None
                self._classes[name] = known
                self._classes.move_to_end(name)
            if known[1] is not None:
                found[name] = known[1]
        while len(self._classes) > _REMEMBERED:
            _ = self._classes.popitem(last=False)
        return found


def _devices(member: Member) -> Sequence[DeviceRequest]:
    return member.request.devices if isinstance(member.request, Request) else ()
