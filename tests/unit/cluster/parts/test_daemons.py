"""The plan knows daemons only by their list: a new one in it is written, reported and removed like any other.

What else names daemons is compared with it: their label, the policies and the images of the charts.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TypeGuard

import pytest
from typing_extensions import override

from hack.packaging.render import SLURM_CHART, render
from slinky_api import labels
from slinky_api.conditions import ClusterCondition
from slinky_api.containers import components
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import Action, Remove, Write
from slinky_operator.cluster.daemons import metadata
from slinky_operator.cluster.daemons.component import Component, Materials
from slinky_operator.cluster.parts import daemons
from slinky_operator.cluster.parts.daemons import DAEMONS
from slinky_operator.cluster.spec import images_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import DEPLOYMENTS, SERVICES
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.settings import Settings
from slinky_operator.slurm.pod_templates.templates import RefusedFragment
from tests.unit.cluster.parts.recorder.manifests import RecorderDaemon
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.stories.lives import EVERYTHING
from tests.unit.cluster.world import World, cluster_object


class Recorder(RecorderDaemon):
    """The same with a Service, a Secret and a template that is refused for some Clusters."""

    @override
    def takes_patches(self, cluster: Cluster) -> bool:
        return False

    @override
    def secrets(self, cluster: Cluster) -> Iterable[str]:
        yield "for-the-recorder"

    @override
    def services(self, materials: Materials) -> Iterable[Child]:
        cluster = materials.snapshot.cluster
        yield Child(SERVICES, {"metadata": metadata(cluster, "slurm-recorder", self.component), "spec": {}})

    @override
    def workload(self, materials: Materials) -> Child:
        cluster = materials.snapshot.cluster
        if cluster.spec.restapi.replicas > 2:
            raise RefusedFragment("spec.hostname", "is the operator's")
        template = {"spec": {"containers": [{"name": self.daemon, "image": materials.images.of(self.daemon)}]}}
        about = metadata(cluster, "slurm-recorder", self.component)
        return Child(DEPLOYMENTS, {"metadata": about, "spec": {"template": template}})


@cache
def guarded() -> frozenset[str]:
    """Components whose pods the chart of a Cluster closes to others."""
    values = {"cluster": {"accounting": {}}, "networkPolicy": {"slurm": {"enabled": True}}}
    selectors = [one["spec"]["podSelector"]["matchLabels"] for one in render(SLURM_CHART, values) if is_policy(one)]
    return frozenset(one[labels.LABEL_APP_COMPONENT] for one in selectors if labels.LABEL_APP_COMPONENT in one)


def is_policy(obj: Object) -> bool:
    return bool(obj["kind"] == "NetworkPolicy")


def is_removed(action: Action) -> TypeGuard[Remove]:
    """Whether an action removes something of that daemon: one slurmrestd has no budget, but two have."""
    return isinstance(action, Remove) and action.name == "slurm-recorder"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(daemons, "DAEMONS", (*DAEMONS, Recorder()))
    monkeypatch.setattr("slinky_operator.cluster.daemons.Images.of", lambda images, daemon: f"{daemon}:1")
    monkeypatch.setattr("slinky_operator.cluster.daemons.Images.with_image", lambda images, *_: images)
    return settled({"restapi": {"replicas": 2}})


def test_one_more_daemon_has_its_service_before_any_workload(world: World) -> None:
    world = World(cluster_object({"restapi": {"replicas": 2}}))
    written = [one.child.key for one in world.settle() if isinstance(one, Write)]
    workloads = [number for number, (kind, _) in enumerate(written) if kind in {"Deployment", "StatefulSet"}]
    assert (
        written.index(("Service", "slurm-recorder")) < min(workloads) < written.index(("Deployment", "slurm-recorder"))
    )


def test_a_daemon_that_is_no_longer_wanted_goes_and_the_others_stay(world: World) -> None:
    world.raw = {**world.raw, "spec": {"restapi": {"replicas": 1}}}
    removed = [(one.resource.kind, one.name) for one in world.settle() if is_removed(one)]
    assert removed == [("Deployment", "slurm-recorder"), ("Service", "slurm-recorder")]
    assert ("Deployment", "slurm-restapi") in world.children


def test_what_a_former_cluster_has_left_is_not_removed_unproven(world: World) -> None:
    for key in (("Deployment", "slurm-recorder"), ("Service", "slurm-recorder")):
        world.children[key]["metadata"]["labels"]["cluster.slinky.slurm.net/uid"] = "another"
    world.raw = {**world.raw, "spec": {"restapi": {"replicas": 1}}}
    assert not [one for one in world.settle() if is_removed(one)]


def test_a_refused_template_is_named_by_its_field_and_the_workload_stays(world: World) -> None:
    world.raw = {**world.raw, "spec": {"restapi": {"replicas": 3}}}
    written = [one.child.key for one in world.settle() if isinstance(one, Write)]
    assert written == [("Deployment", "slurm-restapi")]
    message = world.condition(ClusterCondition.DEGRADED)["message"]
    assert message == "spec.recorder.template.spec.hostname: is the operator's"


def test_its_secrets_are_read(world: World) -> None:
    cluster = world.snapshot().cluster
    assert daemons.secrets(cluster) == ["slurm-auth-accepted", "slurm-auth-jwt", "for-the-recorder"]
    elsewhere = Cluster.parse(cluster_object({"server": "http://there:6820", "auth": {"jwtKeyRef": {"name": "x"}}}))
    assert daemons.secrets(elsewhere) == []


@pytest.mark.parametrize("daemon", DAEMONS, ids=lambda one: one.daemon)
def test_a_daemon_has_its_label_and_its_network_policy(daemon: Component) -> None:
    name, component = daemon.daemon, daemon.component
    assert components()[name] == component
    assert component in guarded()


@pytest.mark.parametrize("daemon", DAEMONS, ids=lambda one: one.daemon)
def test_the_image_of_a_daemon_in_the_values_of_the_chart_reaches_its_pods(daemon: Component) -> None:
    values = {"slurm": {"images": {daemon.daemon: "example.com/theirs:1"}}}
    (deployment,) = [one for one in render(values=values) if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert images_of(Settings.load(container["args"], {})).of(daemon.daemon) == "example.com/theirs:1"


def test_settings_of_images_and_of_all_daemons_reach_their_pods() -> None:
    flags = {
        "--image-agent": "agent:1",
        "--image-pull-policy": "Always",
        "--daemon-priority-class": "high",
        "--cluster-domain": "k8s.corp",
    }
    images = images_of(Settings.load([f"{flag}={value}" for flag, value in flags.items()], {}))
    assert (images.of("agent"), images.pull_policy, images.priority_class) == ("agent:1", "Always", "high")
    assert images.domain == "k8s.corp"


def test_every_daemon_shows_in_its_pod_why_it_ended() -> None:
    world = settled({"accounting": {}, "metrics": {"exporter": {"enabled": True}}})
    pods = {
        name: body["spec"]["template"]["spec"]
        for (_, name), body in world.children.items()
        if "template" in body.get("spec", {})
    }
    assert {"slurm-controller", "slurm-restapi", "slurm-database"} <= pods.keys()
    for name, pod in pods.items():
        (first, *_) = pod["containers"]
        assert first.get("terminationMessagePolicy") == "FallbackToLogsOnError", name


@pytest.mark.parametrize("daemon", DAEMONS, ids=lambda one: one.daemon)
def test_the_golden_trace_tells_how_each_comes_and_goes(daemon: Component) -> None:
    assert daemon.is_wanted(Cluster.parse(cluster_object(EVERYTHING)))
