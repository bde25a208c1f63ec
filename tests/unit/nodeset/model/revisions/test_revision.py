"""The hash of a spec, and how a recorded spec is restored."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.revisions import revision
from tests.unit.cluster.world import cluster_object
from tests.unit.nodeset.builders import nodeset


def test_the_hash_is_about_what_the_user_wrote() -> None:
    first = revision.of(nodeset(image="x"))

    assert first == revision.of(nodeset(image="x", replicas=9, minReadySeconds=3))
    assert first != revision.of(nodeset(image="y"))
    assert first != revision.of(nodeset(image="x", features=["f"]))


@pytest.mark.parametrize(
    ("spec", "known"),
    [
        ({}, "654abff244"),
        ({"image": "slurmd:1", "features": ["f"], "weight": 0}, "98f08a94fb"),
        (
            {
                "template": {"spec": {"containers": [{"name": "slurmd", "env": []}]}},
                "resources": {"limits": {"cpu": 2}},
                "gres": "gpu:1",
                "extraConf": "MemSpecLimit=64",
            },
            "dc6980fa83",
        ),
    ],
)
def test_the_hash_of_a_spec_is_the_same_in_every_release(spec: dict[str, Any], known: str) -> None:
    # Where this fails, an upgrade of the operator replaces every pod of every user: is that wanted?
    assert revision.of(nodeset(**spec)) == known


def test_users_and_homes_of_the_cluster_belong_to_a_revision_and_nothing_else_of_it() -> None:
    plain = revision.of(nodeset(), Cluster.parse(cluster_object()))
    assert plain == revision.of(nodeset(), Cluster.parse(cluster_object({"extraConf": "MaxArraySize=5"})))
    assert plain == revision.of(nodeset())
    homes = Cluster.parse(cluster_object({"identity": {"homes": {"claimName": "homes"}}}))
    assert plain != revision.of(nodeset(), homes)
    recorded = revision.content(nodeset(), homes)
    now = Cluster.parse(cluster_object({"identity": {"passwd": {"configMapRef": {"name": "people"}}}}))
    assert revision.content(nodeset(), revision.restored_cluster(now, recorded)) == recorded
    assert revision.of(nodeset(), revision.restored_cluster(now, {})) == plain


def test_a_recorded_spec_is_restored_with_everything_else_as_it_is_now() -> None:
    before = nodeset(
        image="x", features=["f"], weight=3, gres="gpu:1", extraConf="CoreSpecCount=1", resources={"limits": {"cpu": 2}}
    )
    now = nodeset(template={"metadata": {"labels": {"a": "b"}}}, replicas=9, minReadySeconds=5)

    restored = revision.restored(now, revision.content(before))

    assert revision.of(restored) == revision.of(before)
    assert (restored.spec.replicas, restored.spec.min_ready_seconds) == (9, 5)


def test_checks_are_a_volume_of_the_pod_whatever_they_are() -> None:
    def checked(*names: str, **health: Any) -> NodeSet:
        return nodeset(health={"checks": [{"name": name, "use": "Disk"} for name in names], **health})

    none = nodeset()
    assert revision.of(checked("a")) == revision.of(checked("b", "c", maxUnhealthy=3)) != revision.of(none)
    assert revision.of(nodeset(health={"defaults": True})) == revision.of(none)
    before = revision.restored(none, revision.content(checked("a")))
    assert revision.of(before) == revision.of(checked("a"))
    after = revision.restored(checked("a"), revision.content(none))
    assert revision.of(after) == revision.of(none)
    kept = revision.restored(checked("a"), revision.content(checked("b")))
    assert kept.spec.health == checked("a").spec.health
