"""Alerts of the chart: promtool reads each, and each fires when it should and rests when it should."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.support.prometheus import ALERTS, EARLIER, promtool, rendered, rules

OPERATOR = "slurm_operator_"


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
        "SlurmOperatorWatchSilent",
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
        "SlurmBridgeNotReady",
        {condition("Cluster", "BridgeReady"): "0x60"},
        {condition("Cluster", "BridgeReady"): "-1x60"},
        ONE,
        0,
    ),
    Case(
        "SlurmVirtualNodesNotReady",
        {condition("Cluster", "VirtualNodesReady"): "0x60"},
        {condition("Cluster", "VirtualNodesReady"): "-1x60"},
        ONE,
        0,
    ),
    Case(
        "SlurmVirtualNodeLeasesLate",
        {
            'virtual_nodes_leases_renewed_timestamp_seconds{pod="a"}': "0+60x50 3000x10",
            'virtual_nodes_leases_renewed_timestamp_seconds{pod="b"}': "0x60",
        },
        {'virtual_nodes_leases_renewed_timestamp_seconds{pod="a"}': "0+60x60"},
        value=600,
    ),
    Case(
        "SlurmVirtualNodeCertificateEnds",
        {'virtual_nodes_certificate_end_timestamp_seconds{pod="a"}': "7200x60"},
        {'virtual_nodes_certificate_end_timestamp_seconds{pod="a"}': "0x60"},
        value=3600,
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
        "SlurmHealthBudgetReached",
        {condition("NodeSet", "HealthBudgetReached"): "1x60"},
        {condition("NodeSet", "HealthBudgetReached"): "1x57 0x3"},
        ONE,
    ),
    Case(
        "SlurmReplacementFailed",
        {condition("NodeSet", "ReplacementFailed"): "1x60"},
        {condition("NodeSet", "ReplacementFailed"): "1x57 0x3"},
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
        "SlurmExporterStale",
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


@pytest.mark.timeout(900)
def test_every_alert_fires_when_it_should_and_rests_when_it_should(tmp_path: Path) -> None:
    known = rules()
    assert {case.alert for case in CASES} == set(known) - set(EARLIER)
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
    (tmp_path / "tests.yaml").write_text(
        yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "5m", "tests": tests})
    )
    promtool("check", "rules", str(ALERTS))
    promtool("test", "rules", str(tmp_path / "tests.yaml"))
