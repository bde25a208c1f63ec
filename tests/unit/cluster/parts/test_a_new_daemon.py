"""A daemon with a condition and a question is what its folder has, and one entry in each list of `registered`.

The recorder in the folder `recorder` pretends to be one, and is the model to copy. What is shown here is what
docs/architecture.md says such a daemon costs: this fails if another list of the operator has to name it. What cannot be
shown here are the types of its fields, its own condition and reasons, the policies of the charts, and that its readers
of answers and statuses are tried with hostile texts (`tests/unit/bounds/test_pods_answers.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml

from hack.packaging import chart_images, values_table
from hack.packaging.render import OPERATOR_CHART
from slinky_api import containers
from slinky_api.containers import Container
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import plan
from slinky_operator.cluster.parts import daemons
from slinky_operator.cluster.parts.accounting.slurmdbd import SLURMDBD
from slinky_operator.cluster.parts.bridge.part import BRIDGE_PART
from slinky_operator.cluster.parts.slurmctld.manifests import SLURMCTLD
from slinky_operator.cluster.parts.slurmrestd.manifests import SLURMRESTD
from slinky_operator.cluster.spec import images_of
from slinky_operator.kube import resources
from slinky_operator.settings import Settings
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.pod_reader import NoAnswer
from tests.unit.cluster.parts.recorder.manifests import PORT, RECORDER
from tests.unit.cluster.parts.recorder.part import ASK_EVERY, RECORDER_PART, ask_records
from tests.unit.cluster.stories import site as sites
from tests.unit.cluster.stories.site import NAME, NAMESPACE, Site


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry in each list; its condition takes the place of another, since a type cannot be added here."""
    monkeypatch.setattr(
        containers, "CONTAINERS", (*containers.CONTAINERS, Container("recorder", "recorder", version="1.4"))
    )
    monkeypatch.setattr(daemons, "DAEMONS", (*daemons.DAEMONS, RECORDER))
    monkeypatch.setattr(plan, "PARTS", tuple(RECORDER_PART if one is BRIDGE_PART else one for one in plan.PARTS))
    monkeypatch.setattr(plan, "MANAGED", (*plan.MANAGED, ask_records))
    monkeypatch.setattr(sites, "IMAGES", images_of(Settings.load([], {})))


def found(site: Site, kind: resources.Resource, name: str) -> dict[str, Any] | None:
    return site.kube.find(kind, name, NAMESPACE)


def shown(site: Site) -> tuple[str, str] | None:
    """Status and message of its condition."""
    cluster = found(site, resources.CLUSTERS, NAME)
    assert cluster is not None
    conditions = {one["type"]: (one["status"], one["message"]) for one in cluster["status"]["conditions"]}
    return conditions.get("BridgeReady")


class Pod:
    """What its pod answers where all agents do; nothing while that is `None`."""

    def __init__(self, others: Callable[[str], Mapping[str, Any]]) -> None:
        self.others = others
        self.says: Mapping[str, Any] | None = {"count": 3}
        self.questions = 0

    def answer(self, url: str) -> Mapping[str, Any]:
        if not url.endswith(f":{PORT}/records"):
            return self.others(url)
        self.questions += 1
        if self.says is None:
            raise NoAnswer("All connection attempts failed")
        return self.says


async def said(site: Site, pod: Pod, answer: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """What is shown after another answer."""
    pod.says = answer
    site.wait(ASK_EVERY)
    await site.settle()
    return shown(site)


async def life(site: Site, pod: Pod) -> None:
    """It comes with a spec that wants it, is asked, and goes with the next one."""
    site.starting.add("slurm-recorder")
    site.edit({"restapi": {"replicas": 2}})
    await site.settle()
    assert shown(site) == ("False", "no pod of the recorder is ready")
    assert pod.questions == 0
    site.starting.clear()
    await site.settle()
    deployment = found(site, resources.DEPLOYMENTS, "slurm-recorder")
    assert deployment is not None
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "slinky/recorder:1.4"
    assert shown(site) == ("True", "3 records")
    assert await said(site, pod, None) == ("False", "the recorder does not answer: All connection attempts failed")
    for wrong in ({}, {"count": "3"}, {"count": True}, {"count": -1}, {"count": 10**400}):
        no_number = "the recorder does not answer: it says no number of records"
        assert await said(site, pod, wrong) == ("False", no_number)
    assert await said(site, pod, {"count": 4}) == ("True", "4 records")
    site.edit({})
    await site.settle()
    assert found(site, resources.DEPLOYMENTS, "slurm-recorder") is None
    assert shown(site) is None


@pytest.mark.usefixtures("registered")
def test_a_new_daemon_is_written_asked_shown_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site({})
    pod = Pod(site.slurm.agent)
    monkeypatch.setattr(site.slurm, "agent", pod.answer)
    asyncio.run(life(site, pod))
    text = site.telling.text()
    assert "event Normal BridgeReady of Cluster slurm: 3 records" in text
    assert "the recorder does not answer: All connection attempts failed" in text


@pytest.mark.usefixtures("registered")
def test_its_objects_are_the_clusters_and_an_upgrade_of_slurm_leaves_it_out() -> None:
    assert naming.is_child(NAME, "slurm-recorder")
    cluster = Cluster.parse({"metadata": {"name": NAME}, "spec": {"restapi": {"replicas": 2}, "accounting": {}}})
    assert list(daemons.with_releases(cluster)) == [SLURMDBD, SLURMCTLD, SLURMRESTD]


@pytest.mark.usefixtures("registered")
def test_its_image_is_a_setting_and_a_value_of_the_chart() -> None:
    for given, image in (([], "slinky/recorder:1.4"), (["--image-recorder=theirs:1"], "theirs:1")):
        assert images_of(Settings.load(given, {})).of("recorder") == image
    assert images_of(Settings.load([], {"SLURM_OPERATOR_IMAGE_RECORDER": "theirs:2"})).of("recorder") == "theirs:2"
    (listed,) = chart_images.files().values()
    assert {"name": "recorder", "version": "1.4"} in yaml.safe_load(listed)
    assert "recorder" in chart_images.properties()
    values = values_table.values(OPERATOR_CHART / "values.yaml")
    assert "slurm.images.recorder" in {one.path for one in values}
