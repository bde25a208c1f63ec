"""A running Cluster keeps its images, whatever the defaults of another version of the operator."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.actions import StartPreflight, Write
from slinky_operator.cluster.daemons import Images, default_images
from slinky_operator.cluster.plan import Environment
from slinky_operator.nodeset.pod_spec import generated
from slinky_operator.slurm import releases
from tests.unit.cluster.world import World, cluster_object, node_set_object
from tests.unit.cluster.world import passes as worlds

PLACE = "registry.example.com/slurm"


def images(version: str, agent: str = "agent:1") -> Images:
    return Images(
        {
            "slurmctld": f"{PLACE}/slurmctld:{version}",
            "slurmrestd": f"{PLACE}/slurmrestd:{version}",
            "agent": agent,
            "slurmd": f"{PLACE}/slurmd:{version}",
        }
    )


class Operators:
    """One version of the operator after the other over the same Cluster."""

    def __init__(self, patch: pytest.MonkeyPatch, version: str, spec: dict[str, Any] | None = None) -> None:
        self._patch = patch
        self._set(images(version))
        self.world = World(cluster_object(spec))
        self.world.settle()
        self.up()

    def upgrade(self, version: str, agent: str = "agent:1") -> list[Any]:
        """Let another one work until it rests; returns what it did."""
        self._set(images(version, agent))
        return self.settle()

    def settle(self) -> list[Any]:
        """Let pods come up after each write, until nothing is left to do: daemons get images one after the other."""
        done: list[Any] = []
        for _ in range(4):
            done += self.world.settle()
            self.up()
        return done

    def up(self) -> None:
        """The daemons run with the images of their objects."""
        for child in self.world.children.values():
            if child["kind"] in {"StatefulSet", "Deployment"}:
                child["status"] = {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1}

    def edit(self, spec: dict[str, Any]) -> list[Any]:
        self.world.raw["spec"] = spec
        return self.settle()

    @property
    def running(self) -> tuple[str, str, str]:
        """Images of slurmctld, its agent and slurmrestd."""
        slurmctld = self._containers("StatefulSet", "slurm-controller")
        return slurmctld["slurmctld"], slurmctld["agent"], self._containers("Deployment", "slurm-restapi")["slurmrestd"]

    @property
    def slurmd(self) -> str:
        """Image that pods of a NodeSet get which names none."""
        cluster = Cluster.parse(self.world.raw)
        nodeset = NodeSet.parse(node_set_object("compute"))
        spec = generated.spec(nodeset, cluster, generated.Defaults(image="another"))
        return str(spec["containers"][0]["image"]).removeprefix(f"{PLACE}/")

    def _containers(self, kind: str, name: str) -> dict[str, str]:
        spec = self.world.children[kind, name]["spec"]["template"]["spec"]
        return {one["name"]: one["image"].removeprefix(f"{PLACE}/") for one in spec["containers"]}

    def _set(self, defaults: Images) -> None:
        self._patch.setattr(worlds, "ENVIRONMENT", Environment(defaults))


@pytest.mark.parametrize("version", ["26.05", "24.11", "26.11.1", "26.05.5", "latest"])
def test_another_default_moves_nothing_that_runs(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    operators = Operators(monkeypatch, "25.05")
    done = operators.upgrade(version, agent="agent:2")
    assert not [one for one in done if isinstance(one, (Write, StartPreflight))]
    assert operators.running == ("slurmctld:25.05", "agent:1", "slurmrestd:25.05")
    assert operators.slurmd == "slurmd:25.05"


def test_a_newer_patch_of_the_same_series_is_taken_over_after_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = Operators(monkeypatch, "26.05.5")
    done = operators.upgrade("26.05.6", agent="agent:2")
    assert any(isinstance(one, StartPreflight) and one.preflight.config_map for one in done)
    assert operators.slurmd == "slurmd:26.05.6"
    # The pod is replaced anyway, so the agent comes along.
    assert operators.running == ("slurmctld:26.05.6", "agent:2", "slurmrestd:26.05.6")
    operators.upgrade("26.05.4")
    assert operators.running == ("slurmctld:26.05.6", "agent:2", "slurmrestd:26.05.6")


def test_no_patch_is_taken_over_by_a_slurmctld_whose_state_ends_with_its_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = Operators(monkeypatch, "26.05.5", {"controller": {"persistence": {"enabled": False}}})
    done = operators.upgrade("26.05.6", agent="agent:2")
    assert not any(isinstance(one, StartPreflight) and one.preflight.config_map for one in done)
    assert operators.running == ("slurmctld:26.05.5", "agent:1", "slurmrestd:26.05.6")


def test_an_image_in_the_spec_is_used_and_its_removal_brings_back_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = Operators(monkeypatch, "24.11")
    operators.edit({"controller": {"image": "mine:x"}, "restapi": {"image": "mine:y"}})
    assert operators.running == ("mine:x", "agent:1", "mine:y")
    operators.edit({})
    assert operators.running == ("slurmctld:24.11", "agent:1", "slurmrestd:24.11")


def test_the_removal_of_an_image_never_goes_back_to_an_older_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = Operators(monkeypatch, "24.11")
    newer = {"image": f"{PLACE}/slurmctld:26.05.1"}
    operators.edit({"controller": newer, "restapi": {"image": f"{PLACE}/slurmrestd:26.05.1"}})
    operators.edit({})
    assert operators.running == ("slurmctld:26.05.1", "agent:1", "slurmrestd:26.05.1")


def test_an_image_that_never_came_up_is_left_for_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = Operators(monkeypatch, "24.11")
    operators.edit({"restapi": {"image": f"{PLACE}/slurmrestd:99.99"}})
    operators.world.children["Deployment", "slurm-restapi"]["status"] = {"readyReplicas": 1, "unavailableReplicas": 1}
    operators.edit({})
    assert operators.running[2] == "slurmrestd:24.11"


def test_an_image_in_a_template_counts_as_one_of_the_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = Operators(monkeypatch, "24.11")
    container = {"name": "slurmctld", "image": "mine:x"}
    operators.edit({"controller": {"template": {"spec": {"containers": [container]}}}})
    assert operators.running[0] == "mine:x"
    operators.edit({})
    assert operators.running[0] == "slurmctld:24.11"


def test_daemons_of_an_older_operator_are_kept_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = Operators(monkeypatch, "24.11")
    for child in operators.world.children.values():
        (child["metadata"].get("annotations") or {}).pop(default_images.ANNOTATION, None)
    del operators.world.raw["status"]["slurmdImage"]
    done = operators.upgrade("26.05", agent="agent:2")
    assert not any(isinstance(one, StartPreflight) and one.preflight.config_map for one in done)
    assert operators.running == ("slurmctld:24.11", "agent:1", "slurmrestd:24.11")
    assert operators.slurmd == "slurmd:24.11"


@pytest.mark.parametrize(
    ("image", "default", "slurmd"),
    [
        (f"{PLACE}/slurmctld:25.05.3", "26.05.1", "slurmd:25.05.3"),
        (f"{PLACE}/slurmctld:26.05.5", "26.05.6", "slurmd:26.05.6"),
        (f"{PLACE}/slurmctld:26.11.1", "26.05.6", "slurmd:26.05.6"),
        ("elsewhere:5000/mine:25.05-a", "26.05", "slurmd:25.05-a"),
        ("mine:latest", "26.05", "slurmd:26.05"),
    ],
)
def test_slurmd_that_nothing_is_known_of_is_not_newer_than_slurmctld(
    monkeypatch: pytest.MonkeyPatch, image: str, default: str, slurmd: str
) -> None:
    operators = Operators(monkeypatch, "24.11", {"controller": {"image": image}})
    del operators.world.raw["status"]["slurmdImage"]
    operators.upgrade(default)
    assert operators.slurmd == slurmd


@pytest.mark.parametrize("version", ["26.05", "23.11", "24.11.9"])
def test_daemons_of_an_older_operator_that_are_down_are_kept_too(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    operators = Operators(monkeypatch, "24.11")
    for child in operators.world.children.values():
        (child["metadata"].get("annotations") or {}).pop(default_images.ANNOTATION, None)
        child["status"] = {}
    done = operators.upgrade(version)
    assert not any(isinstance(one, StartPreflight) and one.preflight.config_map for one in done)
    assert operators.running == ("slurmctld:24.11", "agent:1", "slurmrestd:24.11")


UNSCHEDULED = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}]}


@pytest.mark.parametrize("status", [{"podIP": "10.0.0.1"}, UNSCHEDULED])
def test_a_slurmctld_that_is_not_ready_for_a_moment_stays(
    monkeypatch: pytest.MonkeyPatch, status: dict[str, Any]
) -> None:
    operators = Operators(monkeypatch, "26.05.5")
    operators.edit({"controller": {"image": f"{PLACE}/slurmctld:26.05.7"}})
    assert operators.world.controller_pod is not None
    operators.world.controller_pod["status"] = status
    operators.world.children["StatefulSet", "slurm-controller"]["status"] = {}
    done = operators.edit({})
    assert not any(isinstance(one, StartPreflight) and one.preflight.config_map for one in done)
    assert operators.running[0] == "slurmctld:26.05.7"


def test_an_agent_whose_image_is_gone_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = Operators(monkeypatch, "24.11")
    waiting = {"name": "agent", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "gone"}}}
    assert operators.world.controller_pod is not None
    operators.world.controller_pod["status"] = {"phase": "Pending", "containerStatuses": [waiting]}
    operators.upgrade("24.11", agent="agent:2")
    assert operators.running[1] == "agent:2"


@pytest.mark.parametrize(
    ("new", "old", "newer", "older"),
    [
        ("a:26.05.6", "a:26.05.5", True, False),
        ("a:26.05.5", "a:26.05.6", False, True),
        ("a:26.05.10", "a:26.05.9", True, False),
        ("b:26.05.6", "a:26.05.5", False, False),
        ("a:26.11.0", "a:26.05.9", False, False),
        ("a:24.11", "a:26.05", False, True),
        ("a:26.05", "a:26.05.5", False, False),
        ("host:5000/a:26.05.6-1", "host:5000/a:26.05.5-2", True, False),
        ("a:latest", "a:26.05.5", False, False),
        ("a@sha256:1", "a:26.05.5", False, False),
    ],
)
def test_versions_are_read_from_tags(new: str, old: str, newer: bool, older: bool) -> None:
    assert releases.is_newer_patch(new, old) is newer
    assert releases.is_older(new, old) is older


def orphan(operators: Operators) -> None:
    """`kubectl delete statefulset slurm-controller --cascade=orphan`: its pod runs on."""
    del operators.world.children["StatefulSet", "slurm-controller"]


@pytest.mark.parametrize("version", ["26.05", "24.11", "25.05.9"])
def test_a_statefulset_that_is_lost_comes_back_with_the_image_that_it_had(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    operators = Operators(monkeypatch, "25.05.3")
    operators.upgrade("25.05.3")
    orphan(operators)
    made = []
    operators._set(images(version))
    for _ in range(3):
        made += [one for one in operators.world.step().actions if isinstance(one, Write)]
    first = next(one for one in made if one.child.key == ("StatefulSet", "slurm-controller"))
    containers = first.child.body["spec"]["template"]["spec"]["containers"]
    assert next(one["image"] for one in containers if one["name"] == "slurmctld") == f"{PLACE}/slurmctld:25.05.3"


def test_a_patch_is_tried_also_after_the_statefulset_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = Operators(monkeypatch, "25.05.3")
    operators.upgrade("25.05.3")
    orphan(operators)
    done = operators.upgrade("25.05.4")
    trials = [one for one in done if isinstance(one, StartPreflight) and one.preflight.config_map]
    written = [one.child.key for one in done if isinstance(one, Write)]
    assert trials
    assert written.count(("StatefulSet", "slurm-controller")) == 2
    assert operators.running[0] == "slurmctld:25.05.4"
    assert operators.world.raw["status"]["slurmctldImage"] == f"{PLACE}/slurmctld:25.05.4"


def test_a_cluster_that_never_ran_gets_the_new_default(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = Operators(monkeypatch, "25.05.3")
    operators.world.raw["status"] = {"slurmctldImage": f"{PLACE}/slurmctld:25.05.3"}
    orphan(operators)
    operators.upgrade("26.05")
    assert operators.running[0] == "slurmctld:26.05"
