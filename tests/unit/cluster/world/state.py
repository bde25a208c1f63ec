"""The state of a world: what there is in Kubernetes and in Slurm, and the snapshot that a pass of the operator takes.

Tests set what they need of it. What changes it is in `effects`, what Slurm and others say of it in `answers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.daemons import volumes
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.observe import ClusterPods, SlurmView, Snapshot
from slinky_operator.cluster.parts.accounting.question import AccountingAnswer
from slinky_operator.cluster.parts.job_logs_key.part import JOB_LOGS_KEY
from slinky_operator.cluster.parts.keys.proof.answers import KeyFinding
from slinky_operator.cluster.rollout.in_use.removals import Use
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.secrets import Source
from slinky_operator.slurm.conf import TextSource
from slinky_operator.slurm.connection.key_proof import Holder, KeySet
from slinky_operator.slurm.pods.volume_room import Room
from tests.support.traced_pods import traced, traced_or_none
from tests.unit.cluster.world.objects import WALL, cluster_object

_KEYS = frozenset({"slurm-auth-slurm", "slurm-auth-jwt", "slurm-auth-copy", "slurm-auth-accepted"})
"""Secrets that the operator looks for in any case."""


@dataclass
class State:
    """What there is."""

    # What users and the operator have written

    raw: dict[str, Any] = field(default_factory=cluster_object)
    """The Cluster."""

    node_sets: dict[str, dict[str, Any]] = field(default_factory=dict)
    children: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """Objects of the Cluster, by kind and name."""

    versions: int = 0
    """How often one of them was written."""

    monitor: dict[str, Any] | None = None
    """The ServiceMonitor that was last written."""

    texts: dict[str, TextSource] = field(default_factory=dict)
    """ConfigMaps that the spec names."""

    # Secrets, by name

    secrets: dict[str, dict[str, bytes]] = field(default_factory=dict)
    meant_for: dict[str, str] = field(default_factory=dict)
    """Servers that Secrets name in their annotation."""

    owners: dict[str, str] = field(default_factory=dict)
    """Uids of the Clusters that the Secrets' labels name."""

    sealed: set[str] = field(default_factory=set)
    """Secrets that are immutable."""

    written: dict[str, tuple[str, datetime | None]] = field(default_factory=dict)
    """Version of Secrets, and when that was written."""

    read_before: float = 0.0
    """How long ago Secrets were read."""

    # Pods, and volumes

    pods: list[str] = field(default_factory=list)
    """Names of slurmd pods."""

    running: list[dict[str, Any]] = field(default_factory=list)
    """slurmd pods, whole."""

    login_pods: list[dict[str, Any]] = field(default_factory=list)
    controller_pod: dict[str, Any] | None = None
    ending: dict[str, Any] | None = None
    """slurmctld's pod while it is being deleted."""

    daemon_pods: dict[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)
    """Pods of the other daemons, by component."""

    preflights: dict[str, dict[str, Any]] = field(default_factory=dict)
    rooms: dict[str, Room] = field(
        default_factory=lambda: {name: Room(2**30, 2**29, 1000, 900) for name in volumes.NAMES}
    )
    """Of the volumes that agents look at."""

    rigid: str = ""
    """Why the API server lets no claim grow; empty if it does."""

    capacity: str = ""
    """Size of all volumes; empty if each is as large as its claim requests."""

    # What daemons say

    refuses: Callable[[str], str] = lambda text: ""
    """What a daemon of a preflight says of a slurm.conf; empty if it takes it."""

    version: str = ""
    """What `slurmctld -V` says in a rehearsal."""

    releases: dict[str, str] = field(default_factory=dict)
    """What images say when they are asked for their release, if not their tags; empty for one without Slurm."""

    accepts: bytes | None = None
    """The only key of auth/jwt that slurmctld takes; any if `None`."""

    proves: Callable[[Holder, KeySet, float], KeyFinding] = lambda holder, keys, at: KeyFinding(at)
    """What a daemon proves about a key set."""

    use: Use = field(default_factory=lambda: Use(0.0, ""))
    states: dict[str, str] = field(default_factory=dict)
    """States of partitions that Slurm shows."""

    accounting: AccountingAnswer = AccountingAnswer(0.0, "10.0.0.1")  # noqa: RUF009 - frozen
    """What slurmdbd answers."""

    # What agents say

    offline: dict[str, int] = field(default_factory=dict)
    """Domains that SSSD cannot reach, and since when."""

    missing: frozenset[str] = frozenset()
    """Host names that have no address."""

    stale: dict[str, str] = field(default_factory=dict)
    """What the kubelet has mounted instead of what the ConfigMap holds."""

    # The operator

    slurm: SlurmView | None = None
    """Its connection."""

    memory: Memory = field(default_factory=lambda: Memory("cluster-uid"))
    now: float = 1000.0
    wall: datetime = WALL
    server: str = "http://there:6820"

    # What has happened

    tried: list[str] = field(default_factory=list)
    """Every slurm.conf that was tried."""

    torn_down: bool = False
    reconfigured: Callable[[], None] = lambda: None
    """Called when slurmctld has read its files."""

    @property
    def slurm_conf(self) -> str:
        text: str = self.children["ConfigMap", "slurm-config"]["data"]["slurm.conf"]
        return text

    def parsed_cluster(self, obj: Object) -> Cluster:
        return Cluster.parse(obj)

    def parsed_node_set(self, obj: Object) -> NodeSet:
        return NodeSet.parse(obj)

    def traced_pod(self, pod: Object) -> Object:
        return traced(pod)

    def snapshot(self) -> Snapshot:
        """What a pass sees of it."""
        cluster = self.parsed_cluster(self.raw)
        names = {*_KEYS, *self.secrets, *JOB_LOGS_KEY.secrets(cluster, self.node_sets.values())}
        return Snapshot(
            cluster=cluster,
            raw=self.raw,
            node_sets=tuple((self.parsed_node_set(obj), obj) for _, obj in sorted(self.node_sets.items())),
            children=dict(self.children),
            pods=self._pods(),
            sources={name: self._source(name) for name in names},
            slurm=self.slurm,
            memory=self.memory.frozen(),
            server=self.server,
            texts=dict(self.texts),
        )

    def _pods(self) -> ClusterPods:
        return ClusterPods(
            slurmd_names=tuple(self.pods),
            slurmds=tuple(map(self.traced_pod, self.running)),
            controller=self.traced_pod(self.controller_pod) if self.controller_pod is not None else None,
            controller_ending=traced_or_none(self.ending),
            daemons={name: tuple(map(traced, pods)) for name, pods in self.daemon_pods.items()},
            preflights={name: traced(pod) for name, pod in self.preflights.items()},
            logins=tuple(map(traced, self.login_pods)),
        )

    def _source(self, name: str) -> Source:
        """A Secret, whether it exists or not."""
        version, written_at = self.written.get(name, ("", None))
        return Source(
            name,
            self.now - self.read_before,
            exists=name in self.secrets,
            servers=self.meant_for.get(name),
            cluster_uid=self.owners.get(name, "") if name in self.secrets else "",
            cluster_name="slurm" if name in self.owners else "",
            object_uid=f"uid-of-{name}" if name in self.secrets else "",
            version=version,
            written_at=written_at,
            immutable=name in self.sealed,
            data=dict(self.secrets.get(name, {})),
        )
