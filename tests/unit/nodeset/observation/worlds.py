"""A NodeSet's pods and nodes in caches that an observer reads."""

from __future__ import annotations

import time
from collections.abc import Collection, Container
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from typing_extensions import override

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_api.v1alpha1.nodeset.status import RegisteredPods
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.nodeset.model.kubernetes_nodes import Hosts, KubernetesNode
from slinky_operator.nodeset.model.pods.registered_pods import Marking
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.observation.indexes import INDEXES_OF_CLAIMS, INDEXES_OF_PODS, INDEXES_OF_REVISIONS
from slinky_operator.nodeset.observation.observe import Observer
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.reconcile.text import stamp
from slinky_operator.slurm.connection.contact import ContactState
from slurm_client.models import Node
from tests.unit.nodeset import builders

OWN, OTHER = "set-uid", "other-uid"

CREATED = "2026-11-01T12:00:00Z"
"""When all pods were created."""

CLUSTER = Cluster.parse({"metadata": {"name": "c", "namespace": "ns", "uid": "cluster-uid"}, "spec": {}})


async def _nothing(_: object) -> None:
    """The Cluster needs no preparation."""


class Pods(Store):
    """The pods of a namespace, and how often somebody has looked for those of others."""

    looks = 0

    @override
    def others(self, namespace: str, names: Container[str]) -> list[Object]:
        self.looks += 1
        return super().others(namespace, names)


class World:
    """Caches that one observer keeps reading."""

    def __init__(self, *, pods: int = 3, replicas: int = 4, hosts: Collection[str] = ()) -> None:
        self.pods, self.nodes = Pods(INDEXES_OF_PODS), dict[str, Node]()
        self.replicas, self.padding, self.mode = replicas, 0, ScalingMode.STATEFUL_SET
        # Kubernetes Nodes, each with one pod, if there are any.
        picture = {name: KubernetesNode(name, node_name=name) for name in hosts}
        self.hosts = cast("Hosts", SimpleNamespace(picture=lambda: picture)) if hosts else None
        if hosts:
            self.mode = ScalingMode.DAEMON_SET
        self.registered: RegisteredPods | None = None
        self.version = 0
        self.kept = self.observer()
        for number in range(pods):
            self.put(f"a-{number}", OWN)

    def observer(self) -> Observer:
        contact = SimpleNamespace(state=ContactState.READY, trouble=None, why="")
        at = time.monotonic()
        return Observer(
            Store(INDEXES_OF_NODESETS),
            cast("Any", SimpleNamespace(known=lambda _: CLUSTER, prepare=_nothing, store=Store())),
            self.pods,
            Store(INDEXES_OF_REVISIONS),
            Store(INDEXES_OF_CLAIMS),
            self.hosts,
            cast(
                "Any",
                SimpleNamespace(get=lambda _: SimpleNamespace(contact=contact, nodes_at=at, nodes={**self.nodes})),
            ),
            clock=time.monotonic,
            now=lambda: datetime.now(UTC),
            max_startup=100,
            patience=timedelta(minutes=5),
            marking=Marking(),
        )

    def put(
        self, name: str, uid: str | None, *, host: str = "", node_name: str = "", started: datetime | None = None
    ) -> None:
        self.version += 1
        slurmd = (
            {"name": "slurmd", "state": {"running": {"startedAt": stamp(started)}}} if started is not None else None
        )
        nodeset = {} if uid is None else {labels.LABEL_NODESET_UID: uid, labels.LABEL_NODESET_NAME: f"name-of-{uid}"}
        pod: Object = {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": f"pod-{name}",
                "resourceVersion": str(self.version),
                "creationTimestamp": CREATED,
                "labels": {
                    labels.LABEL_CLUSTER_NAME: "c",
                    "app.kubernetes.io/component": "slurmd",
                    **nodeset,
                },
            },
            "spec": {"hostname": node_name or name, **({"nodeName": host} if host else {})},
            "status": {"phase": "Running", **({"containerStatuses": [slurmd]} if slurmd is not None else {})},
        }
        _ = self.pods.put(pod)

    def remove(self, name: str) -> None:
        if (pod := self.pods.get("ns", name)) is not None:
            _ = self.pods.remove(pod)

    @property
    def nodeset(self) -> NodeSet:
        """The NodeSet as the API server has it."""
        nodeset = builders.nodeset(replicas=self.replicas, ordinalPadding=self.padding)
        status = nodeset.status.model_copy(update={"scaling_mode": self.mode, "registered": self.registered})
        return nodeset.model_copy(update={"status": status})

    def observe(self, observer: Observer, registered: frozenset[str] = frozenset()) -> Snapshot:
        return observer.observe(self.nodeset, registered=registered)
