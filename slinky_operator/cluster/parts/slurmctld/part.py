"""What a Cluster shows of slurmctld: the pod that will replace its own, and whether it waited for itself. Pure.

When it waits for itself, its first process ends the container with an exit code of its own
(`slurm.pod_templates.controller_process`). The kubelet keeps the last exit only, so what is reported is the last time,
for an hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason
from slinky_operator.cluster.part import Part, Problem, Shown
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.rollout.preflight.replacement import Replacement, Stage
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import moment, stamp
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates.controller_process import HUNG

REPORTED: Final = timedelta(hours=1)
"""How long it is reported after slurmctld was ended."""


def words(pod: Object | None, wall: datetime) -> str:
    """When slurmctld was ended because it waited for itself, and what to do; empty if it was not of late."""
    for status in ((pod or {}).get("status") or {}).get("containerStatuses") or ():
        if status.get("name") != naming.CONTROLLER_CONTAINER:
            continue
        for state in ("state", "lastState"):
            ended = (status.get(state) or {}).get("terminated") or {}
            when = moment(ended.get("finishedAt"))
            if ended.get("exitCode") == HUNG and when is not None and wall - when < REPORTED:
                return _words(when)
    return ""


def _words(when: datetime) -> str:
    return (
        f"slurmctld waited for itself and answered nobody; its container was ended at {stamp(when)} and is started "
        "again by the kubelet. Running jobs go on; what was submitted in the seconds before may have to be submitted "
        "again. A user has ended or signalled a job of somebody else, through slurmrestd or with scancel --ctld: Slurm "
        "does not survive that without accounting. Its time in slurmrestd's log (slurm_kill_jobs) has the client's "
        "address. With spec.accounting such calls are refused"
    )


class SlurmctldPart(Part):
    """slurmctld."""

    name = "slurmctld"
    condition = ClusterCondition.CONTROLLER_HUNG

    @override
    def shown(self, state: PassState) -> Shown | None:
        if state.snapshot.cluster.spec.external:
            return None
        found = words(state.snapshot.pods.controller, state.wall)
        return ("True", Reason.WAITED_FOR_ITSELF, found) if found else None

    @override
    def problems(self, state: PassState) -> Iterator[Problem]:
        swap = state.found(Replacement)
        if swap.stage is Stage.HELD:
            yield Problem(Reason.REPLACEMENT_HELD_BACK, swap.message, in_summary=True)

    @override
    def ongoing(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        swap = state.found(Replacement)
        if swap.stage is Stage.TRYING and swap.message:
            yield Reason.DAEMONS_STARTING, swap.message


SLURMCTLD_PART: Final = SlurmctldPart()
