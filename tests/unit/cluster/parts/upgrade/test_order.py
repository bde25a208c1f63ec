"""Daemons get other images one after the other, and refused steps replace no pod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_operator.cluster.parts.upgrade import rules
from slinky_operator.slurm.releases import Release
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World

DATABASE, CONTROLLER, RESTAPI = (
    ("StatefulSet", "slurm-accounting"),
    ("StatefulSet", "slurm-controller"),
    ("Deployment", "slurm-restapi"),
)
DONE = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}


def images(tag: str) -> dict[str, Any]:
    """A Cluster whose daemons have images of one tag."""
    return {
        "controller": {"image": f"slurmctld:{tag}"},
        "restapi": {"image": f"slurmrestd:{tag}"},
        "accounting": {"image": f"slurmdbd:{tag}"},
    }


def image(world: World, key: tuple[str, str]) -> str:
    containers = world.children[key]["spec"]["template"]["spec"]["containers"]
    return next(str(one["image"]) for one in containers if one["name"] in {"slurmctld", "slurmrestd", "slurmdbd"})


def ready(world: World, *keys: tuple[str, str]) -> None:
    """Let the pods of workloads be of their templates, and answer."""
    for key in keys:
        world.children[key]["status"] = dict(DONE)


def running(tag: str = "24.11.5") -> World:
    world = settled(images(tag))
    ready(world, ("StatefulSet", "slurm-database"))
    world.settle()
    for _ in range(3):
        ready(world, DATABASE, CONTROLLER, RESTAPI)
        world.settle()
    return world


def without_accounting() -> World:
    world = settled({"controller": {"image": "slurmctld:24.11.5"}, "restapi": {"image": "slurmrestd:24.11.5"}})
    ready(world, CONTROLLER, RESTAPI)
    assert world.slurm is not None
    world.slurm = replace(world.slurm, slurm_version="24.11.5")
    world.settle()
    return world


def wish(world: World, spec: dict[str, Any], version: str = "slurm 26.05.5") -> None:
    world.raw = {**world.raw, "spec": spec}
    world.version = version
    world.settle()


def test_each_daemon_waits_for_the_one_before() -> None:
    world = running()
    wish(world, images("26.05.5"))
    assert [image(world, key) for key in (DATABASE, CONTROLLER, RESTAPI)] == [
        "slurmdbd:26.05.5", "slurmctld:24.11.5", "slurmrestd:24.11.5",
    ]  # fmt: skip
    shown = world.condition("Progressing")
    assert (shown["status"], shown["reason"]) == ("True", "Upgrading")
    assert shown["message"] == (
        "slurmctld keeps slurmctld:24.11.5 until slurmdbd is ready with slurmdbd:26.05.5; "
        "slurmrestd keeps slurmrestd:24.11.5 until slurmdbd is ready with slurmdbd:26.05.5"
    )
    ready(world, DATABASE)
    world.settle()
    assert image(world, CONTROLLER) == "slurmctld:26.05.5"
    assert image(world, RESTAPI) == "slurmrestd:24.11.5"
    ready(world, CONTROLLER)
    world.settle()
    assert image(world, RESTAPI) == "slurmrestd:26.05.5"
    assert world.condition("Progressing")["reason"] != "Upgrading"


def test_a_daemon_that_does_not_come_up_stops_the_upgrade() -> None:
    world = running()
    wish(world, images("26.05.5"))
    for _ in range(3):
        world.settle()
    assert image(world, CONTROLLER) == "slurmctld:24.11.5"
    # The spec is taken back: nothing else was touched.
    wish(world, images("24.11.5"))
    assert image(world, DATABASE) == "slurmdbd:24.11.5"
    assert world.condition("Progressing")["reason"] != "Upgrading"


def test_slurmctld_that_does_not_answer_may_be_corrected_at_once() -> None:
    world = running()
    world.children[CONTROLLER]["status"] = {"replicas": 1}
    wish(world, images("26.05.5"))
    assert image(world, CONTROLLER) == "slurmctld:26.05.5"


def test_slurmrestd_that_does_not_answer_may_be_corrected_at_once_where_nothing_before_it_changes() -> None:
    world = running()
    world.children[RESTAPI]["status"] = {"replicas": 1}
    wish(world, {**images("24.11.5"), "restapi": {"image": "slurmrestd:24.11.6"}})
    assert image(world, RESTAPI) == "slurmrestd:24.11.6"


def test_slurmrestd_that_does_not_answer_may_be_corrected_while_slurmdbd_is_away() -> None:
    """Its database may be away for hours: slurmctld goes on with the image that it has, and takes calls."""
    world = running()
    world.slurm = None
    for key in (DATABASE, RESTAPI):
        world.children[key]["status"] = {"replicas": 1}
    wish(world, {**images("24.11.5"), "restapi": {"image": "slurmrestd:24.11.6"}})
    assert image(world, RESTAPI) == "slurmrestd:24.11.6"


@pytest.mark.parametrize("also", [(), (CONTROLLER,)])
def test_slurmrestd_that_does_not_answer_gets_no_newer_image_before_slurmctld(
    also: tuple[tuple[str, str], ...],
) -> None:
    # A slurmctld that has the older image, or comes back with it, would refuse whatever a newer slurmrestd asks.
    world = running()
    world.slurm = None
    for key in (RESTAPI, *also):
        world.children[key]["status"] = {"replicas": 1}
    wish(world, images("26.05.5"))
    assert image(world, RESTAPI) == "slurmrestd:24.11.5"
    assert "slurmrestd keeps slurmrestd:24.11.5 until slurm" in world.condition("Progressing")["message"]
    for key in (DATABASE, CONTROLLER):
        ready(world, key)
        world.settle()
    assert [image(world, key) for key in (CONTROLLER, RESTAPI)] == ["slurmctld:26.05.5", "slurmrestd:26.05.5"]


def test_other_settings_do_not_wait() -> None:
    world = running()
    world.children[DATABASE]["status"] = {"replicas": 1}
    wish(
        world, {**images("24.11.5"), "restapi": {"image": "slurmrestd:24.11.5", "resources": {"limits": {"cpu": "2"}}}}
    )
    (container,) = world.children[RESTAPI]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "2"}


def test_an_older_slurmctld_never_replaces_a_newer_one() -> None:
    world = running("26.05.5")
    wish(world, {"controller": {"image": "slurmctld:mine"}, "restapi": {"image": "slurmrestd:26.05.5"}})
    assert image(world, CONTROLLER) == "slurmctld:mine"
    ready(world, CONTROLLER)
    # The release that was tried counts, whatever the tag says.
    wish(
        world, {"controller": {"image": "slurmctld:other"}, "restapi": {"image": "slurmrestd:26.05.5"}}, "slurm 25.11.2"
    )
    assert image(world, CONTROLLER) == "slurmctld:mine"
    shown = world.condition("Degraded")
    assert (shown["status"], shown["reason"]) == ("True", "ReplacementHeldBack")
    assert shown["message"] == (
        "slurmctld's pod stays as it is: one that follows spec.controller.image is refused: Slurm 25.11.2 cannot read "
        "the state that Slurm 26.05.5 has written, and jobs would be lost. Name an image of Slurm 26.05 or newer"
    )
    assert world.condition("Ready")["status"] == "True"


def test_a_step_that_is_too_wide_is_refused() -> None:
    world = without_accounting()
    wish(world, {"restapi": {"image": "slurmrestd:24.11.5"}, "controller": {"image": "slurmctld:1"}}, "slurm 24.11.5")
    ready(world, CONTROLLER)
    wish(world, {"restapi": {"image": "slurmrestd:24.11.5"}, "controller": {"image": "slurmctld:2"}}, "slurm 26.11.0")
    assert image(world, CONTROLLER) == "slurmctld:1"
    assert "Upgrade to a release in between first" in world.condition("Degraded")["message"]


def test_slurmctld_must_not_be_newer_than_its_slurmdbd() -> None:
    world = running()
    wish(world, {**images("26.05.5"), "accounting": {"image": "slurmdbd:24.11.5"}})
    assert image(world, CONTROLLER) == "slurmctld:24.11.5"
    assert image(world, RESTAPI) == "slurmrestd:24.11.5"
    shown = world.condition("Degraded")
    assert (shown["status"], shown["reason"]) == ("True", "UpgradeRefused")
    assert shown["message"] == (
        "slurmctld keeps slurmctld:24.11.5: slurmctld of Slurm 26.05.5 cannot talk to slurmdbd of Slurm 24.11.5. Name "
        "an image of Slurm 26.05 in spec.accounting.image too"
    )


def test_the_release_stays_noted_while_the_image_does() -> None:
    world = without_accounting()
    wish(
        world, {"restapi": {"image": "slurmrestd:24.11.5"}, "controller": {"image": "slurmctld:mine"}}, "slurm 24.11.5"
    )
    note = "cluster.slinky.slurm.net/slurm-release"
    assert world.children[CONTROLLER]["metadata"]["annotations"][note] == "24.11.5"
    wish(world, {**world.raw["spec"], "partitions": [{"name": "night", "nodeSets": ["ALL"]}]}, "")
    assert world.children[CONTROLLER]["metadata"]["annotations"][note] == "24.11.5"


def with_login(tag: str) -> dict[str, Any]:
    return {**images(tag), "login": [{"name": "front", "image": f"login:{tag}"}]}


def login_image(world: World) -> str:
    return str(next(body for (kind, _), body in world.children.items() if kind == "LoginSet")["spec"]["image"])


def running_with_login() -> World:
    world = running()
    wish(world, with_login("24.11.5"), "slurm 24.11.5")
    return world


def test_login_pods_get_their_image_after_all_daemons_and_other_settings_at_once() -> None:
    world = running_with_login()
    wish(world, {**with_login("26.05.5"), "login": [{"name": "front", "image": "login:26.05.5", "replicas": 3}]})
    front = next(body for (kind, _), body in world.children.items() if kind == "LoginSet")
    assert (front["spec"]["image"], front["spec"]["replicas"]) == ("login:24.11.5", 3)
    assert "keeps login:24.11.5 until slurmdbd is ready" in world.condition("Progressing")["message"]
    for key in (DATABASE, CONTROLLER):
        ready(world, key)
        world.settle()
        assert login_image(world) == "login:24.11.5"
    ready(world, RESTAPI)
    world.settle()
    assert login_image(world) == "login:26.05.5"


def test_what_an_image_says_counts_and_not_its_tag() -> None:
    world = running()
    # slurmdbd's tag lies: it is as old as before, and slurmctld would be newer.
    world.releases = {"slurmdbd:26.05.5": "24.11.7"}
    wish(world, images("26.05.5"))
    ready(world, DATABASE)
    world.settle()
    assert [image(world, key) for key in (DATABASE, CONTROLLER, RESTAPI)] == [
        "slurmdbd:26.05.5", "slurmctld:24.11.5", "slurmrestd:24.11.5",
    ]  # fmt: skip
    shown = world.condition("Degraded")
    assert shown["reason"] == "UpgradeRefused"
    assert "slurmctld of Slurm 26.05.5 cannot talk to slurmdbd of Slurm 24.11.7" in shown["message"]
    assert world.condition("Ready")["status"] == "True"


def test_slurmdbd_never_goes_back_and_nothing_after_it_begins() -> None:
    world = running()
    wish(
        world,
        {**images("24.11.5"), "accounting": {"image": "slurmdbd:mine"}, "restapi": {"image": "slurmrestd:24.11.6"}},
    )
    for _ in range(2):
        ready(world, DATABASE, RESTAPI)
        world.settle()
    world.releases = {"slurmdbd:other": "24.05.1"}
    wish(
        world,
        {**images("24.11.5"), "accounting": {"image": "slurmdbd:other"}, "restapi": {"image": "slurmrestd:24.11.7"}},
    )
    assert image(world, DATABASE) == "slurmdbd:mine"
    assert image(world, RESTAPI) == "slurmrestd:24.11.6"
    message = world.condition("Degraded")["message"]
    assert message.startswith("slurmdbd keeps slurmdbd:mine: spec.accounting.image has slurmdbd of Slurm 24.05.1. ")


def test_slurmrestd_and_login_pods_must_not_be_newer_than_slurmctld() -> None:
    world = without_accounting()
    spec = {"controller": {"image": "slurmctld:24.11.5"}, "restapi": {"image": "slurmrestd:24.11.5"}}
    wish(world, {**spec, "login": [{"name": "front", "image": "login:24.11.5"}]}, "slurm 24.11.5")
    wish(
        world,
        {**spec, "restapi": {"image": "slurmrestd:26.05.5"}, "login": [{"name": "front", "image": "login:24.11.6"}]},
        "slurm 24.11.5",
    )
    assert image(world, RESTAPI) == "slurmrestd:24.11.5"
    assert login_image(world) == "login:24.11.5"
    assert world.condition("Degraded")["message"] == (
        "slurmrestd keeps slurmrestd:24.11.5: spec.restapi.image has slurmrestd of Slurm 26.05.5, which cannot talk to "
        "slurmctld of Slurm 24.11.5, which is older. Name an image of Slurm 24.11, or one of Slurm 26.05 in "
        "spec.controller.image too"
    )
    wish(world, {**spec, "login": [{"name": "front", "image": "login:24.11.6"}]}, "slurm 24.11.5")
    assert login_image(world) == "login:24.11.6"
    assert world.condition("Degraded")["status"] == "False"


def test_an_image_without_the_daemon_replaces_nothing_and_is_asked_again_later() -> None:
    world = without_accounting()
    world.releases = {"slurmrestd:empty": ""}
    spec = {"controller": {"image": "slurmctld:24.11.5"}, "restapi": {"image": "slurmrestd:empty"}}
    wish(world, spec, "slurm 24.11.5")
    assert image(world, RESTAPI) == "slurmrestd:24.11.5"
    assert world.condition("Degraded")["message"] == (
        "slurmrestd keeps slurmrestd:24.11.5: spec.restapi.image cannot be asked for its release. no slurmrestd can be "
        "run in slurmrestd:empty: not found. Name an image that has slurmrestd"
    )
    assert not world.preflights
    world.releases = {}
    world.now += 60
    world.settle()
    assert image(world, RESTAPI) == "slurmrestd:empty"
    assert world.condition("Degraded")["status"] == "False"


def test_slurmdbd_waits_until_the_next_slurmctld_has_been_tried() -> None:
    world = running()
    world.refuses = lambda _: "not this one"
    wish(world, images("26.05.5"))
    assert image(world, DATABASE) == "slurmdbd:24.11.5"
    assert "not this one" in world.condition("Degraded")["message"]


def pods_of_slurmrestd(world: World, *tags: str) -> None:
    world.daemon_pods["restapi"] = tuple(
        {
            "metadata": {"name": f"slurm-restapi-{tag}"},
            "spec": {"containers": [{"name": "slurmrestd", "image": f"slurmrestd:{tag}"}]},
        }
        for tag in tags
    )


def test_a_slurmrestd_that_does_not_come_up_keeps_the_upgrade_under_way() -> None:
    """NodeSets wait as long as that is said, also without a LoginSet."""
    world = without_accounting()
    spec = {"controller": {"image": "slurmctld:24.11.5"}, "restapi": {"image": "slurmrestd:24.11.6"}}
    wish(world, spec, "slurm 24.11.5")
    assert image(world, RESTAPI) == "slurmrestd:24.11.6"
    # The pod that answers is still the old one.
    world.children[RESTAPI]["status"] = {"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1}
    pods_of_slurmrestd(world, "24.11.5", "24.11.6")
    world.settle()
    shown = world.condition("Progressing")
    assert (shown["status"], shown["reason"]) == ("True", "Upgrading")
    assert shown["message"] == (
        "slurmrestd gets slurmrestd:24.11.6; its pods with slurmrestd:24.11.5 stay until others are ready"
    )
    # Taken back.
    wish(world, {**spec, "restapi": {"image": "slurmrestd:24.11.5"}}, "slurm 24.11.5")
    assert image(world, RESTAPI) == "slurmrestd:24.11.5"
    pods_of_slurmrestd(world, "24.11.5")
    ready(world, RESTAPI)
    world.settle()
    assert world.condition("Progressing")["status"] == "False"


def test_a_slurmrestd_that_is_not_ready_for_a_moment_is_no_upgrade() -> None:
    world = without_accounting()
    pods_of_slurmrestd(world, "24.11.5")
    world.children[RESTAPI]["status"] = {"replicas": 1, "updatedReplicas": 1}
    world.settle()
    assert world.condition("Progressing")["reason"] != "Upgrading"


def test_no_slurmrestd_that_answers_is_taken_away_first() -> None:
    world = running()
    strategy = world.children[RESTAPI]["spec"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}}


def test_slurmds_that_would_be_lost_are_named() -> None:
    assert rules.of_slurmctld(Release(26, 11, 0), None, {"a": Release(24, 11, 5), "b": Release(25, 5)}) == (
        "slurmctld of Slurm 26.11.0 cannot talk to the slurmds of a, which are more than 3 releases older. Update "
        "their NodeSets first"
    )
    assert not rules.of_slurmctld(Release(26, 5, 5), Release(26, 5, 0), {"a": Release(24, 11, 5)})


def lose(world: World, *, runs: str = "") -> None:
    """Take slurmctld's StatefulSet away: its pod runs on, or has gone with it."""
    del world.children[CONTROLLER]
    pod, is_ready = world.controller_pod, [{"type": "Ready", "status": "True"}]
    assert pod is not None
    spec = {"containers": [{"name": "slurmctld", "image": runs}]}
    world.controller_pod = {**pod, "spec": spec, "status": {**pod["status"], "conditions": is_ready}} if runs else None


