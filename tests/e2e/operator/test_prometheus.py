"""A real Prometheus reads the operator: documented queries, alerts, and what becomes of them in trouble."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import yaml

from hack.dashboards import of_slurm, of_the_operator
from hack.dashboards.answers import Answers
from hack.dashboards.pictures import draw
from hack.localkube.kubectl import wait_for
from hack.operator_install import NAMESPACE, Installation
from tests.support.prometheus import ALERTS, Prometheus, promtool, rendered, rules, running
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = pytest.mark.timeout(600)

DOCS = Path(__file__).parents[3] / "docs"
OPERATOR = "slurm_operator_"
GPUS = {"configFiles": {"gres.conf": "Name=gpu File=/dev/zero\nName=gpu File=/dev/full\n"}}
WITHOUT_ACCOUNTING = {"CPUs by account", "Pending by account", "Jobs by QOS", "Factor", "Usage against share"}
"""Panels that have no data for a Cluster without slurmdbd."""
NOWHERE = "http://nowhere.example:6820"


@dataclass(frozen=True)
class Case:
    """Series under which an alert fires at the end of an hour, and those under which it does not."""

    alert: str
    fires: Mapping[str, str]
    rests: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    value: float = 1.0


ONE = {"namespace": "hpc", "name": "gpu"}
SITE = '{namespace="hpc",slurm_cluster="gpu"}'
OF_SITE = {"namespace": "hpc", "slurm_cluster": "gpu"}
NODES = {
    'slurm_cluster_nodes{namespace="hpc",slurm_cluster="gpu",state="idle"}': "7x60",
    'slurm_cluster_nodes{namespace="hpc",slurm_cluster="gpu",state="down"}': "3x60",
}
CONDITION = 'condition{{pod="{pod}",kind="{kind}",namespace="hpc",name="gpu",condition="{condition}"}}'


def condition(kind: str, name: str) -> str:
    return CONDITION.format(pod="a", kind=kind, condition=name)


CASES = (
    Case(
        "SlurmOperatorDoesNotLead", {'leader{pod="a"}': "0x60"}, {'leader{pod="a"}': "0x60", 'leader{pod="b"}': "1x60"}
    ),
    Case(
        "SlurmOperatorFails",
        {'reconcile_total{pod="a",controller="nodeset",outcome="error"}': "0+1x60"},
        {'reconcile_total{pod="a",controller="nodeset",outcome="error"}': "7x60"},
        {"controller": "nodeset"},
        15,
    ),
    Case(
        "SlurmOperatorIsBehind",
        {'queue_depth{pod="a",controller="nodeset"}': "12x60"},
        {'queue_depth{pod="a",controller="nodeset"}': "12x50 0x10"},
        {"controller": "nodeset"},
        12,
    ),
    Case(
        "SlurmOperatorIsDeaf",
        {'watch_silence_seconds{pod="a",resource="pods"}': "0+60x60"},
        {'watch_silence_seconds{pod="a",resource="pods"}': "60x60"},
        {"resource": "pods"},
        3600,
    ),
    Case(
        "SlurmOperatorLoopIsBlocked",
        {
            'event_loop_lag_seconds_bucket{pod="a",le="0.5"}': "0x60",
            'event_loop_lag_seconds_bucket{pod="a",le="1"}': "0+10x60",
            'event_loop_lag_seconds_bucket{pod="a",le="+Inf"}': "0+10x60",
        },
        {
            'event_loop_lag_seconds_bucket{pod="a",le="0.5"}': "0+10x60",
            'event_loop_lag_seconds_bucket{pod="a",le="1"}': "0+10x60",
            'event_loop_lag_seconds_bucket{pod="a",le="+Inf"}': "0+10x60",
        },
        value=0.995,
    ),
    Case(
        "SlurmUnreachable",
        {'slurm_connected{pod="a",namespace="hpc",cluster="gpu",trouble="NoAnswer"}': "0x60"},
        {'slurm_connected{pod="a",namespace="hpc",cluster="gpu",trouble=""}': "1x60"},
        {"namespace": "hpc", "cluster": "gpu", "trouble": "NoAnswer"},
        0,
    ),
    Case(
        "SlurmClusterDegraded",
        {condition("Cluster", "Degraded"): "1x60"},
        {condition("Cluster", "Degraded"): "-1x60", condition("NodeSet", "Ready"): "1x60"},
        ONE,
    ),
    Case(
        "SlurmConfigNotApplied",
        {condition("Cluster", "ConfigApplied"): "0x60"},
        {condition("Cluster", "ConfigApplied"): "1x60"},
        ONE,
        0,
    ),
    Case(
        "SlurmTokenExpired",
        {'token_expiry_timestamp_seconds{pod="a",namespace="hpc",name="gpu"}': "600x60"},
        {'token_expiry_timestamp_seconds{pod="a",namespace="hpc",name="gpu"}': "9000x60"},
        ONE,
        -3000,
    ),
    Case(
        "SlurmNodeSetIsShort",
        {
            'nodeset_pods{pod="a",namespace="hpc",name="gpu",cluster="slurm",state="desired"}': "5x60",
            'nodeset_pods{pod="a",namespace="hpc",name="gpu",cluster="slurm",state="available"}': "2x60",
        },
        {
            'nodeset_pods{pod="a",namespace="hpc",name="gpu",cluster="slurm",state="desired"}': "5x60",
            'nodeset_pods{pod="a",namespace="hpc",name="gpu",cluster="slurm",state="available"}': "2x20 5x40",
        },
        ONE,
        3,
    ),
    Case(
        "SlurmNodeSetDegraded",
        {condition("NodeSet", "Degraded"): "1x60"},
        {condition("NodeSet", "Degraded"): "0x60"},
        ONE,
    ),
    Case(
        "SlurmNodesDown",
        {'nodeset_nodes{pod="a",namespace="hpc",name="gpu",cluster="slurm",state="down"}': "2x60"},
        {'nodeset_nodes{pod="a",namespace="hpc",name="gpu",cluster="slurm",state="drained"}': "2x60"},
        ONE,
        2,
    ),
    Case(
        "SlurmVolumeNearlyFull",
        {'volume_free_ratio{pod="a",namespace="n",cluster="c",volume="slurmctld",of="bytes"}': "0.5x50 0.05x10"},
        {
            'volume_free_ratio{pod="a",namespace="n",cluster="c",volume="slurmctld",of="bytes"}': "0.5x60",
            'volume_free_ratio{pod="a",namespace="n",cluster="c",volume="MariaDB",of="inodes"}': "0.5x59 0.05x1",
        },
        {"namespace": "n", "cluster": "c", "volume": "slurmctld"},
        0.05,
    ),
    Case(
        "SlurmJobOutputNearlyFull",
        {'volume_free_ratio{pod="a",namespace="n",cluster="c",volume="job-output of a",of="bytes"}': "0.5x50 0.05x10"},
        {
            'volume_free_ratio{pod="a",namespace="n",cluster="c",volume="job-output of a",of="bytes"}': "0.5x60",
            'volume_free_ratio{pod="a",namespace="n",cluster="c",volume="slurmctld",of="bytes"}': "0.05x60",
        },
        {"namespace": "n", "cluster": "c", "volume": "job-output of a"},
        0.05,
    ),
    Case(
        "SlurmControllerHung",
        {condition("Cluster", "ControllerHung"): "1x60"},
        {condition("Cluster", "ControllerHung"): "0x60"},
        ONE,
    ),
    Case(
        "SlurmDrainTimedOut",
        {'drains_timed_out_total{pod="a"}': "0x30 3x30"},
        {'drains_timed_out_total{pod="a"}': "3x60"},
        {"pod": "a"},
        3,
    ),
    Case(
        "SlurmJobsNotSubmitted",
        {'slurmjobs_waiting{pod="a",reason="KeyPending"}': "0x10 2x50"},
        {
            'slurmjobs_waiting{pod="a",reason="KeyPending"}': "0x50 2x10",
            'slurmjobs_waiting{reason="Suspended"}': "2x60",
        },
        {"reason": "KeyPending"},
        2,
    ),
    Case(
        "SlurmJobsRefused",
        {
            'slurmjob_submissions_total{pod="a",outcome="refused"}': "0+1x60",
            'slurmjob_submissions_total{pod="a",outcome="accepted"}': "7x60",
        },
        {
            'slurmjob_submissions_total{pod="a",outcome="refused"}': "0+1x60",
            'slurmjob_submissions_total{pod="a",outcome="accepted"}': "0x55 1x5",
        },
        value=15,
    ),
    Case(
        "SlurmJobsSubmittedSlowly",
        {
            'slurmjob_submit_duration_seconds_bucket{pod="a",le="60"}': "0x60",
            'slurmjob_submit_duration_seconds_bucket{pod="a",le="300"}': "0+10x60",
            'slurmjob_submit_duration_seconds_bucket{pod="a",le="+Inf"}': "0+10x60",
        },
        {
            'slurmjob_submit_duration_seconds_bucket{pod="a",le="60"}': "0+10x60",
            'slurmjob_submit_duration_seconds_bucket{pod="a",le="300"}': "0+10x60",
            'slurmjob_submit_duration_seconds_bucket{pod="a",le="+Inf"}': "0+10x60",
        },
        value=276,
    ),
    Case(
        "SlurmJobLeftBehind",
        {'slurmjobs_left_behind_total{pod="a"}': "0x30 2x30"},
        {'slurmjobs_left_behind_total{pod="a"}': "2x60"},
        value=2,
    ),
    Case(
        "SlurmJobOutcomeUnknown",
        {'slurmjob_submissions_unknown_total{pod="a"}': "0x30 2x30"},
        {'slurmjob_submissions_unknown_total{pod="a"}': "2x60"},
        value=2,
    ),
    Case(
        "SlurmExporterBlind",
        {f"slurm_exporter_up{SITE}": "1x40 0x20"},
        {f"slurm_exporter_up{SITE}": "1x55 0x5"},
        OF_SITE,
        0,
    ),
    Case(
        "SlurmdbdFallsBehind",
        {f"slurm_cluster_slurmdbd_queue_length{SITE}": "0+200x60"},
        {f"slurm_cluster_slurmdbd_queue_length{SITE}": "0+80x60"},
        OF_SITE,
        12_000,
    ),
    Case(
        "SlurmNodesOutOfService",
        {f"slurm_cluster_nodes_usable{SITE}": "8x60", **NODES},
        {f"slurm_cluster_nodes_usable{SITE}": "9x60", **NODES},
        OF_SITE,
    ),
)


def full(name: str) -> str:
    """The name of a series; without a prefix it is the operator's."""
    return name if name.startswith(("slurm_exporter_", "slurm_cluster_")) else OPERATOR + name


