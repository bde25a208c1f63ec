"""`status`: what is not as wanted comes first, what is as wanted takes a line, and nothing floods the screen."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kubectl_slurm.facts.objects import Condition, KeyFacts, TokenFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.jobs import queue
from kubectl_slurm.rules.nodes import service
from kubectl_slurm.rules.status import ACTIVITY, WANTED_FALSE, Overview, ends_soon, screen, unwanted
from slinky_api.conditions import ClusterCondition, NodeSetCondition
from tests.unit.kubectl_slurm.samples import CLUSTER, NODESETS, NOW, OVERVIEW, PICTURE, before, job, node
from tests.unit.kubectl_slurm.screens import text

WANTED_TRUE = frozenset(
    {
        *("AccountingReady", "AccountsApplied", "ApiReachable", "Autoscaling", "Available", "ConfigApplied"),
        *("ControllerUp", "DirectoryReachable", "ExporterReady", "KubeletApiReachable", "HealthChecksRun"),
        *("NodesWatched", "MaintenanceReserved"),
        *("BridgeReady", "Ready", "SlurmReachable", "TokenValid", "VirtualNodesReady", "VolumesHaveRoom"),
    }
)
"""Types of conditions that are as wanted when they are True."""

QUIET = Overview(
    now=NOW, cluster=replace(CLUSTER, conditions=(Condition("Ready", "True"),)), slurm=SlurmPicture(now=NOW)
)


def test_a_cluster_with_nothing_wrong_takes_a_line_for_each_section() -> None:
    shown = text(screen(QUIET))
    assert "every condition is as wanted" in shown
    assert len(shown.splitlines()) == 10
    assert "CONDITION" not in shown


def test_what_is_wrong_is_before_what_is_going_on() -> None:
    assert [one.type for one in unwanted(CLUSTER.conditions)] == ["NodesOutOfService", "Progressing"]


def test_each_type_of_the_operators_is_wanted_true_or_false() -> None:
    known = {str(one) for one in (*ClusterCondition, *NodeSetCondition)}
    assert known == WANTED_FALSE | WANTED_TRUE
    assert WANTED_FALSE.isdisjoint(WANTED_TRUE)
    assert known >= ACTIVITY


def test_a_cluster_that_nobody_has_looked_at_says_so() -> None:
    shown = text(screen(replace(QUIET, cluster=replace(CLUSTER, conditions=(), ready=False))))
    assert "look whether the operator runs" in shown


def test_without_slurm_the_operators_last_report_is_shown_with_the_reason() -> None:
    shown = text(screen(replace(OVERVIEW, slurm=None, silence="Slurm was not asked: no token")))
    assert "Queue: 3 jobs running, 9 pending, by the operator's last count" in shown
    assert "1 node down, 2 nodes drained by others" in shown
    assert "Slurm was not asked: no token" in shown


def test_nodes_that_were_drained_together_are_one_row() -> None:
    shown = text((service.section(PICTURE, NOW, None),))
    assert "cpu-[2-3]" in shown
    assert "Nodes out of service: 4 of 7 nodes" in shown


@pytest.mark.parametrize("state", ["IDLE", "MIXED", "IDLE+POWERED_DOWN", "IDLE+RESERVED", "ALLOCATED", "FUTURE"])
def test_nodes_that_work_sleep_or_are_reserved_are_not_out_of_service(state: str) -> None:
    assert not service.is_out(node("n", state))


@pytest.mark.parametrize("state", ["DOWN", "IDLE+DRAIN", "MIXED+NOT_RESPONDING", "IDLE+INVALID_REG", "ERROR"])
def test_nodes_that_take_no_jobs_are_out_of_service(state: str) -> None:
    assert service.is_out(node("n", state))


def test_tasks_of_an_array_count_one_each() -> None:
    jobs = (job(1, state_reason="Resources", array_tasks="0-9%2"), job(2, state_reason="Resources,more"))
    shown = text((queue.section(SlurmPicture(now=NOW, jobs=jobs), CLUSTER),))
    assert "11 pending" in shown
    assert "Resources    11" in shown


def test_thousands_of_nodes_jobs_and_nodesets_do_not_flood_the_screen() -> None:
    nodes = tuple(node(f"n-{index}", "DOWN", reason=f"reason {index} " + "x" * 5000) for index in range(5000))
    jobs = tuple(job(index, state_reason=f"Reason{index}" + "y" * 5000) for index in range(1, 10_001))
    sets = tuple(replace(NODESETS[1], name=f"set-{index}", summary="z" * 5000) for index in range(500))
    tokens = tuple(TokenFacts(name=f"t{index}", cluster="slurm", expires=NOW, refresh=False) for index in range(250))
    seen = replace(OVERVIEW, nodesets=sets, tokens=tokens, slurm=SlurmPicture(now=NOW, nodes=nodes, jobs=jobs))
    lines = text(screen(seen)).splitlines()
    assert len(lines) < 90
    assert max(map(len, lines)) < 400
    assert any("more groups of nodes: -o json shows all" in line for line in lines)


def ends(token: TokenFacts) -> str:
    return text((ends_soon((token,), (), NOW),))


def test_a_token_that_is_renewed_in_time_is_not_shown() -> None:
    token = TokenFacts(name="t", cluster="c", issued=before(minutes=5), expires=NOW + timedelta(minutes=10))
    assert "none ends soon" in ends(token)
    late = replace(token, issued=before(minutes=50))
    assert "should have been renewed: look whether the operator runs" in ends(late)
    assert "ended; the operator does not renew it" in ends(replace(token, expires=before(minutes=1)))


def test_a_token_that_is_not_renewed_is_shown_a_day_before_its_end() -> None:
    token = TokenFacts(name="t", cluster="c", refresh=False, expires=NOW + timedelta(hours=23))
    assert "make another Token" in ends(token)
    assert "none ends soon" in ends(replace(token, expires=NOW + timedelta(hours=25)))
    assert "none ends soon" in ends(replace(token, temporary=True))


def test_a_key_is_shown_two_weeks_before_its_end() -> None:
    keys = (KeyFacts("near", NOW + timedelta(days=13)), KeyFacts("far", NOW + timedelta(days=15)))
    shown = text((ends_soon((), keys, NOW),))
    assert "near" in shown
    assert "far" not in shown
