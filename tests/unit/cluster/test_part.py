"""Each part answers for itself, and nobody for two."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from slinky_api.conditions import ClusterCondition
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import parts
from slinky_operator.cluster.observe import CHILDREN
from slinky_operator.cluster.part import Part
from slinky_operator.cluster.parts.deletion import part as deletion
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.plan import PARTS, secrets
from slinky_operator.cluster.status.answers import ask
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import ENVIRONMENT, World, cluster_object, node_set_object

FOLDER: Final = Path(parts.__file__).parent

OF_ALL: Final = {ClusterCondition.READY, ClusterCondition.PROGRESSING, ClusterCondition.DEGRADED}
"""Conditions that follow from what all parts answer."""


def state(world: World) -> PassState:
    return PassState(world.snapshot(), ENVIRONMENT.images, world.now, world.wall)


def test_each_part_with_an_answer_is_in_the_list() -> None:
    assert {one.name for one in PARTS} == {path.parent.name for path in FOLDER.glob("*/part.py")}


def test_each_condition_has_one_part() -> None:
    assert Counter(one.condition for one in PARTS if one.condition is not None) == Counter({*ClusterCondition} - OF_ALL)


def test_each_kind_of_child_has_its_place_in_a_deletion() -> None:
    assert Counter(deletion.ORDER) == Counter(CHILDREN)


def test_no_two_parts_answer_for_one_field() -> None:
    seen = state(settled())
    fields = [field for one in PARTS for field in one.fields(seen)]
    assert sorted(fields) == sorted({*fields})


@pytest.mark.parametrize("part", PARTS, ids=lambda one: f"{one.name}-{one.condition}")
def test_a_part_answers_the_same_twice(part: Part) -> None:
    seen = state(settled({"accounting": {}, "metrics": {"exporter": {"enabled": True}}}))
    assert ask((part,), seen) == ask((part,), seen)


def test_a_part_that_shows_nothing_adds_nothing() -> None:
    seen = state(settled())
    assert ask((*PARTS, Part()), seen) == ask(PARTS, seen)


def test_a_secret_of_two_parts_is_read_once() -> None:
    cluster = Cluster.parse(cluster_object({"auth": {"jwtKeyRef": {"name": "mine"}}}))
    assert [part.name for part in PARTS if "mine" in part.secrets(cluster, ())] == ["keys", "workloads"]
    assert secrets(cluster, ()).count("mine") == 1


def test_the_key_of_job_logs_is_read_for_a_node_set_that_needs_it() -> None:
    cluster = Cluster.parse(cluster_object())
    plain = node_set_object("compute")
    logging = {**plain, "spec": {**plain["spec"], "jobLogs": {}}}
    assert {*secrets(cluster, (logging,))} - {*secrets(cluster, (plain,))} == {"slurm-job-logs"}
