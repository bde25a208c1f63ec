"""What a pass knows: from the caches of Kubernetes Nodes and of Slurm's nodes, and the last look at pods."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from slinky_operator.bridge.devices import DeviceKey
from slinky_operator.bridge.features import is_ours
from slinky_operator.bridge.nodes.configuration import Client as AskedClient
from slinky_operator.bridge.nodes.configuration import KnownConfiguration
from slinky_operator.bridge.nodes.host_devices import HostDevices
from slinky_operator.bridge.nodes.model.hosts import Host, host_of
from slinky_operator.bridge.nodes.model.report import Outcome
from slinky_operator.bridge.nodes.model.sizes import Requests, Size, size_in_slurm, size_of
from slinky_operator.bridge.nodes.model.snapshot import HostSize, Snapshot
from slinky_operator.bridge.nodes.model.warnings import Configuration
from slinky_operator.bridge.nodes.model.wishes import Problem, Wanted
from slinky_operator.bridge.nodes.pod_requests import PodRequests
from slinky_operator.bridge.nodes.sharing import Sharing
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.connection.contact import Contact
from slurm_client.models import Job, Node, Reservation

AWAITED_S: Final = 30.0
"""Seconds for which a node that was made is not missed in Slurm's list."""


_NOTHING: Final[frozenset[DeviceKey]] = frozenset()


class Client(AskedClient, Protocol):
    """What is used of `slurm_client.SlurmClient`."""

    @property
    def slurm_version(self) -> str:
        """Release of slurmrestd; empty before the first answer."""
        ...

    async def create_node(self, conf: str) -> None:
        """Make nodes by a line of slurm.conf."""
        ...

    async def drain_nodes(self, names: tuple[str, ...], reason: str) -> None:
        """Let no new job come."""
        ...

    async def undrain_nodes(self, names: tuple[str, ...]) -> None:
        """Take drains away."""
        ...

    async def update_nodes(
        self, names: tuple[str, ...], *, features: tuple[str, ...], active_features: tuple[str, ...]
    ) -> None:
        """Change nodes."""
        ...

    async def reservations(self) -> Iterable[Reservation]:
        """All reservations, later ones too."""
        ...

    async def delete_nodes(self, names: tuple[str, ...], *, are_nodes: bool) -> None:
        """Delete nodes."""
        ...


class Slurm(Protocol):
    """What is used of a Cluster's `ClusterClient`."""

    contact: Contact
    nodes_at: float | None

    @property
    def namespace(self) -> str:
        """Of the Cluster."""
        ...

    @property
    def name(self) -> str:
        """Of the Cluster."""
        ...

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Its nodes."""
        ...

    @property
    def client(self) -> Client:
        """Its client."""
        ...

    async def fresh_jobs(self) -> Sequence[Job]:
        """All jobs, asked for now."""
        ...

    async def refresh(self, names: Iterable[str]) -> Mapping[str, Node | None]:
        """Ask for some nodes now, and have them in `nodes`; None for one that Slurm does not know."""
        ...

    def hurry(self) -> None:
        """Ask for all nodes now."""
        ...


@dataclass(slots=True)
class Memory:
    """What is remembered of one Cluster."""

    uid: str
    mark: str = ""
    configuration: KnownConfiguration = field(default_factory=KnownConfiguration)
    about: tuple[object, ...] = ()
    """What hosts and sizes were made for."""
    hosts: dict[str, tuple[Object, list[Object], Host]] = field(default_factory=dict)
    """By name: a Kubernetes Node and its ResourceSlices as they are in the cache, and what was read of them."""
    sizes: dict[str, tuple[Host, Requests, frozenset[DeviceKey], HostSize]] = field(default_factory=dict)
    """By name: the size of a host, and what it was made of."""
    tried: dict[str, Size] = field(default_factory=dict)
    """Sizes of nodes that this process has made."""
    made_at: dict[str, float] = field(default_factory=dict)
    """When nodes were made that Slurm's list may not have yet."""
    differs: dict[str, tuple[Size, float]] = field(default_factory=dict)
    """By name: another size that is wanted, and since when."""
    silent: dict[str, float] = field(default_factory=dict)
    """By name: since when Slurm has taken a node for not responding."""
    sharing: Sharing = field(default_factory=Sharing)
    """Other Clusters that choose the same Nodes."""
    refused: Outcome = field(default_factory=Outcome)
    """What Slurm has refused last."""
    refused_until: float = -math.inf
    """Monotonic seconds before which it is not asked for that again."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A snapshot, and when there is more to see."""

    snapshot: Snapshot
    due: float | None
    """Seconds until more pods may be read; None if all are known."""


