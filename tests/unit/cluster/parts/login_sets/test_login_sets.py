"""Entries of `spec.login` become LoginSets, and go with their entry."""

from __future__ import annotations

from slinky_operator.cluster.parts.deletion.part import tear_down
from slinky_operator.kube.resources import LOGINSETS
from tests.unit.cluster.rollout_stories import settled

KEY = ("LoginSet", "slurm-front")


def test_an_entry_brings_a_loginset_and_takes_it_away() -> None:
    world = settled({"login": [{"name": "front", "authorizedKeysRef": {"name": "people"}, "sessionGracePeriod": "1h"}]})
    spec = world.children[KEY]["spec"]
    assert spec == {"clusterName": "slurm", "authorizedKeysRef": {"name": "people"}, "sessionGracePeriod": "3600s"}
    world.raw = {**world.raw, "spec": {}}
    world.settle()
    assert KEY not in world.children


def test_the_number_of_pods_is_left_alone_unless_the_entry_names_one() -> None:
    world = settled({"login": [{"name": "front"}, {"name": "back", "replicas": 3}]})
    assert "replicas" not in world.children[KEY]["spec"]
    assert world.children["LoginSet", "slurm-back"]["spec"]["replicas"] == 3


def test_a_loginset_of_a_user_is_not_touched() -> None:
    world = settled({"login": [{"name": "front"}]})
    own = {**world.children[KEY], "metadata": {"name": "slurm-own", "namespace": "here", "uid": "u", "labels": {}}}
    world.children["LoginSet", "slurm-own"] = own
    world.settle()
    assert world.children["LoginSet", "slurm-own"] == own


def test_loginsets_go_with_their_cluster_before_its_daemons() -> None:
    world = settled({"login": [{"name": "front"}]})
    resources = [resource for resource, _, _ in tear_down(world.snapshot()).children]
    assert resources[0] is LOGINSETS
