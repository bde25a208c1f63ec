"""Whatever a pod has in Kubernetes can be set for each daemon, and is found in the pod that is built for it.

The documentation has one table for all of them (docs/configuration.md, "Resources, pods and Services of the daemons").
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.parts import daemons
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.pod_spec import builder, generated
from tests.unit.cluster.world import World, cluster_object, node_set_object
from tests.unit.loginset import builders as loginsets

DOCS = Path("docs/configuration.md")
OTHER = {"changed": "yes"}
TERM = {"labelSelector": {"matchLabels": OTHER}, "topologyKey": "zone"}

IN_SPEC: Mapping[str, Any] = {
    "nodeSelector": OTHER,
    "tolerations": [{"key": "changed", "operator": "Exists"}],
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
    "topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **TERM}],
    "priorityClassName": "changed",
    "securityContext": {"fsGroup": 4711},
    "imagePullSecrets": [{"name": "changed"}],
    "serviceAccountName": "changed",
    "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["changed"]}],
    "dnsConfig": {"searches": ["changed"]},
    "volumes": [{"name": "changed", "emptyDir": {}}],
    "initContainers": [{"name": "changed", "image": "changed:1"}],
}
"""Fields of `template.spec`."""

IN_CONTAINER: Mapping[str, Any] = {
    "env": [{"name": "CHANGED", "value": "yes"}],
    "envFrom": [{"configMapRef": {"name": "changed"}}],
    "volumeMounts": [{"name": "changed", "mountPath": "/changed"}],
    "imagePullPolicy": "Always",
    "securityContext": {"capabilities": {"add": ["SYS_NICE"]}},
    "lifecycle": {"postStart": {"exec": {"command": ["true"]}}},
}
"""Fields of the daemon's container in `template.spec.containers`."""

FIELDS: Mapping[str, Any] = {"image": "changed:1", "resources": {"limits": {"cpu": "3"}, "requests": {"cpu": "11m"}}}
"""Fields of the daemon's own."""


def in_cluster(place: Callable[[dict[str, Any]], dict[str, Any]], workload: tuple[str, str]) -> Callable[..., Any]:
    """The pod template of a daemon of a Cluster."""

    def build(own: dict[str, Any]) -> Any:
        world = World(cluster_object(place(own)))
        for _ in range(8):
            world.step()
            if ("StatefulSet", "slurm-database") in world.children:
                world.children["StatefulSet", "slurm-database"]["status"] = {"readyReplicas": 1}
        return world.children[workload]["spec"]["template"]

    return build


def of_login_pods(own: dict[str, Any]) -> Any:
    world = loginsets.World(**own)
    with asyncio.Runner() as runner:
        runner.run(world.settle())
    return world.child("deployments")["spec"]["template"]


def of_slurmd(own: dict[str, Any]) -> Any:
    place, defaults = PodSlot("compute-0", "compute-0", 0), generated.Defaults(image="slurmd:1", image_pull_policy="")
    nodeset, cluster = NodeSet.parse(node_set_object("compute", own)), Cluster.parse(cluster_object())
    return builder.build(nodeset, cluster, place=place, revision="r", guard_uid="g", defaults=defaults)


def below(place: str, own: dict[str, Any]) -> dict[str, Any]:
    """A spec with something in a place."""
    for name in reversed(place.split(".")):
        own = {name: own}
    return own


def of_clusters() -> Iterator[tuple[str, tuple[str, Callable[[dict[str, Any]], Any]]]]:
    for daemon in daemons.DAEMONS:
        place = daemon.template_field.removeprefix("spec.").removesuffix(".template")
        yield place, (daemon.daemon, in_cluster(partial(below, place), daemon.key(Cluster.parse(cluster_object()))))


DAEMONS: Mapping[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    **dict(of_clusters()),
    "login[]": ("login", of_login_pods),
    "NodeSet": ("slurmd", of_slurmd),
}
"""Where each daemon is set, the name of its container, and how its pod is built."""


def container_of(pod: Mapping[str, Any], name: str) -> dict[str, Any]:
    return next(dict(one) for one in pod["spec"]["containers"] if one["name"] == name)


def has(found: Any, wanted: Any) -> bool:
    """Whether something is set as wanted, beside what the operator sets."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(has(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and all(any(has(one, item) for one in found) for item in wanted)
    return bool(found == wanted)


@pytest.mark.parametrize("place", DAEMONS)
def test_everything_of_a_pod_can_be_set_for_each_daemon(place: str) -> None:
    name, build = DAEMONS[place]
    before = build({})
    template = {
        "metadata": {"labels": OTHER, "annotations": OTHER},
        "spec": {**IN_SPEC, "containers": [{"name": name, **IN_CONTAINER}, {"name": "beside", "image": "beside:1"}]},
    }
    pod = build({**FIELDS, "template": template})
    for where, wanted, found, earlier in (
        ("metadata", template["metadata"], pod["metadata"], before["metadata"]),
        ("spec", IN_SPEC, pod["spec"], before["spec"]),
        ("container", {**IN_CONTAINER, **FIELDS}, container_of(pod, name), container_of(before, name)),
    ):
        for field, value in wanted.items():
            assert not has(earlier.get(field), value), f"{where}.{field} is so without being set"
            assert has(found.get(field), value), f"{where}.{field} is not set"
    assert container_of(pod, "beside")["image"] == "beside:1"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("controller", "slurm-controller-outside"),
        ("restapi", "slurm-restapi"),
        ("accounting", "slurm-accounting"),
    ],
)
def test_the_service_of_each_daemon_takes_labels_annotations_and_its_spec(spec: str, name: str) -> None:
    service = {"labels": OTHER, "annotations": OTHER, "spec": {"type": "NodePort", "ports": [{"nodePort": 30077}]}}
    world = World(cluster_object({spec: {"service": service}}))
    for _ in range(4):
        world.step()
    found = world.children["Service", name]
    assert has(found["metadata"], {"labels": OTHER, "annotations": OTHER})
    assert found["spec"]["type"] == "NodePort"
    assert found["spec"]["ports"][0]["nodePort"] == 30077


def test_the_documentation_has_a_row_for_each_daemon_and_names_every_setting() -> None:
    text = DOCS.read_text(encoding="utf-8")
    section = text.partition("### Resources, pods and Services of the daemons")[2].partition("\n### ")[0]
    rows = set(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", section, re.MULTILINE))
    assert rows == {(place if place == "NodeSet" else f"spec.{place}", name) for place, (name, _) in DAEMONS.items()}
    named = set(re.findall(r"`(\w+)`", section))
    assert {*IN_SPEC, *IN_CONTAINER, *FIELDS} <= named
