"""The PriorityClass of daemons, from the operator's settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_operator.settings import Settings
from tests.unit.cluster import world as worlds
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World

CLASS = "site-services"
DAEMONS = (
    ("StatefulSet", "slurm-controller"),
    ("Deployment", "slurm-restapi"),
    ("StatefulSet", "slurm-accounting"),
    ("StatefulSet", "slurm-database"),
)


@pytest.fixture
def a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = worlds.ENVIRONMENT
    monkeypatch.setattr(
        worlds, "ENVIRONMENT", replace(environment, images=replace(environment.images, priority_class=CLASS))
    )


def classes(world: World) -> list[str | None]:
    """Of the daemons that exist."""
    specs: list[dict[str, Any]] = [world.children[key]["spec"]["template"]["spec"] for key in DAEMONS]
    return [spec.get("priorityClassName") for spec in specs]


def serving(world: World) -> World:
    """The same, with a database that answers."""
    for _ in range(3):
        for key in DAEMONS[2:]:
            if key in world.children:
                world.children[key]["status"] = {"readyReplicas": 1}
        world.settle()
    return world


def test_without_the_setting_no_daemon_names_one() -> None:
    assert classes(serving(settled({"accounting": {}}))) == [None] * 4
    assert Settings.load([], {}).daemon_priority_class == ""


@pytest.mark.usefixtures("a_class")
def test_with_the_setting_all_of_a_new_cluster_have_it() -> None:
    assert classes(serving(settled({"accounting": {}}))) == [CLASS] * 4


@pytest.mark.usefixtures("a_class")
def test_a_template_wins() -> None:
    own = {"template": {"spec": {"priorityClassName": "mine"}}}
    world = serving(settled({"controller": own, "accounting": own}))
    assert classes(world) == ["mine", CLASS, "mine", CLASS]


def test_a_class_that_does_not_exist_costs_no_daemon_its_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    world = serving(settled({"accounting": {}}))
    environment = worlds.ENVIRONMENT
    named = replace(environment, images=replace(environment.images, priority_class=CLASS))
    monkeypatch.setattr(worlds, "ENVIRONMENT", named)
    # The pod of the trial: as long as it has not started, slurmctld's stays, and with it those of accounting.
    monkeypatch.setattr(World, "_preflight", lambda *_: None)
    for _ in range(5):
        world.step()
    assert classes(world) == [None, CLASS, None, None]
    monkeypatch.undo()
    monkeypatch.setattr(worlds, "ENVIRONMENT", named)
    assert classes(serving(world)) == [CLASS] * 4