class Observation:
    """Makes snapshots.

    Parameters
    ----------
    nodes
        The cache of Kubernetes Nodes.
    requests
        What pods request on them.
    devices
        Their devices; None if the settings let Slurm give none to pods.
    """

    def __init__(self, nodes: Store, requests: PodRequests, devices: HostDevices | None = None) -> None:
        self._nodes = nodes
        self._requests = requests
        self._devices = devices

    @property
    def reads_devices(self) -> bool:
        """Whether devices that ResourceClaims ask for are known."""
        return self._devices is not None

    async def snapshot(
        self,
        wanted: Wanted,
        memory: Memory,
        slurm: Slurm,
        found: Configuration,
        now: float,
        problems: tuple[Problem, ...],
    ) -> Seen:
        """What a pass knows of a Cluster.

        Raises
        ------
        KubeError
            The API server does not list pods.
        """
        nodes = dict(slurm.nodes)
        kinds = {key: kind for key, kind in wanted.kinds.items() if kind.partition(":")[0] in found.gres_types}
        about = (wanted, tuple(kinds.items()), found.gres_types)
        if about != memory.about:
            memory.about, memory.hosts, memory.sizes = about, {}, {}
        hosts = self._known_hosts(wanted, kinds, memory)
        resources = ("cpu", "memory", *kinds)
        urgent = [host for name, host in hosts.items() if name not in nodes and not host.trouble]
        others = [host for name, host in hosts.items() if name in nodes and is_ours(nodes[name], memory.mark)]
        due = await self._requests.read(urgent, others, resources)
        sizes = self._known_sizes(hosts, kinds, _unknown_kinds(wanted, found), memory, now)
        self._remember(memory, sizes, nodes, now)
        return Seen(
            Snapshot(
                mark=memory.mark,
                name=wanted.name,
                hosts=hosts,
                sizes=sizes,
                nodes=nodes,
                taken=found.node_sets | {wanted.name},
                port=found.port,
                device_kinds=frozenset(one.kind for one in wanted.classes),
                problems=problems,
                tried=dict(memory.tried),
                differs_for={name: now - since for name, (_, since) in memory.differs.items()},
                silent_for={name: now - since for name, since in memory.silent.items()},
                awaited=frozenset(memory.made_at),
            ),
            due,
        )

    async def shared(
        self, memory: Memory, hosts: Iterable[str], others: Iterable[Object]
    ) -> Mapping[str, Sequence[str]]:
        """Which of these Kubernetes Nodes other Clusters choose, too, by `<namespace>/<name>` of these.

        Parameters
        ----------
        others
            Other Clusters that may have a bridge.
        """
        return await memory.sharing.look(hosts, self._nodes, others)

    def missing_kinds(self, wanted: Wanted, found: Configuration) -> list[str]:
        """Generic resources that chosen Nodes have and Slurm does not know."""
        unknown = {key: kind for key, kind in wanted.kinds.items() if kind.partition(":")[0] not in found.gres_types}
        of_classes = _unknown_kinds(wanted, found)
        if not unknown and not of_classes:
            return []
        hosts = self._hosts(wanted, unknown).values()
        kinds = {unknown[key] for host in hosts for key in unknown if host.allocatable.get(key)}
        return sorted(kinds | {one.kind for host in hosts for one in host.devices.order if one.kind in of_classes})

    def _hosts(self, wanted: Wanted, kinds: Mapping[str, str]) -> dict[str, Host]:
        """The chosen Kubernetes Nodes, by name."""
        chosen, found = wanted.node_labels.items(), dict[str, Host]()
        for obj in self._nodes:
            if chosen <= (obj["metadata"].get("labels") or {}).items():
                name = str(obj["metadata"]["name"])
                found[name] = self._host(obj, wanted, kinds, self._slices(name, wanted))
        return found

    def _known_hosts(self, wanted: Wanted, kinds: Mapping[str, str], memory: Memory) -> dict[str, Host]:
        """The chosen Kubernetes Nodes, by name; one that the cache has as before is not read again."""
        chosen, before = wanted.node_labels.items(), memory.hosts
        memory.hosts = {}
        for obj in self._nodes:
            if chosen <= (obj["metadata"].get("labels") or {}).items():
                name = str(obj["metadata"]["name"])
                known, slices = before.get(name), self._slices(name, wanted)
                if known is None or known[0] is not obj or not _are_same(known[1], slices):
                    known = obj, slices, self._host(obj, wanted, kinds, slices)
                memory.hosts[name] = known
        return {name: host for name, (_, _, host) in memory.hosts.items()}

    def _slices(self, name: str, wanted: Wanted) -> list[Object]:
        return self._devices.slices(name) if self._devices is not None and wanted.classes else []

    def _host(self, obj: Object, wanted: Wanted, kinds: Mapping[str, str], slices: list[Object]) -> Host:
        if self._devices is None or not slices:
            return host_of(obj, wanted.feature_labels, list(kinds))
        return host_of(obj, wanted.feature_labels, list(kinds), self._devices.of(slices, wanted.classes))

    def _known_sizes(
        self, hosts: Mapping[str, Host], kinds: Mapping[str, str], unknown: frozenset[str], memory: Memory, now: float
    ) -> dict[str, HostSize]:
        """Sizes of hosts whose pods have been read; one that is made of the same as before is not made again.

        Parameters
        ----------
        unknown
            Generic resources of devices that Slurm does not know.
        """
        before, memory.sizes = memory.sizes, {}
        for name, host in hosts.items():
            read = self._requests.known(host)
            if read is None:
                continue
            known, foreign = before.get(name), _NOTHING
            if self._devices is not None and host.devices.order:
                foreign = self._devices.foreign(name, host.devices, now)
            if known is None or known[0] is not host or known[1] is not read or known[2] != foreign:
                never = {one.key for one in host.devices.order if one.kind in unknown}
                most = size_of(host.allocatable, {}, kinds, host.devices, never)
                left = size_of(host.allocatable, read, kinds, host.devices, never | foreign)
                known = host, read, foreign, HostSize(left, most)
            memory.sizes[name] = known
        return {name: size for name, (_, _, _, size) in memory.sizes.items()}

    @staticmethod
    def ending(memory: Memory, slurm: Slurm, why: str) -> Snapshot:
        """What a pass knows of a Cluster that is to have no nodes of the bridge."""
        return Snapshot(mark=memory.mark, nodes=dict(slurm.nodes), why=why)

    @staticmethod
    def _remember(memory: Memory, sizes: Mapping[str, HostSize], nodes: Mapping[str, Node], now: float) -> None:
        """Note since when nodes have had another size than is wanted, or have been silent."""
        differs, silent = {}, {}
        for name, node in nodes.items():
            if not is_ours(node, memory.mark):
                continue
            _ = memory.made_at.pop(name, None)
            wanted = sizes[name].wanted if name in sizes else None
            if wanted is not None and size_in_slurm(node) != wanted:
                before = memory.differs.get(name)
                differs[name] = before if before is not None and before[0] == wanted else (wanted, now)
            if node.is_not_responding:
                silent[name] = memory.silent.get(name, now)
        memory.differs, memory.silent = differs, silent
        memory.made_at = {name: at for name, at in memory.made_at.items() if now - at < AWAITED_S}
        memory.tried = {name: size for name, size in memory.tried.items() if name in nodes or name in memory.made_at}


def _unknown_kinds(wanted: Wanted, found: Configuration) -> frozenset[str]:
    """Generic resources of classes of devices that Slurm does not know."""
    return frozenset(one.kind for one in wanted.classes if one.kind.partition(":")[0] not in found.gres_types)


def _are_same(some: Sequence[Object], others: Sequence[Object]) -> bool:
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))
