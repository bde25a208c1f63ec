"""The configuration in Kubernetes: what slurmctld mounts, the last good one, and the status. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from slinky_api.v1alpha1.cluster.status import ConfigStatus
from slinky_operator.cluster.daemons import shared_objects
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.kube.objects import Object, is_ready
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import ConfFiles
from slinky_operator.slurm.conf.render import hash_of


@dataclass(frozen=True)
class StoredConfig:
    """Both ConfigMaps of a Cluster, and the part of its status about them. Their files are read once, when needed."""

    mounted: Object | None
    """The ConfigMap that slurmctld mounts, whatever it contains."""

    current: Object | None
    """The same, if it holds what the operator has written."""

    good: Object | None
    """The ConfigMap with what slurmctld has last shown to run, if it holds what the operator has written."""

    status: ConfigStatus
    remembered: Object | None = None
    """What this operator saw last of a Cluster that runs, if neither of both is left."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> StoredConfig:
        """Read it from a snapshot."""
        name = snapshot.cluster.name
        mounted = snapshot.children.get(("ConfigMap", naming.config(name)))
        good = snapshot.children.get(("ConfigMap", naming.good_config(name)))
        status = snapshot.cluster.status.config or ConfigStatus()
        current, last = shared_objects.intact(mounted), shared_objects.intact(good)
        is_known = current is not None or last is not None or not status.applied_hash
        return cls(mounted, current, last, status, None if is_known else snapshot.memory.rollout.runs)

    @property
    def last(self) -> Object | None:
        """What slurmctld has last shown to run, as far as it is known."""
        return self.good or self.remembered

    @cached_property
    def running(self) -> ConfFiles:
        """The files that slurmctld runs with, or will; none for a Cluster without any."""
        return ConfFiles.read(_files(self.current or self.last))

    @cached_property
    def proven(self) -> ConfFiles:
        """The files that slurmctld has last shown to run; if it has shown none, those that it mounts."""
        found = _files(self.last or self.current)
        return self.running if found == self.running.files else ConfFiles.read(found)

    @cached_property
    def node_sets(self) -> Collection[str]:
        """Names of the NodeSets in what slurmctld runs."""
        if self.current is None and self.last is None:
            return {*self.status.node_sets, *self.status.leaving_node_sets}
        return self.running.lines.node_sets

    @cached_property
    def digest(self) -> str:
        """Hash of the files that slurmctld mounts; empty if they are not the operator's."""
        return "" if self.current is None else hash_of(_files(self.current))

    @cached_property
    def is_live(self) -> bool:
        """Whether slurmctld runs what the ConfigMap holds, and has shown so since that was written."""
        current, good = self.current, self.good
        if current is None or good is None or self.status.applied_hash != self.digest:
            return False
        return current["data"] == good["data"] and shared_objects.change_of(current) == shared_objects.change_of(good)

    @property
    def next_change(self) -> str:
        """Identifies the next write, and stays the same until it has happened."""
        both = (self.mounted, self.good)
        return "-".join(str(one["metadata"].get("resourceVersion", "")) if one else "none" for one in both)

    def never_ran(self, snapshot: Snapshot, status: ConfigStatus) -> bool:
        """Whether no slurmctld has ever run with any configuration of the Cluster, given the hash in `status`."""
        if status.applied_hash or self.good is not None:
            return False
        # A slurmctld left by an earlier Cluster of this name runs, although this one has never applied anything.
        return not snapshot.slurm_answers and not is_ready(snapshot.pods.controller or {})

    @property
    def is_lost(self) -> bool:
        """Whether slurmctld has run with files that nothing shows; it may run on with them, and its jobs do."""
        return self.current is None and self.last is None and bool(self.status.applied_hash)


def _files(config_map: Object | None) -> Mapping[str, str]:
    found: Mapping[str, str] = (config_map or {}).get("data") or {}
    return found
