"""Prometheus finds the metrics of slurmctld by a ServiceMonitor, which belongs to a Service of its own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import KeepMonitor, Remove
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.parts.monitoring.manifests import prometheus_duration
from slinky_operator.cluster.parts.monitoring.step import READ_EVERY
from slinky_operator.kube.resources import SERVICES
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import cluster_object

SERVICE = ("Service", "slurm-controller-metrics")


def spec(**monitor: Any) -> dict[str, Any]:
    return {"metrics": {"enabled": True, "serviceMonitor": {"enabled": True, **monitor}}}


def test_a_monitor_selects_one_service_only_and_belongs_to_it() -> None:
    exposed = {"controller": {"service": {"spec": {"type": "NodePort"}}}}
    world = settled({**spec(), **exposed})
    assert world.monitor is not None
    wanted = world.monitor["spec"]["selector"]["matchLabels"].items()
    services = {key: one for key, one in world.children.items() if key[0] == "Service"}
    assert (
        len([one for one in services.values() if one["spec"]["selector"] == services[SERVICE]["spec"]["selector"]]) > 1
    )
    assert [key for key, one in services.items() if wanted <= one["metadata"]["labels"].items()] == [SERVICE]
    (owner,) = world.monitor["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "v1",
        "kind": "Service",
        "name": SERVICE[1],
        "uid": services[SERVICE]["metadata"]["uid"],
    }
    ports = {one["name"] for one in services[SERVICE]["spec"]["ports"]}
    assert {one["port"] for one in world.monitor["spec"]["endpoints"]} == ports


def test_times_and_labels_are_those_of_the_spec_but_for_the_operators_own() -> None:
    own = {"release": "prometheus", labels.LABEL_CLUSTER_UID: "another"}
    world = settled(spec(interval="1m30s", scrapeTimeout="2500ms", labels=own))
    assert world.monitor is not None
    found = world.monitor["metadata"]["labels"]
    assert (found["release"], found[labels.LABEL_CLUSTER_UID]) == ("prometheus", "cluster-uid")
    assert {(one["interval"], one["scrapeTimeout"]) for one in world.monitor["spec"]["endpoints"]} == {
        ("90s", "2500ms")
    }
    assert [prometheus_duration(timedelta(**one)) for one in ({"hours": 1}, {"microseconds": 1500})] == ["3600s", "1ms"]


def test_it_is_read_again_after_a_while_and_written_when_it_changes() -> None:
    world = settled(spec())

    def asked() -> bool:
        return any(isinstance(one, KeepMonitor) for one in world.plan().actions)

    assert not asked()
    world.now += READ_EVERY
    assert asked()
    world.settle()
    assert not asked()
    world.raw["spec"] = spec(interval="10s")
    assert asked()


@pytest.mark.parametrize("later", [{}, {"metrics": {"enabled": True}}])
def test_its_owner_goes_when_it_is_no_longer_wanted(later: dict[str, Any]) -> None:
    world = settled(spec())
    world.raw["spec"] = later
    log = world.settle()
    assert [one.name for one in log if isinstance(one, Remove) and one.resource is SERVICES] == [SERVICE[1]]
    assert not any(isinstance(one, KeepMonitor) for one in log)
    assert SERVICE not in world.children


def test_a_monitor_that_cannot_be_written_degrades_a_cluster_that_serves() -> None:
    world = settled(spec())
    world.memory.writes.denied["ServiceMonitor", SERVICE[1]] = Denied("", "no such kind", world.now)
    world.step()
    assert world.condition("Degraded")["reason"] == "ChildRefused"
    assert world.condition("Degraded")["message"] == f"ServiceMonitor {SERVICE[1]}: no such kind"
    assert world.condition("Ready")["status"] == "True"


def test_a_monitor_without_metrics_is_refused() -> None:
    with pytest.raises(InvalidObjectError, match="without it slurmctld serves no metrics"):
        Cluster.parse(cluster_object({"metrics": {"serviceMonitor": {"enabled": True}}}))
