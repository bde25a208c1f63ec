"""The PriorityClass of daemons, from the operator's settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.parts import daemons
from slinky_operator.settings import Settings
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World, cluster_object, effects
from tests.unit.cluster.world import passes as worlds

CLASS = "site-services"
EVERY: dict[str, Any] = {"accounting": {}}
"""A spec with every daemon."""
DAEMONS = {daemon.daemon: daemon.key(Cluster.parse(cluster_object())) for daemon in daemons.DAEMONS}


@pytest.fixture
def a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = worlds.ENVIRONMENT
    monkeypatch.setattr(
        worlds, "ENVIRONMENT", replace(environment, images=replace(environment.images, priority_class=CLASS))
    )


def classes(world: World) -> dict[str, str | None]:
    """By daemon."""
    specs: dict[str, Any] = {name: world.children[key]["spec"]["template"]["spec"] for name, key in DAEMONS.items()}
    return {name: spec.get("priorityClassName") for name, spec in specs.items()}


def serving(world: World) -> World:
    """The same, with a database that answers."""
    for _ in range(3):
        for key in DAEMONS.values():
            if key in world.children:
                world.children[key]["status"] = {"readyReplicas": 1}
        world.settle()
    return world


def test_without_the_setting_no_daemon_names_one() -> None:
    assert classes(serving(settled(EVERY))) == dict.fromkeys(DAEMONS)
    assert Settings.load([], {}).daemon_priority_class == ""


@pytest.mark.usefixtures("a_class")
def test_with_the_setting_all_of_a_new_cluster_have_it() -> None:
    assert classes(serving(settled(EVERY))) == dict.fromkeys(DAEMONS, CLASS)


@pytest.mark.usefixtures("a_class")
def test_a_template_wins() -> None:
    own = {"template": {"spec": {"priorityClassName": "mine"}}}
    world = serving(settled({**EVERY, "controller": own, "accounting": own}))
    assert classes(world) == dict.fromkeys(DAEMONS, CLASS) | {"slurmctld": "mine", "slurmdbd": "mine"}


def test_a_class_that_does_not_exist_costs_no_daemon_its_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    world = serving(settled(EVERY))
    environment = worlds.ENVIRONMENT
    named = replace(environment, images=replace(environment.images, priority_class=CLASS))
    monkeypatch.setattr(worlds, "ENVIRONMENT", named)
    # The pod of the trial: as long as it has not started, slurmctld's stays, and with it those of accounting.
    monkeypatch.setattr(effects, "start_trial", lambda *_: None)
    for _ in range(5):
        world.step()
    assert classes(world) == dict.fromkeys(DAEMONS) | {"slurmrestd": CLASS}
    monkeypatch.undo()
    monkeypatch.setattr(worlds, "ENVIRONMENT", named)
    assert classes(serving(world)) == dict.fromkeys(DAEMONS, CLASS)
