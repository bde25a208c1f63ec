"""A real Prometheus reads the operator: documented queries, alerts, and what becomes of them in trouble."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hack.dashboards import of_slurm, of_the_operator
from hack.dashboards.answers import Answers
from hack.dashboards.pictures import draw
from hack.installing.operator import NAMESPACE, Installation
from hack.localkube.kubectl import wait_for
from tests.support.prometheus import Prometheus, running
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(600), pytest.mark.full]

DOCS = Path(__file__).parents[3] / "docs"
OPERATOR = "slurm_operator_"
GPUS = {"configFiles": {"gres.conf": "Name=gpu File=/dev/zero\nName=gpu File=/dev/full\n"}}
WITHOUT_ACCOUNTING = {"CPUs by account", "Pending by account", "Jobs by QOS", "Factor", "Usage against share"}
"""Panels that have no data for a Cluster without slurmdbd."""
NOWHERE = "http://nowhere.example:6820"


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with one node, and one beside it that nobody answers for."""
    instance = new_slurm("watched")
    exporter = {"enabled": True, "interval": "1s", "users": 5, "accounts": 5, "callUsers": 5}
    instance.create(metrics={"exporter": exporter}, extraConf="GresTypes=gpu\nLicenses=matlab:2", **GPUS)
    instance.nodeset("compute", 1, gres="gpu:2")
    # For the metrics of autoscaling.
    instance.nodeset("burst", None, autoscaling={"minReplicas": 1, "maxReplicas": 1})
    instance.wait_idle(["compute-0", "burst-0"])
    meant_for = {"cluster.slinky.slurm.net/server": NOWHERE}
    token = {"name": "token", "namespace": instance.namespace, "annotations": meant_for}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": token, "stringData": {"auth-token": "x"}}
    nowhere = {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "nowhere", "namespace": instance.namespace},
        "spec": {
            "server": NOWHERE,
            "token": {"secretRef": {"name": "token", "key": "auth-token"}},
        },
    }
    nobody = {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "Token",
        "metadata": {"name": "portal", "namespace": instance.namespace},
        "spec": {"clusterRef": {"name": instance.name}, "username": "nobody"},
    }
    instance.kubectl.apply([secret, nowhere, nobody])
    return instance


@pytest.fixture(scope="module")
def prometheus(
    slurm: SlurmInKubernetes, operator: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    found = slurm.kubectl("get", "pods", f"--namespace={NAMESPACE}", "--output=name").split()
    pods = [name.removeprefix("pod/") for name in found]
    assert len(pods) == 2

    def exporter_is_ready() -> bool:
        return bool(slurm.condition("cluster", slurm.name, "ExporterReady")["status"] == "True")

    wait_for("the exporter", exporter_is_ready, PATIENCE)
    folder = tmp_path_factory.mktemp("prometheus")
    with running(operator.cluster.kubectl, folder, pods, {slurm.namespace: f"{slurm.name}-exporter"}) as instance:
        yield instance


def documented() -> list[str]:
    """The queries in the table of the page about the operator's metrics."""
    table = (DOCS / "operator-metrics.md").read_text().split("## What to look at")[1].split("\nCounters")[0]
    return [query for query in re.findall(r"`([^`]*)`", table) if OPERATOR in query]


def test_documented_queries_are_answered(prometheus: Prometheus) -> None:
    queries = documented()
    assert len(queries) > 10
    for query in queries:
        _ = prometheus.query(query)
        for name in names_with_samples(query):
            wait_for(f"samples of {name}", partial(has_samples, prometheus, name), PATIENCE)


def test_every_panel_about_the_operator_is_answered(prometheus: Prometheus) -> None:
    for dashboard in of_the_operator.DASHBOARDS:
        for panel in dashboard.panels:
            for query in panel.queries:
                _ = prometheus.query(filled(query.expression))
                for name in names_with_samples(query.expression):
                    what = f"samples of {name} for {dashboard.title}, {panel.title}"
                    wait_for(what, partial(has_samples, prometheus, name), PATIENCE)


def names_with_samples(expression: str) -> set[str]:
    """The operator's metrics that a query names, without those of virtual Nodes: no Cluster here has any."""
    found = set(re.findall(rf"{OPERATOR}\w+", expression))
    return {name for name in found if not name.startswith(f"{OPERATOR}virtual_node")}


def filled(expression: str) -> str:
    """A query as Grafana sends it when everything is chosen."""
    for variable, value in {"$__rate_interval": "1m", "$namespace": ".*", "$nodeset": ".*"}.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, expression
    return expression


def has_samples(prometheus: Prometheus, name: str) -> bool:
    return bool(prometheus.query(f"count({name})"))


def test_every_panel_about_slurm_has_data(prometheus: Prometheus, slurm: SlurmInKubernetes, tmp_path: Path) -> None:
    running_job = slurm.hold("compute-0", "--gres=gpu:1", "--licenses=matlab:1")
    slurm.submit("--hold", seconds=0)
    slurm.submit("--gres=gpu:2", seconds=0)
    slurm.run("scontrol", "update", "NodeName=compute-0", "State=DRAIN", "Reason=fans")
    chosen = {"namespace": slurm.namespace, "cluster": slurm.name}

    def empty() -> dict[str, set[str]]:
        now = time.time()
        answers = Answers(prometheus.url, now - 60, now, chosen)
        return {
            one.uid: set(draw(one, answers.lines, tmp_path / f"{one.uid}.png")) - WITHOUT_ACCOUNTING
            for one in of_slurm.DASHBOARDS
        }

    try:
        wait_for("data in every panel", lambda: not any(empty().values()), PATIENCE)
    finally:
        slurm.run("scontrol", "update", "NodeName=compute-0", "State=RESUME")
        slurm.release(running_job, "compute-0")


def test_replicas_are_told_apart_and_sums_are_right(prometheus: Prometheus, slurm: SlurmInKubernetes) -> None:
    where = f'namespace="{slurm.namespace}",name="compute",state="desired"'
    for expression in ("sum(slurm_operator_leader)", f"sum(slurm_operator_nodeset_pods{{{where}}})"):
        wait_for(f"{expression} is 1", partial(is_one, prometheus, expression), PATIENCE)


def is_one(prometheus: Prometheus, expression: str) -> bool:
    return [sample["value"][1] for sample in prometheus.query(expression)] == ["1"]


def test_a_slurm_that_does_not_answer_is_an_alert_and_one_that_does_is_none(
    prometheus: Prometheus, slurm: SlurmInKubernetes
) -> None:
    def unreachable() -> set[str]:
        found = prometheus.alerts().get("SlurmUnreachable", ())
        return {one["labels"]["cluster"] for one in found if one["labels"]["namespace"] == slurm.namespace}

    wait_for("the alert", lambda: unreachable() == {"nowhere"}, PATIENCE)
    health = {rule["name"]: rule["health"] for group in prometheus.ask("rules")["groups"] for rule in group["rules"]}
    assert set(health.values()) == {"ok"}, health
