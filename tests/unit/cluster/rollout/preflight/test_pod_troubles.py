"""Which slurmds cannot be tried: containers of others in the same pod are none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from slinky_operator.cluster.rollout.preflight import pod_troubles
from slinky_operator.cluster.trials.preflight_pod import SlurmdKind

NOW = datetime(2026, 11, 24, tzinfo=UTC)


def test_a_container_that_a_webhook_has_put_into_the_pod_is_no_slurmd() -> None:
    began = (NOW - timedelta(minutes=1)).isoformat()
    statuses = [
        {"name": "slurmctld", "state": {"running": {"startedAt": began}}},
        {"name": "istio-proxy", "state": {"waiting": {"reason": "PodInitializing"}}},
        {"name": "slurmd-0", "state": {"waiting": {"reason": "ContainerCreating"}}},
    ]
    pod = {"metadata": {"name": "a"}, "status": {"containerStatuses": statuses}}
    (why,) = pod_troubles.own(pod, [SlurmdKind("image")], NOW).values()
    assert "image image: its container has not been started in 20 s" in why
