"""How SlurmJobs are now, as their status says: counted by state, and by why Slurm does not have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from slinky_api.conditions import Reason
from slinky_operator.kube.objects import Object
from slinky_operator.metrics.names import PREFIX

STATES: Final = ("Waiting", "Pending", "Running", "Suspended", "Ending", "Succeeded", "Failed", "Unknown", "DryRun")
"""Of a SlurmJob; one without a status waits."""

NEW: Final = "New"
"""Why one waits that the operator has not looked at yet."""

OTHER: Final = "Other"
"""A reason that this version does not know."""

WAITS: Final = (
    Reason.INVALID_SPEC,
    Reason.JOBS_NOT_ALLOWED,
    Reason.SUSPENDED,
    Reason.DEPENDENCY_NOT_SUBMITTED,
    Reason.DEPENDENCY_NOT_FINISHED,
    Reason.DEPENDENCY_LOOP,
    Reason.DEPENDENCY_NEVER_SATISFIED,
    Reason.VOLUME_NOT_FOUND,
    Reason.PREPARING,
    Reason.PREPARE_FAILED,
    Reason.CLUSTER_NOT_FOUND,
    Reason.CLUSTER_NOT_READY,
    Reason.CLUSTER_GONE,
    Reason.SLURM_UNREACHABLE,
    Reason.KEY_PENDING,
    Reason.SUBMISSION_REFUSED,
    Reason.SUBMITTING,
    Reason.SUBMISSION_UNKNOWN,
    Reason.SUBMITTED_AGAIN,
)
"""Reasons of a SlurmJob that Slurm does not have."""


def families(objects: Sequence[Object] | None) -> tuple[Metric, ...]:
    """Samples of all SlurmJobs; none where the kind is not served (None)."""
    states = GaugeMetricFamily(
        f"{PREFIX}_slurmjobs", "SlurmJobs by state, as their column STATE has it.", labels=["state"]
    )
    waiting = GaugeMetricFamily(
        f"{PREFIX}_slurmjobs_waiting",
        "SlurmJobs in the state Waiting, which Slurm does not have, by reason; New is one not looked at yet.",
        labels=["reason"],
    )
    if objects is not None:
        by_state = Counter(dict.fromkeys(STATES, 0))
        by_reason = Counter(dict.fromkeys((NEW, *map(str, WAITS), OTHER), 0))
        for obj in objects:
            state = _state_of(obj)
            by_state[state] += 1
            if state == STATES[0]:
                reason = _reason_of(obj)
                by_reason[reason if reason in by_reason else OTHER] += 1
        for state, count in by_state.items():
            states.add_metric([state], count)
        for reason, count in by_reason.items():
            waiting.add_metric([reason], count)
    return states, waiting


def _state_of(obj: Object) -> str:
    state = str((obj.get("status") or {}).get("state") or STATES[0])
    return state if state in STATES else "Unknown"


def _reason_of(obj: Object) -> str:
    return str((obj.get("status") or {}).get("reason") or NEW)
