"""What a configuration is made of, taken from a Cluster and those of its NodeSets that are to be in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Self

from slinky_api.v1alpha1.cluster.jobs import Bridge
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import future_nodes, home_folders
from slinky_operator.slurm.conf.containers import ContainerConf
from slinky_operator.slurm.conf.future_nodes import FutureNodes
from slinky_operator.slurm.conf.sources import token_keys
from slinky_operator.slurm.conf.sources.gather import Gathered, TextSource, gather
from slinky_operator.slurm.conf.sources.token_keys import TokenKeys
from slinky_operator.slurm.conf.spec_lines import PartitionConf, StaticNodeConf, partition_words, read_nodes
from slinky_operator.slurm.conf.syntax.directives import Words, parse_lines
from slinky_operator.slurm.conf.syntax.parsed import Line
from slinky_operator.slurm.nodes import node_features
from slinky_operator.slurm.nodes.bridge_gres import gres_by_class, gres_by_resource
from slinky_operator.slurm.tokens.signing_keys import PublicKey

MAX_NODE_COUNT: Final = 10_000
"""`MaxNodeCount` where the user does not say. There is room: nodes beyond it cannot register, and when it is lowered
below the number of nodes, Slurm forgets some of them and ends their jobs."""


@dataclass(frozen=True, slots=True)
class NodeSetConf:
    """What a NodeSet adds to slurm.conf."""

    name: str
    partition: Words | None = None
    """Further words of its own partition; `None` for no partition."""

    gres: str = ""
    """Generic resources of a node, of which slurm.conf must know the types."""

    kept: tuple[Line, ...] | None = None
    """Lines of the running configuration that stay because the NodeSet's new text is refused; `None` for none."""

    ordinals: bool = True
    """Whether its nodes are named after it and numbered."""

    since: datetime | None = None
    """When it was made; of two whose names clash the younger gives way."""

    features: frozenset[str] = frozenset()
    """What its nodes register with beside its name."""

    future: FutureNodes | None = None
    """Nodes that jobs may wait for while they do not exist."""

    checks: bool = False
    """Whether health checks run on its nodes."""

    @classmethod
    def of(cls, nodeset: NodeSet) -> Self:
        """Take what matters from a NodeSet."""
        partition = nodeset.spec.partition
        return cls(
            nodeset.name,
            partition_words(partition.config) if partition.enabled else None,
            nodeset.spec.gres or "",
            ordinals=nodeset.mode is ScalingMode.STATEFUL_SET,
            since=nodeset.metadata.creation_timestamp,
            features=frozenset(one.word for one in node_features.of(nodeset)),
            future=future_nodes.of(nodeset),
            checks=nodeset.spec.health is not None and bool(nodeset.spec.health.checks),
        )


@dataclass(frozen=True, slots=True)
class BridgeConf:
    """Kubernetes Nodes that are nodes of Slurm (`spec.jobs.bridge`): no line has them, they are made and deleted."""

    name: str
    """What partitions name in `nodeSets`: the feature of all of them."""

    kinds: frozenset[str] = frozenset()
    """Generic resources that they may have, without types."""


def _bridge_conf(bridge: Bridge) -> BridgeConf:
    kinds = {*gres_by_resource(bridge).values(), *gres_by_class(bridge).values()}
    return BridgeConf(bridge.name, frozenset(kind.partition(":")[0] for kind in kinds))


@dataclass(frozen=True, slots=True)
class ConfInputs:
    """Everything slurm.conf and its family depend on."""

    cluster_name: str
    controller_name: str
    """Host name of slurmctld's pod: slurmctld refuses to run under another."""

    controller_address: str
    """Name under which others find it."""

    node_sets: tuple[NodeSetConf, ...] = ()
    partitions: tuple[PartitionConf, ...] = ()
    nodes: tuple[StaticNodeConf, ...] = ()
    extra: Words = ()
    """What `extraConf` says."""

    max_node_count: int = MAX_NODE_COUNT
    metrics: bool = False
    accounting: tuple[str, int] | None = None
    """Host and port of slurmdbd; `None` while slurm.conf names none."""

    owns_accounting: bool = False
    """Whether the operator decides about `accounting`, and not `extra`."""

    texts: Gathered = Gathered()  # noqa: RUF009 - frozen
    """The user's own files and scripts."""

    containers: ContainerConf | None = None
    """How nodes run containers; `None` for no oci.conf of the operator's."""

    homes: str = ""
    """Folder in which nodes make home folders; empty if they make none."""

    token_keys: TokenKeys = TokenKeys()  # noqa: RUF009 - frozen
    """The public keys of tokens."""

    kept_partitions: tuple[Line, ...] = ()
    """Lines `PartitionName=` of the running configuration that nobody wants any more, but that are in use: they stay
    without taking new jobs, since removing a partition ends its jobs."""

    kept_node_sets: tuple[str, ...] = ()
    """Names of NodeSets that stay declared, because kept partitions name them or their nodes still have jobs."""

    kept_gres: tuple[str, ...] = ()
    """Kinds of generic resources that stay known, because jobs have them."""

    kept_files: Mapping[str, str] = field(default_factory=dict)
    """Files of the running configuration that stay as they are, because jobs have what is in them."""

    kept_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys, in lower case, that stay as they run because jobs need them: their values, or none."""

    future: frozenset[str] = frozenset()
    """Nodes outside Kubernetes that are to be `State=FUTURE`, since nobody knows their addresses."""

    states: Mapping[str, str] = field(default_factory=dict)
    """States of partitions that slurmctld shows, by name; one that is not in here is as the running file says."""

    settled: bool = True
    """Whether slurmctld has read the running file."""

    held: Mapping[str, str] = field(default_factory=dict)
    """NodeSets whose part stays as it runs, or out, and why."""

    bridge: BridgeConf | None = None
    """Kubernetes Nodes that are nodes; `None` if there are to be none."""

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        node_sets: Iterable[NodeSetConf],
        sources: Mapping[str, TextSource] | None = None,
        accounting: tuple[str, int] | None = None,
        own_keys: Sequence[PublicKey] = (),
    ) -> Self:
        """Take what matters from a Cluster.

        Parameters
        ----------
        cluster
            A managed one.
        node_sets
            Given by the rule that decides which take part.
        sources
            The ConfigMaps it names, as last read, by name.
        accounting
            Host and port of slurmdbd, if slurm.conf is to name it.
        own_keys
            Public halves of the keys that the operator signs tokens with.
        """
        spec = cluster.spec
        return cls(
            cluster_name=cluster.slurm_name,
            controller_name=naming.controller_pod(cluster.name),
            controller_address=naming.controller_host(cluster.name, cluster.namespace),
            node_sets=tuple(sorted(node_sets, key=lambda one: one.name)),
            partitions=tuple(map(PartitionConf.of, spec.partitions)),
            nodes=read_nodes(spec.nodes),
            extra=parse_lines(spec.extra_conf),
            max_node_count=spec.max_node_count or MAX_NODE_COUNT,
            metrics=spec.metrics.enabled,
            accounting=accounting,
            owns_accounting=spec.accounting is not None and spec.accounting.enabled,
            texts=gather(spec, sources or {}),
            containers=ContainerConf(spec.containers.mounts) if spec.containers is not None else None,
            homes=home_folders.folder_of(spec),
            token_keys=token_keys.gather(spec, sources or {}, own_keys),
            bridge=_bridge_conf(spec.jobs.bridge) if spec.jobs.bridge is not None else None,
        )
