"""A daemon with a condition and a question is what its folder has, and one entry in each list of `registered`.

The Recorder pretends to be one, and is the model to begin with: a Deployment of one pod that the operator asks by HTTP.
It shows what docs/architecture.md says such a daemon costs, and fails if another list has to name it. What cannot be
shown here are the types of its fields, its own condition and reasons, and the policies of the charts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
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
from slinky_operator.cluster.daemons import default_images, image_of, locked_down, metadata, pod_security
from slinky_operator.cluster.daemons.availability import priority
from slinky_operator.cluster.daemons.component import Component, Materials
from slinky_operator.cluster.observe import Snapshot
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
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.settings import Settings
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.pod_reader import NoAnswer
from slinky_operator.slurm.pod_templates.template_rules import fitted
from tests.unit.cluster.stories import site as sites
from tests.unit.cluster.stories.site import NAME, NAMESPACE, Site

# The folder of the part: manifests.py

PORT: Final = 6890


class Recorder(Component):
    """Its objects: a daemon that a Cluster has while it wants several slurmrestds."""

    daemon = "recorder"
    component = "recorder"
    resource = resources.DEPLOYMENTS
    template_field = "spec.recorder.template"
    has_releases = False

    @override
    def spec(self, cluster: Cluster) -> ComponentSpec:
        # A field of the spec cannot be added here: `cluster.spec.recorder or ComponentSpec()`, and `is not None` below.
        return ComponentSpec()

    @override
    def is_wanted(self, cluster: Cluster) -> bool:
        return cluster.spec.restapi.replicas > 1

    @override
    def workload(self, materials: Materials) -> Child:
        cluster, images = materials.snapshot.cluster, materials.images
        own, name = self.spec(cluster), naming.daemon(cluster.name, self.component)
        container: dict[str, Any] = {
            "name": self.daemon,
            **image_of(own.image, images.of(self.daemon), images.pull_policy),
            "ports": [{"name": "records", "containerPort": PORT, "protocol": "TCP"}],
            "readinessProbe": {"tcpSocket": {"port": PORT}},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": locked_down(),
        }
        if own.resources is not None:
            container["resources"] = own.resources.to_dict()
        generated = {
            "metadata": {"labels": naming.pod_labels(cluster, self.component)},
            "spec": {
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                **priority(images),
                "securityContext": pod_security(naming.NOBODY),
                "containers": [container],
            },
        }
        body = {
            "metadata": metadata(cluster, name, self.component, default_images.note(own, self.daemon)),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": naming.selector_labels(cluster, self.component)},
                "template": fitted(generated, own.template or {}, self.daemon),
            },
        }
        return Child(self.resource, body)


RECORDER: Final = Recorder()


# question.py

LONGEST: Final = 4096
"""Bytes of an answer."""


@dataclass(frozen=True, slots=True)
class Records:
    """What its pod has answered."""

    pod_uid: str
    asked_at: float
    count: int = 0
    why: str = ""
    """Why nothing is known of it; empty if something is."""


@dataclass(frozen=True, slots=True)
class RecordsQuestion(Question[Records]):
    """How many records it has."""

    pod: Object

    @property
    @override
    def about(self) -> str:
        # While a new pod takes the place of another one, there are two.
        return str(self.pod["metadata"]["name"])

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> Records:
        address, uid = self.pod["status"]["podIP"], self.pod["metadata"]["uid"]
        url = f"http://{f'[{address}]' if ':' in address else address}:{PORT}/records"
        try:
            said = await context.http.read(url, owner=cluster.namespace, limit=LONGEST)
        except NoAnswer as error:
            return Records(uid, context.clock(), why=str(error))
        count = said.get("count")
        # A user's template may put any program in its place.
        if not isinstance(count, int):
            return Records(uid, context.clock(), why="it says no number")
        return Records(uid, context.clock(), count)

    @override
    def is_news(self, before: Records | None, answer: Records | None) -> bool:
        # News repeats the round and keeps the status from being written: the time alone is none.
        return before is None or answer is None or replace(answer, asked_at=before.asked_at) != before


# part.py

ASK_EVERY: Final = 30.0
"""Seconds between two questions."""


class RecorderPart(Part):
    """Its condition."""

    name = "recorder"
    condition = ClusterCondition.BRIDGE_READY
    degrades = True

    @override
    def shown(self, state: PassState) -> Shown | None:
        if not RECORDER.is_wanted(state.snapshot.cluster):
            return None
        answers = [one for _, one in asked(state.snapshot) if one is not None]
        good = [one.count for one in answers if not one.why]
        if good:
            return "True", Reason.AS_EXPECTED, f"{max(good)} records"
        if answers:
            # A reason of its own: of two conditions with one reason, only the first has an Event.
            return "False", Reason.SLURM_UNREACHABLE, f"the recorder does not answer: {answers[0].why}"
        # A reason that needs nobody (`part.ON_ITS_WAY`): it starts.
        return "Unknown", Reason.CONNECTING, "the recorder has not been asked yet"


def asked(snapshot: Snapshot) -> Iterator[tuple[Object, Records | None]]:
    """Its pods that are ready, with the last answer of each: one that starts refuses connections."""
    for pod in RECORDER.pods(snapshot):
        containers = (pod.get("status") or {}).get("containerStatuses") or ()
        if any(one.get("ready") for one in containers if one.get("name") == RECORDER.daemon):
            answer = snapshot.memory.answers.of(RecordsQuestion, pod["metadata"]["name"])
            is_its_own = answer is not None and answer.pod_uid == pod["metadata"]["uid"]
            yield pod, answer if is_its_own else None


def ask_records(state: PassState) -> Iterator[Action]:
    """Its step: asks each pod, again after a while."""
    for pod, answer in asked(state.snapshot):
        due = answer.asked_at + ASK_EVERY - state.now if answer is not None else 0.0
        if due <= 0:
            yield Ask(RecordsQuestion(pod))
        state.wake_up(due if due > 0 else ASK_EVERY)


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


def shown(site: Site) -> tuple[str, str] | None:
    """Status and message of its condition."""
    cluster = found(site, resources.CLUSTERS, NAME)
    assert cluster is not None
    conditions = {one["type"]: (one["status"], one["message"]) for one in cluster["status"]["conditions"]}
    return conditions.get("BridgeReady")


def answered(site: Site, agent: Callable[[str], Mapping[str, Any]], url: str) -> Mapping[str, Any]:
    """Its pod answers where all agents do."""
    if not url.endswith(f":{PORT}/records"):
        return agent(url)
    if "records" in site.slurm.silent:
        raise NoAnswer("All connection attempts failed")
    return {"count": 3}


async def life(site: Site) -> None:
    """It comes with a spec that wants it, and goes with the next one."""
    site.edit({"restapi": {"replicas": 2}})
    await site.settle()
    deployment = found(site, resources.DEPLOYMENTS, "slurm-recorder")
    assert deployment is not None
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "slinky/recorder:26.05"
    assert shown(site) == ("True", "3 records")
    site.slurm.silent = frozenset({"records"})
    site.wait(ASK_EVERY)
    await site.settle()
    assert shown(site) == ("False", "the recorder does not answer: All connection attempts failed")
    site.edit({})
    await site.settle()
    assert found(site, resources.DEPLOYMENTS, "slurm-recorder") is None
    assert shown(site) is None


@pytest.mark.usefixtures("registered")
def test_a_new_daemon_is_written_asked_shown_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site({})
    monkeypatch.setattr(site.slurm, "agent", partial(answered, site, site.slurm.agent))
    asyncio.run(life(site))
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
    for given, image in (([], "slinky/recorder:26.05"), (["--image-recorder=theirs:1"], "theirs:1")):
        assert images_of(Settings.load(given, {})).of("recorder") == image
    assert images_of(Settings.load([], {"SLURM_OPERATOR_IMAGE_RECORDER": "theirs:2"})).of("recorder") == "theirs:2"
    (listed,) = chart_images.files().values()
    assert {"name": "recorder", "version": ""} in yaml.safe_load(listed)
    assert "recorder" in chart_images.properties()
    values = values_table.values(OPERATOR_CHART / "values.yaml")
    assert "slurm.images.recorder" in {one.path for one in values}
