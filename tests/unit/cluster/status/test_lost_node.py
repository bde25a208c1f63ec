"""A daemon on a Node that does not answer is not said to be starting."""

from __future__ import annotations

from typing import Any

from slinky_operator.cluster.parts.accounting.condition import lost_node

SINCE = "2026-11-24T03:14:50Z"


def pod(*, ready: str, containers: list[bool]) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": SINCE}]
    statuses = [{"name": f"c{number}", "ready": one} for number, one in enumerate(containers)]
    return {
        "metadata": {"name": "slurm-database-0"},
        "spec": {"nodeName": "node-2"},
        "status": {"conditions": conditions, "containerStatuses": statuses},
    }


def test_the_node_is_named_with_the_time_since_when() -> None:
    said = lost_node(pod(ready="False", containers=[True]))
    assert said.startswith(f"Node node-2 of pod slurm-database-0 does not answer, NotReady since {SINCE}.")


def test_a_daemon_that_starts_or_runs_is_on_no_lost_node() -> None:
    for ready, containers in (("False", [False]), ("True", [True]), ("False", []), ("False", [True, False])):
        assert lost_node(pod(ready=ready, containers=containers)) == ""
    assert lost_node({"metadata": {"name": "a"}}) == ""
