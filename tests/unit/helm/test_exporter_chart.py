"""The chart of an exporter on its own: what it renders the program accepts, and it is what the operator makes."""

from __future__ import annotations

from typing import Any

import pytest

from hack.packaging.errors import RenderFailed
from hack.packaging.render import EXPORTER_CHART, helm, render
from slinky_api.v1alpha1 import Cluster
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.parts.exporter import manifests as exporter
from slurm_exporter.settings import Settings, load

SERVER = "http://slurmrestd.example.com:6820"
LEAST: dict[str, Any] = {"server": SERVER, "tokenSecret": {"name": "reader"}}


def rendered(values: dict[str, Any] | None = None) -> dict[str, Any]:
    objects = render(EXPORTER_CHART, {**LEAST, **(values or {})}, release="lab", namespace="metrics")
    assert {one["metadata"]["namespace"] for one in objects} == {"metrics"}
    return {one["kind"]: one for one in objects}


def pod_of(values: dict[str, Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = rendered(values)["Deployment"]["spec"]["template"]["spec"]
    return found


def settings(values: dict[str, Any] | None = None) -> Settings:
    return load(pod_of(values)["containers"][0]["args"], {})


def test_lint_has_no_complaint() -> None:
    given = ("--set", f"server={SERVER}", "--set", "tokenSecret.name=reader")
    run = helm("lint", "--strict", str(EXPORTER_CHART), *given)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_program_accepts_its_arguments() -> None:
    found = settings()
    assert (found.server, found.labels, found.accounting) == (SERVER, {"slurm_cluster": "lab"}, True)
    assert (found.cadence.interval, found.port) == (10, 8080)
    values = {
        "interval": 100,
        "cluster": "hpc",
        "accounting": False,
        "nodes": 20_000,
        "users": 5,
        "accounts": 6,
        "callUsers": 7,
        "names": ["slurmctld"],
        "caConfigMap": "ca",
    }
    found = settings(values)
    assert found.cadence == type(found.cadence)(100, 100, 300)
    assert (found.labels, found.accounting, found.ca_bundle) == (
        {"slurm_cluster": "hpc"},
        False,
        "/run/slurm-exporter/ca/ca.pem",
    )
    own = found.budgets
    assert (own.nodes, own.users, own.accounts, own.call_users, set(own.names)) == (20_000, 5, 6, 7, {"slurmctld"})


def test_it_is_the_pod_that_the_operator_makes() -> None:
    spec = {"server": SERVER, "metrics": {"exporter": {"enabled": True, "tokenRef": {"name": "reader"}}}}
    spec["token"] = {"secretRef": {"name": "reader", "key": "auth-token"}}
    cluster = Cluster.parse({"metadata": {"name": "lab", "namespace": "metrics", "uid": "u"}, "spec": spec})
    made = exporter.deployment(cluster, Images({"agent": "agent:1"}))["spec"]["template"]["spec"]
    mine = pod_of()
    assert mine["securityContext"] == made["securityContext"]
    assert mine["volumes"] == made["volumes"]
    ours, theirs = mine["containers"][0], made["containers"][0]
    assert settings_of(ours) == settings_of(theirs)
    for field in ("command", "ports", "readinessProbe", "livenessProbe", "securityContext", "volumeMounts"):
        assert ours[field] == theirs[field], field


def settings_of(container: dict[str, Any]) -> tuple[Any, ...]:
    found = load(container["args"], {})
    return found.server, found.cadence, found.budgets, found.labels, found.port, found.ca_bundle


def test_prometheus_finds_it_and_only_who_is_named_may_ask() -> None:
    objects = rendered({"serviceMonitor": {"enabled": True, "labels": {"team": "hpc"}}})
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert objects["ServiceMonitor"]["metadata"]["labels"]["team"] == "hpc"
    assert objects["ServiceMonitor"]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert objects["Service"]["spec"]["selector"] == objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]
    assert objects["NetworkPolicy"]["spec"]["ingress"][0]["from"]
    assert set(rendered({"networkPolicy": {"enabled": False}})) == {"Deployment", "Service"}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"server": ""}, "server"),
        ({"server": "http://user@there:6820"}, "server"),
        ({"tokenSecret": {"name": ""}}, "tokenSecret"),
        ({"names": ["other"]}, "names"),
        ({"interval": 0}, "interval"),
        ({"servr": "x"}, "servr"),
    ],
)
def test_what_cannot_work_is_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(RenderFailed, match=words):
        rendered(values)
