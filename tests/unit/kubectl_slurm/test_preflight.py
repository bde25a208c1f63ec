"""`preflight`: what a change does to nodes and jobs follows from the objects before and after it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules import preflight
from tests.unit.kubectl_slurm.samples import NOW, job, node
from tests.unit.kubectl_slurm.screens import text

PODS = ("w-0", "w-1", "w-2")
SEEN = SlurmPicture(
    now=NOW,
    nodes=(node("w-0"), node("w-1", "MIXED"), node("w-2", "MIXED")),
    jobs=(
        job(1, "RUNNING", nodes=("w-1",), end_time=NOW + timedelta(minutes=5)),
        job(2, "RUNNING", nodes=("w-2",), end_time=NOW + timedelta(hours=5)),
        job(3, "RUNNING", nodes=("elsewhere",)),
        job(4, partition="old,all"),
    ),
)
OLD: dict[str, Any] = {"replicas": 3, "image": "a", "drain": {"timeout": "1h", "onTimeout": "Cancel"}}


def nodeset(**changes: Any) -> list[preflight.Finding]:
    return preflight.nodeset(OLD, {**OLD, **changes}, SEEN, PODS)


def test_idle_nodes_go_first_and_end_no_job() -> None:
    (found,) = nodeset(replicas=2)
    assert "Of 3 nodes, 1 will be drained and removed, idle ones first (1 idle now)" in found.text
    assert found.ends == ()


def test_jobs_that_run_longer_than_the_drain_waits_are_named() -> None:
    (found,) = nodeset(replicas=1)
    assert found.ends == ("2",)
    assert "1 job may be cancelled after drain.timeout (1h): 2." in found.text
    (found,) = nodeset(image="b")
    assert "image changes: all 3 pods are drained and replaced, 1 at a time" in found.text
    assert found.ends == ("2",)


@pytest.mark.parametrize("drain", [None, {}, {"timeout": "1m"}, {"timeout": "1m", "onTimeout": "Wait"}])
def test_without_an_end_of_its_patience_a_drain_ends_no_job(drain: Any) -> None:
    (found,) = nodeset(image="b", drain=drain)
    assert found.ends == ()
    assert "2 jobs on its nodes go on to their end first" in found.text


def test_other_changes_of_a_nodeset() -> None:
    assert nodeset() == []
    assert "Nodes that are added: 1." in nodeset(replicas=4)[0].text
    assert "until somebody deletes it" in nodeset(image="b", updateStrategy={"type": "OnDelete"})[0].text
    assert "stays until its jobs have ended" in nodeset(partition={"enabled": False})[0].text
    assert "It is new, with 3 nodes" in preflight.nodeset(None, OLD, SEEN, ())[0].text


def test_changes_of_a_cluster() -> None:
    old = {"partitions": [{"name": "old"}, {"name": "all"}], "controller": {"image": "a"}}
    new = {"partitions": [{"name": "all"}], "controller": {"image": "b"}, "extraConf": "X=1"}
    texts = " ".join(one.text for one in preflight.cluster(old, new, SEEN))
    assert "Partition old goes: it takes no new jobs, and stays until its last job has ended (1 now)" in texts
    assert "extraConf" in texts
    assert "the pod of slurmctld may be replaced" in texts
    assert preflight.cluster(old, old, SEEN) == []
    assert "new" in preflight.cluster(None, new, SEEN)[0].text


def test_what_is_refused_is_shown_with_the_reason() -> None:
    assert "spec.replicas: Invalid value" in text((preflight.section("NodeSet w", "spec.replicas: Invalid value", ()),))
    assert "changes no node and no job" in text((preflight.section("NodeSet w", "", ()),))


@pytest.mark.parametrize(
    ("given", "seconds"), [("90s", 90), ("1h30m", 5400), ("0s", 0), ("", None), ("x", None), (5, None)]
)
def test_lengths_of_time_are_those_of_kubernetes(given: object, seconds: int | None) -> None:
    found = preflight.duration(given)
    assert (found.total_seconds() if found is not None else None) == seconds
