"""Whether slurmctld waited for itself and was ended, by the last exit of its container. Pure.

Its first process ends the container then, with an exit code of its own (`slurm.pod_templates.controller_process`). The
kubelet keeps the last exit only, so what is reported is the last time, for an hour.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

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