def test_every_alert_fires_when_it_should_and_rests_when_it_should(tmp_path: Path) -> None:
    known = rules()
    assert {case.alert for case in CASES} == set(known)
    tests = []
    for case in CASES:
        rule = known[case.alert]
        fired = {
            "exp_labels": {**rule["labels"], **case.labels},
            "exp_annotations": {
                key: rendered(text, case.labels, case.value) for key, text in rule["annotations"].items()
            },
        }
        for series, expected in ((case.fires, [fired]), (case.rests, [])):
            tests.append(
                {
                    "interval": "1m",
                    "input_series": [{"series": full(name), "values": values} for name, values in series.items()],
                    "alert_rule_test": [{"eval_time": "60m", "alertname": case.alert, "exp_alerts": expected}],
                }
            )
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "tests": tests}))
    promtool("check", "rules", str(ALERTS))
    promtool("test", "rules", str(tmp_path / "tests.yaml"))


def test_every_alert_has_its_runbook() -> None:
    page = (DOCS / "alerts.md").read_text()
    for name, rule in rules().items():
        assert rule["annotations"]["runbook"] == f"docs/alerts.md#{name.lower()}"
        assert f"\n## {name}\n" in page, name


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
        for name in set(re.findall(rf"{OPERATOR}\w+", query)):
            wait_for(f"samples of {name}", partial(has_samples, prometheus, name), PATIENCE)


def test_every_panel_about_the_operator_is_answered(prometheus: Prometheus) -> None:
    for dashboard in of_the_operator.DASHBOARDS:
        for panel in dashboard.panels:
            for query in panel.queries:
                _ = prometheus.query(filled(query.expression))
                for name in set(re.findall(rf"{OPERATOR}\w+", query.expression)):
                    what = f"samples of {name} for {dashboard.title}, {panel.title}"
                    wait_for(what, partial(has_samples, prometheus, name), PATIENCE)


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
