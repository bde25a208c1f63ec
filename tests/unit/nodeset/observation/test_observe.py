"""An observer that remembers what it found of others' pods finds what one finds that has just been made."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typing_extensions import override

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.observation.indexes import INDEXES_OF_CLAIMS, INDEXES_OF_PODS, INDEXES_OF_REVISIONS
from slinky_operator.nodeset.observation.observe import Observer
from slinky_operator.nodeset.slurm_nodes import identity
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.slurm.connection.contact import ContactState
from slurm_client.models import Node
from tests.unit.nodeset import builders

OWN, OTHER = "set-uid", "other-uid"

CLUSTER = Cluster.parse({"metadata": {"name": "c", "namespace": "ns", "uid": "cluster-uid"}, "spec": {}})


class Pods(Store):
    """The pods of a namespace, and how often somebody has looked for those of others."""

    looks = 0

    @override
    def lists_others(self, index: str, value: str, key: tuple[str, str] | None) -> bool:
        self.looks += 1
        return super().lists_others(index, value, key)


class World:
    """Caches that one observer keeps reading."""

    def __init__(self) -> None:
        self.pods, self.nodes = Pods(INDEXES_OF_PODS), dict[str, Node]()
        self.replicas, self.padding, self.mode = 4, 0, ScalingMode.STATEFUL_SET
        self.version = 0
        self.kept = self.observer()
        for number in range(3):
            self.put(f"a-{number}", OWN)

    def observer(self) -> Observer:
        contact = SimpleNamespace(state=ContactState.READY, trouble=None, why="")
        slurm = SimpleNamespace(contact=contact, nodes_at=time.monotonic(), nodes=self.nodes)
        return Observer(
            Store(INDEXES_OF_NODESETS),
            cast("Any", SimpleNamespace(known=lambda _: CLUSTER)),
            self.pods,
            Store(INDEXES_OF_REVISIONS),
            Store(INDEXES_OF_CLAIMS),
            None,
            cast("Any", SimpleNamespace(get=lambda _: slurm)),
            clock=time.monotonic,
            now=lambda: datetime.now(UTC),
            max_startup=100,
            patience=timedelta(minutes=5),
        )

    def put(self, name: str, uid: str | None, *, host: str = "", node_name: str = "") -> None:
        self.version += 1
        nodeset = {} if uid is None else {labels.LABEL_NODESET_UID: uid, labels.LABEL_NODESET_NAME: f"name-of-{uid}"}
        pod: Object = {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": f"pod-{name}",
                "resourceVersion": str(self.version),
                "labels": {
                    labels.LABEL_CLUSTER_NAME: "c",
                    "app.kubernetes.io/component": "slurmd",
                    **nodeset,
                },
            },
            "spec": {"hostname": node_name or name, **({"nodeName": host} if host else {})},
            "status": {"phase": "Running"},
        }
        _ = self.pods.put(pod)

    def remove(self, name: str) -> None:
        if (pod := self.pods.get("ns", name)) is not None:
            _ = self.pods.remove(pod)

    def observe(self, observer: Observer) -> Snapshot:
        nodeset = builders.nodeset(replicas=self.replicas, ordinalPadding=self.padding)
        status = nodeset.status.model_copy(update={"scaling_mode": self.mode})
        return observer.observe(nodeset.model_copy(update={"status": status}))


def found(snapshot: Snapshot) -> tuple[object, ...]:
    return (
        snapshot.foreign_pods,
        snapshot.names_of_other_nodesets,
        snapshot.stripped,
        {pod.name for pod in snapshot.pods},
        snapshot.slurm.nodes.keys(),
    )


def test_without_a_change_nobody_looks_again_for_pods_of_others() -> None:
    world = World()
    assert found(world.observe(world.kept))[:2] == (frozenset(), {})
    looks = world.pods.looks
    assert looks > 0
    # A pod becomes ready, and a node busy.
    world.put("a-0", OWN)
    _ = world.observe(world.kept)
    assert world.pods.looks == looks


@pytest.mark.parametrize("uid", [OTHER, None])
def test_a_pod_of_another_with_a_name_of_ours_is_found_when_it_comes(uid: str | None) -> None:
    world = World()
    assert world.observe(world.kept).foreign_pods == frozenset()
    world.put("a-3", uid)
    assert world.observe(world.kept).foreign_pods == {"a-3"}
    world.remove("a-3")
    assert world.observe(world.kept).foreign_pods == frozenset()


def test_a_node_of_another_nodeset_is_found_when_its_name_becomes_one_of_ours() -> None:
    world = World()
    world.put("b-0", OTHER, node_name="a-9")
    assert world.observe(world.kept).names_of_other_nodesets == {}
    world.replicas = 10
    assert world.observe(world.kept).names_of_other_nodesets == {"a-9": "name-of-other-uid"}


def change(world: World, dice: random.Random) -> None:
    """One of the things that happen to pods, nodes and the NodeSet."""
    name = f"{dice.choice('ab')}-{dice.randrange(6)}"
    what = dice.randrange(6)
    if what == 0:
        world.remove(name)
    elif what == 1:
        world.replicas = dice.randrange(7)
    elif what == 2:
        world.padding = dice.choice([0, 0, 2])
    elif what == 3:
        node = f"{dice.choice(['a', 'b', 'x'])}-{dice.randrange(8)}"
        if world.nodes.pop(node, None) is None:
            extra = dice.choice([identity.tag("ns", "a"), "of another", ""])
            world.nodes[node] = builders.node(name=node, extra=extra)
    else:
        host, node_name = dice.choice(["", "host"]), dice.choice(["", "", "a-4"])
        world.put(name, dice.choice([OWN, OTHER, None]), host=host, node_name=node_name)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_remembered_is_what_a_new_observer_finds(seed: int) -> None:
    dice, world = random.Random(seed), World()  # noqa: S311 a test's dice
    for _ in range(60):
        change(world, dice)
        assert found(world.observe(world.kept)) == found(world.observe(world.observer()))
