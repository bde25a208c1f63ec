"""What slurmds prove about the jobs of all draining nodes is looked up once, and told by node."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from slinky_api.conditions import Reason
from slinky_operator.nodeset.drain import slurmd_questions
from slinky_operator.nodeset.model.pod_state import Draining, State
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import forgotten
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slurm_client.models import Job
from tests.unit.nodeset.builders import NOW, a_pod, job, nodeset

NODES = 50


def test_pods_are_gone_through_once_however_many_nodes_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = tuple(a_pod(name=f"a-{number}", uid=f"u{number}", ordinal=number) for number in range(NODES))
    jobs = [job("RUNNING", number, nodes=(f"a-{number}",)) for number in range(NODES)]
    states: dict[str, State] = {
        pod.name: Draining(frozenset({Cause.SCALE_IN}), NOW, (one,)) for pod, one in zip(pods, jobs, strict=True)
    }
    asked = []

    def gone(_: Snapshot, of: Iterable[Job], now: datetime) -> dict[int, datetime]:
        asked.append(len(list(of)))
        return {3: now - timedelta(minutes=5), 7: now - timedelta(minutes=5)}

    monkeypatch.setattr(slurmd_questions, "gone", gone)
    seen = Snapshot(nodeset(), ClusterFacts("c"), SlurmFacts(readable=True), Revision("r"), pods)
    ((reason, text, _, nodes),) = forgotten.jobs(seen, Decisions(Layout(0), states=states), NOW)
    assert asked == [NODES]
    assert reason is Reason.JOB_END_FORGOTTEN
    assert nodes == {"a-3", "a-7"}
    assert "on a-7: job 7 (slurmd has no step of it" in text
