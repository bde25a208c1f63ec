"""From caches to a snapshot: no request is sent here.

Only what rules take for granted is decided here: whether the cache of Slurm's nodes is recent enough, in which mode
pods were created if the status is lost, which revision is the current one, and whether pods can be created.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.nodeset.disruption import cluster_upgrade, maintenance_window
from slinky_operator.nodeset.model import claims as claim_facts
from slinky_operator.nodeset.model.kubernetes_nodes import Hosts
from slinky_operator.nodeset.model.pods import pod_facts, registered_pods
from slinky_operator.nodeset.model.pods.registered_pods import Marking
from slinky_operator.nodeset.model.revisions import revision_records
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.observation.indexes import CLAIM_INDEX, POD_INDEX, REVISION_INDEX
from slinky_operator.nodeset.observation.neighbours import Neighbours
from slinky_operator.nodeset.observation.parse_cache import NodeSetParseCache, PodDemand
from slinky_operator.nodeset.observation.readings import NodeReading, PodReading, chosen, joined, read_pod, with_record
from slinky_operator.nodeset.ports import Slurm, SlurmByCluster
from slinky_operator.nodeset.slurm_nodes import identity
from slinky_operator.reconcile import maintenance
from slinky_operator.reconcile.cached.indexes import CLUSTER_INDEX
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.contact import ContactState, Trouble
from slinky_operator.slurm.jobs import prolog_flags
from slinky_operator.slurm.nodes import node_features
from slurm_client.models import Node
from slurm_client.slices import sliced

MANY_NEW_PODS: Final = 100
"""Pods that may be read at once when they have come or changed, some milliseconds."""

OLDEST_PICTURE: Final = 120.0
"""Seconds after which cached nodes are not used any more, whatever the state of the connection."""

_REASONS: Final[Mapping[Trouble, Reason]] = {
    Trouble.UNAUTHORIZED: Reason.UNAUTHORIZED,
    Trouble.CONTROLLER_DOWN: Reason.CONTROLLER_DOWN,
    Trouble.UNSUPPORTED: Reason.UNSUPPORTED_VERSION,
}


class Observer:
    """Builds snapshots.

    Parameters
    ----------
    nodesets, clusters
        Caches, with `INDEXES_OF_NODESETS`.
    pods, revisions, claims
        Caches, with the indexes `POD_INDEX` and `NODE_INDEX`, `REVISION_INDEX`, and `CLAIM_INDEX`.
    hosts
        The Kubernetes Nodes; None if they are not watched.
    slurm
        The Slurm of each Cluster.
    clock
        Monotonic seconds; the clock of `nodes_at`.
    now
        The time of day.
    max_startup
        How many pods may be starting at a time, if the spec does not set it.
    patience
        How long a slurmd may run before it registers.
    marking
        When it is written on pods themselves that they have registered.
    """

    def __init__(
        self,
        nodesets: Store,
        clusters: ClusterReader,
        pods: Store,
        revisions: Store,
        claims: Store,
        hosts: Hosts | None,
        slurm: SlurmByCluster,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        max_startup: int,
        patience: timedelta,
        marking: Marking,
    ) -> None:
        self._nodesets = nodesets
        self._clusters = clusters
        self._pods = pods
        self._hosts = hosts
        self._revisions = revisions
        self._claims = claims
        self._slurm = slurm
        self._clock = clock
        self._now = now
        self._max_startup = max_startup
        self._patience = patience
        self._marking = marking
        self.readings = NodeSetParseCache()
        self._neighbours = Neighbours(pods, hosts)
        self._pods_read: dict[str, PodReading] = {}
        """Pods as last read, by uids of NodeSets: few of them change between two passes."""
        self._nodes_read: dict[str, NodeReading] = {}
        """Records as last chosen, by uids of NodeSets."""

    async def prepare(self, obj: Object) -> None:
        """Parse a NodeSet and its Cluster in a thread if they are large."""
        name = (obj.get("spec") or {}).get("clusterName")
        await self.readings.prepare(obj)
        if isinstance(name, str):
            await self._clusters.prepare(self._clusters.store.get(obj["metadata"].get("namespace", ""), name))

    def cluster(self, nodeset: NodeSet) -> Cluster | None:
        """The Cluster a NodeSet names; None if it does not exist or cannot be parsed."""
        return self._clusters.known((nodeset.namespace, nodeset.spec.cluster_name))

    def slurm(self, cluster: Cluster | None) -> Slurm | None:
        """The Slurm of a Cluster."""
        return self._slurm.get(cluster.uid) if cluster is not None else None

    def observe(
        self,
        nodeset: NodeSet,
        *,
        cluster_gone: bool = False,
        ended: Mapping[str, datetime | None] | None = None,
        unlisted: frozenset[str] = frozenset(),
        registered: frozenset[str] = frozenset(),
        guard: str = "",
    ) -> Snapshot:
        """Take a snapshot of a NodeSet.

        Parameters
        ----------
        nodeset
            The NodeSet, as cached.
        cluster_gone
            Whether the API server has answered that the Cluster does not exist.
        ended
            Names whose last pod had ended for certain when it was deleted, and when its slurmd had.
        unlisted
            Names whose last pod has gone since Slurm was asked for the nodes that are cached.
        registered
            Uids of pods that the status has been written to name as registered, whether the cache shows that or not.
        guard
            Uid of the guard, if known.
        """
        cluster = self.cluster(nodeset)
        wanted = self.readings.wanted(nodeset, cluster)
        recorded = tuple(map(revision_records.read, self._revisions.find(REVISION_INDEX, nodeset.uid)))
        pods = self._own_pods(nodeset, registered)
        own, mode_is_fixed = pods.pods, nodeset.status.scaling_mode is not None
        nodeset = _with_mode(nodeset, own)
        slurm = self._slurm_facts(nodeset, cluster, pods)
        others = self._neighbours.of(nodeset, cluster, own, slurm.nodes)
        leaving = self._leaving(nodeset)
        known = _cluster_facts(nodeset, cluster, gone=cluster_gone, leaving=leaving, now=self._now())
        nodeset = cluster_upgrade.held(nodeset, known.update_wait or known.window_wait)
        current = revision_records.current(nodeset, wanted.hash, recorded)
        return Snapshot(
            nodeset=nodeset,
            cluster=known,
            slurm=slurm,
            revision=Revision(
                wanted.hash,
                problems_of(nodeset.name, wanted, known),
                content=wanted.content,
                current=current,
                recorded=recorded,
            ),
            pods=own,
            claims=tuple(map(claim_facts.read, self._claims.find(CLAIM_INDEX, f"{nodeset.namespace}/{nodeset.name}"))),
            hosts=self._hosts.picture() if self._hosts is not None else None,
            foreign_pods=others.foreign_pods,
            stripped=self._neighbours.stripped(nodeset, others.foreign_pods, current or wanted.hash),
            names_of_other_nodesets=others.names_of_other_nodesets,
            mode_is_fixed=mode_is_fixed,
            ended=frozenset(
                name for name, at in (ended or {}).items() if not identity.has_started_since(slurm.nodes.get(name), at)
            ),
            unlisted=unlisted,
            guard=guard,
            marking=self._marking,
            max_startup=self._max_startup,
            pods_in_sight=len(self._pods),
            patience=self._patience,
        )

    def forget(self, uid: str) -> None:
        """Drop the cached data of a deleted NodeSet."""
        self._pods_read.pop(uid, None)
        self._nodes_read.pop(uid, None)
        self._neighbours.forget(uid)
        self.readings.forget(uid)

    async def read_ahead(self, nodeset: NodeSet, registered: frozenset[str] = frozenset()) -> None:
        """Read the pods of a NodeSet in slices if many are new or have changed: 5,000 take a tenth of a second.

        All come at once after a start, and change at once where many of them become ready between two passes.

        Parameters
        ----------
        nodeset, registered
            As of `observe`, which reads what changes meanwhile.
        """
        uid = nodeset.uid
        found, known = self._pods.find(POD_INDEX, uid), self._pods_read.get(uid, PodReading())
        if known.unread(found) < MANY_NEW_PODS:
            return
        by_uid, is_recorded = known.by_uid(), _is_recorded(nodeset, registered)
        now = self._now()
        read = [with_record(read_pod(obj, nodeset.name, by_uid, now), is_recorded) async for obj in sliced(found)]
        # What has changed meanwhile is another object.
        self._pods_read[uid] = joined(found, read)

    def _own_pods(self, nodeset: NodeSet, registered: frozenset[str]) -> PodReading:
        found = self._pods.find(POD_INDEX, nodeset.uid)
        read = self._pods_read.get(nodeset.uid, PodReading()).again(found, nodeset.name, self._now())
        if registered or nodeset.status.registered is not None:
            read = read.with_registered(_is_recorded(nodeset, registered))
        self._pods_read[nodeset.uid] = read
        return read

    def _slurm_facts(self, nodeset: NodeSet, cluster: Cluster | None, pods: PodReading) -> SlurmFacts:
        slurm = self.slurm(cluster)
        if cluster is None:
            return _blind(Reason.CLUSTER_NOT_FOUND, f"there is no Cluster {nodeset.spec.cluster_name}")
        if slurm is None:
            return _blind(
                Reason.CLUSTER_NOT_READY,
                f"Cluster {cluster.name} is not up yet: its slurmrestd or its token is missing",
            )
        contact = slurm.contact
        if contact.state is not ContactState.READY:
            unready = Reason.CONNECTING if contact.state is ContactState.CONNECTING else Reason.SLURM_UNREACHABLE
            return _blind(_REASONS.get(contact.trouble, unready), contact.why)
        if slurm.nodes_at is None:
            return _blind(Reason.CONNECTING, "the nodes have yet to be listed")
        if self._clock() - slurm.nodes_at > OLDEST_PICTURE:
            return _blind(Reason.SLURM_UNREACHABLE, "there is no recent picture of the nodes")
        return SlurmFacts(readable=True, nodes=self._own_nodes(nodeset, slurm.nodes, pods))

    def _own_nodes(self, nodeset: NodeSet, nodes: Mapping[str, Node], pods: PodReading) -> Mapping[str, Node]:
        """The records of nodes named like its pods, tagged with it, or with a name that it could give a node."""
        names, owner = pods.node_names, identity.tag(nodeset.namespace, nodeset.name)
        is_numbered = nodeset.mode is ScalingMode.STATEFUL_SET or self._hosts is None
        hosts = None if is_numbered or self._hosts is None else self._hosts.picture()
        known = self._nodes_read.get(nodeset.uid)
        if known is None or known.owner != owner or known.hosts is not hosts:
            known = chosen(nodeset.name, owner, names, hosts, nodes)
        else:
            known = (known if known.node_names is names else known.renamed(names)).again(nodes)
        self._nodes_read[nodeset.uid] = known
        return known.own

    def _leaving(self, nodeset: NodeSet) -> frozenset[str]:
        """Names of other NodeSets of the Cluster that are being deleted and that slurmctld may still know.

        The Cluster's status stops listing such a NodeSet before its configuration is written. The finalizer is removed
        once slurmctld has loaded a configuration without it, or one that has closed its partition for jobs in it.
        """
        key = f"{nodeset.namespace}/{nodeset.spec.cluster_name}"
        return frozenset(
            metadata["name"]
            for metadata in (obj["metadata"] for obj in self._nodesets.find(CLUSTER_INDEX, key))
            if "deletionTimestamp" in metadata
            and metadata["uid"] != nodeset.uid
            and labels.FINALIZER_NODESET_CONFIG in (metadata.get("finalizers") or ())
        )


def problems_of(name: str, wanted: PodDemand, cluster: ClusterFacts) -> tuple[str, ...]:
    """Why no pod can be created from a spec. A feature that others use in slurm.conf is theirs to check."""
    clashes = (
        [] if cluster.external else node_features.clash(name, wanted.features, cluster.node_sets | cluster.leaving)
    )
    return (*wanted.problems, *clashes)


def _is_recorded(nodeset: NodeSet, registered: frozenset[str]) -> Callable[[pod_facts.Pod], bool]:
    """Whether it is recorded elsewhere than on a pod that it has registered."""
    recorded = registered_pods.read(nodeset.status.registered)
    return lambda pod: pod.uid in registered or recorded.has(pod)


def _with_mode(nodeset: NodeSet, own: tuple[pod_facts.Pod, ...]) -> NodeSet:
    """The NodeSet with the mode in which its pods were created, if its status has been lost."""
    if nodeset.status.scaling_mode is not None or not own:
        return nodeset
    mode = ScalingMode.DAEMON_SET if any(item.on_node for item in own) else ScalingMode.STATEFUL_SET
    return nodeset.model_copy(update={"status": nodeset.status.model_copy(update={"scaling_mode": mode})})


def _cluster_facts(
    nodeset: NodeSet, cluster: Cluster | None, *, gone: bool, leaving: frozenset[str], now: datetime
) -> ClusterFacts:
    if cluster is None:
        return ClusterFacts(gone=gone)
    config: Any = cluster.status.config
    return ClusterFacts(
        uid=cluster.uid,
        deleting=cluster.deleting,
        external=cluster.spec.external,
        node_sets=frozenset(config.node_sets if config is not None else ()),
        leaving=leaving.union(config.leaving_node_sets if config is not None else ()) - {nodeset.name},
        listed=config is not None and nodeset.name in config.node_sets,
        refused=next((one.message for one in (config.refused if config else ()) if one.name == nodeset.name), ""),
        update_wait=cluster_upgrade.wait_of(cluster, _image(nodeset)),
        window_wait=maintenance_window.wait_of(cluster, nodeset.name, now),
        maintenance=maintenance.shown(cluster.spec.maintenance, now, nodeset.name),
        maintenance_changes_in=cluster.spec.maintenance.changes_in(now),
        has_contain=nodeset.spec.ssh is not None and prolog_flags.has_contain(cluster.spec.extra_conf),
    )


def _image(nodeset: NodeSet) -> str:
    """The image that a NodeSet names for slurmd; empty if it follows its Cluster."""
    if nodeset.spec.image:
        return nodeset.spec.image
    spec = (nodeset.spec.template or {}).get("spec")
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    # The schema leaves templates open: what has another shape is refused elsewhere.
    for one in containers if isinstance(containers, list) else ():
        if isinstance(one, Mapping) and one.get("name") == naming.SLURMD:
            return str(one.get("image") or "")
    return ""


def _blind(reason: Reason, why: str) -> SlurmFacts:
    return SlurmFacts(readable=False, reason=reason, why=why)