@pytest.mark.parametrize("runs", ["", "slurmctld:24.11.5", "slurmctld:25.05.1"])
def test_a_lost_slurmctld_comes_back_as_it_was_and_gets_its_next_image_in_its_turn(runs: str) -> None:
    world = running()
    lose(world, runs=runs)
    world.raw = {**world.raw, "spec": images("26.05.5")}
    world.version = "slurm 26.05.5"
    world.step()
    assert world.condition("Progressing")["message"] == (
        "slurmdbd keeps slurmdbd:24.11.5 until slurmctld's StatefulSet is there again; "
        "slurmrestd keeps slurmrestd:24.11.5 until slurmctld's StatefulSet is there again"
    )
    was = runs or "slurmctld:24.11.5"
    seen = [[image(world, key) for key in (DATABASE, CONTROLLER, RESTAPI)]]
    for key in (CONTROLLER, DATABASE, CONTROLLER):
        ready(world, key)
        world.settle()
        seen.append([image(world, key) for key in (DATABASE, CONTROLLER, RESTAPI)])
    assert seen == [
        ["slurmdbd:24.11.5", was, "slurmrestd:24.11.5"],
        ["slurmdbd:26.05.5", was, "slurmrestd:24.11.5"],
        ["slurmdbd:26.05.5", "slurmctld:26.05.5", "slurmrestd:24.11.5"],
        ["slurmdbd:26.05.5", "slurmctld:26.05.5", "slurmrestd:26.05.5"],
    ]


def test_a_slurmctld_that_was_never_up_comes_with_the_image_of_the_spec() -> None:
    world = settled(images("24.11.5"))
    world.raw["status"].pop("slurmctldImage", None)
    lose(world)
    wish(world, images("26.05.5"))
    assert image(world, CONTROLLER) == "slurmctld:26.05.5"
