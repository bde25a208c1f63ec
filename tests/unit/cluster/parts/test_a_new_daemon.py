"""A daemon with a condition and a question is what its folder has, and one entry in each list of `registered`.

The Recorder pretends to be one: it shows what docs/architecture.md says such a daemon costs, and fails if another list
has to name it. What the lists here do not show are the types of its fields and the policies of the charts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
import yaml
from typing_extensions import override

from hack.packaging import chart_images, values_table
from hack.packaging.render import OPERATOR_CHART
from slinky_api import containers
from slinky_api.conditions import ClusterCondition, Reason
from slinky_api.containers import Container
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import Component as ComponentSpec
from slinky_operator.cluster import plan
from slinky_operator.cluster.actions import Action, Ask
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.daemons import image_of, metadata
from slinky_operator.cluster.daemons.component import Component, Materials
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts import daemons
from slinky_operator.cluster.parts.accounting.slurmdbd import SLURMDBD
from slinky_operator.cluster.parts.bridge.part import BRIDGE_PART
from slinky_operator.cluster.parts.slurmctld.manifests import SLURMCTLD
from slinky_operator.cluster.parts.slurmrestd.manifests import SLURMRESTD
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.cluster.spec import images_of
from slinky_operator.kube import resources
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.settings import Settings
from slinky_operator.slurm import naming
from tests.unit.cluster.stories import site as sites
from tests.unit.cluster.stories.site import NAME, NAMESPACE, Site

# The folder of the part


class Recorder(Component):
    """Its objects: a daemon that a Cluster has while it wants several slurmrestds."""

    daemon = "recorder"
    component = "recorder"
    resource = resources.DEPLOYMENTS
    template_field = "spec.recorder.template"

    @override
    def spec(self, cluster: Cluster) -> ComponentSpec:
        return ComponentSpec()

    @override
    def is_wanted(self, cluster: Cluster) -> bool:
        return cluster.spec.restapi.replicas > 1

    @override
    def workload(self, materials: Materials) -> Child:
        cluster, images = materials.snapshot.cluster, materials.images
        about = metadata(cluster, naming.daemon(cluster.name, self.component), self.component)
        container = {"name": self.daemon, **image_of(None, images.of(self.daemon), images.pull_policy)}
        pod = {"metadata": {"labels": about["labels"]}, "spec": {"containers": [container]}}
        return Child(self.resource, {"metadata": about, "spec": {"replicas": 1, "template": pod}})


RECORDER: Final = Recorder()


@dataclass(frozen=True)
class RecordsQuestion(Question[str]):
    """Its question: what the daemon has recorded."""

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> str:
        return f"records of {cluster.name}"


class RecorderPart(Part):
    """Its condition."""

    name = "recorder"
    condition = ClusterCondition.BRIDGE_READY

    @override
    def shown(self, state: PassState) -> Shown | None:
        if not RECORDER.is_wanted(state.snapshot.cluster):
            return None
        answer = state.snapshot.memory.answers.of(RecordsQuestion)
        return ("True", Reason.AS_EXPECTED, answer) if answer else ("Unknown", Reason.CONNECTING, "not asked yet")


def ask_records(state: PassState) -> Iterator[Action]:
    """Its step."""
    if RECORDER.is_wanted(state.snapshot.cluster) and state.snapshot.memory.answers.of(RecordsQuestion) is None:
        yield Ask(RecordsQuestion())


# The lists that name it


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry in each list; its condition takes the place of another, since a type cannot be added here."""
    monkeypatch.setattr(containers, "CONTAINERS", (*containers.CONTAINERS, Container("recorder", "recorder")))
    monkeypatch.setattr(daemons, "DAEMONS", (*daemons.DAEMONS, RECORDER))
    monkeypatch.setattr(plan, "PARTS", tuple(RecorderPart() if one is BRIDGE_PART else one for one in plan.PARTS))
    monkeypatch.setattr(plan, "MANAGED", (*plan.MANAGED, ask_records))
    monkeypatch.setattr(sites, "IMAGES", images_of(Settings.load([], {})))


def found(site: Site, kind: resources.Resource, name: str) -> dict[str, Any] | None:
    return site.kube.find(kind, name, NAMESPACE)


def shown(site: Site) -> dict[str, Any] | None:
    """Its condition in the status."""
    cluster = found(site, resources.CLUSTERS, NAME)
    assert cluster is not None
    return next((one for one in cluster["status"]["conditions"] if one["type"] == "BridgeReady"), None)


async def life(site: Site) -> None:
    """It comes with a spec that wants it, and goes with the next one."""
    site.edit({"restapi": {"replicas": 2}})
    await site.settle()
    deployment = found(site, resources.DEPLOYMENTS, "slurm-recorder")
    assert deployment is not None
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "slinky/recorder:26.05"
    condition = shown(site)
    assert condition is not None
    assert (condition["status"], condition["message"]) == ("True", "records of slurm")
    site.edit({})
    await site.settle()
    assert found(site, resources.DEPLOYMENTS, "slurm-recorder") is None
    assert shown(site) is None


@pytest.mark.usefixtures("registered")
def test_a_new_daemon_is_written_asked_shown_and_removed() -> None:
    site = Site({})
    asyncio.run(life(site))
    assert "event Normal BridgeReady of Cluster slurm: records of slurm" in site.telling.text()


@pytest.mark.usefixtures("registered")
def test_its_objects_are_the_clusters_and_its_image_waits_for_those_before_it() -> None:
    assert naming.is_child(NAME, "slurm-recorder")
    cluster = Cluster.parse({"metadata": {"name": NAME}, "spec": {"restapi": {"replicas": 2}, "accounting": {}}})
    assert list(daemons.with_releases(cluster)) == [SLURMDBD, SLURMCTLD, SLURMRESTD, RECORDER]


@pytest.mark.usefixtures("registered")
def test_its_image_is_a_setting_and_a_value_of_the_chart() -> None:
    for given, image in (([], "slinky/recorder:26.05"), (["--image-recorder=theirs:1"], "theirs:1")):
        assert images_of(Settings.load(given, {})).of("recorder") == image
    assert images_of(Settings.load([], {"SLURM_OPERATOR_IMAGE_RECORDER": "theirs:2"})).of("recorder") == "theirs:2"
    (listed,) = chart_images.files().values()
    assert {"name": "recorder", "version": ""} in yaml.safe_load(listed)
    assert "recorder" in chart_images.properties()
    values = values_table.values(OPERATOR_CHART / "values.yaml")
    assert "slurm.images.recorder" in {one.path for one in values}
