"""What slurmdbd knows of a job that slurmctld does not list: how it has ended, or whether there is one at all."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.execute.memory import Memory
from slinky_operator.slurmjob.execute.slurm_access import SlurmAccess
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.snapshot import History, Snapshot
from slinky_operator.slurmjob.model.stages import late_calls
from slurm_client.errors import SlurmError

logger = logging.getLogger(__name__)

NO_HISTORY: Final = timedelta(minutes=10)
"""After which a Slurm elsewhere whose slurmdbd does not answer counts as one without."""


async def ask(access: SlurmAccess, snapshot: Snapshot, memory: Memory, now: datetime) -> Snapshot:
    """Ask slurmdbd; without an answer nothing is concluded."""
    client, begun = access.client(snapshot.cluster), snapshot.job.status.submission
    if client is None or begun is None:
        return snapshot
    status = snapshot.job.status
    listed = snapshot.looked.seen if snapshot.looked is not None else None
    wanted = slurm_calls.HistoryQuery(
        mark=Mark(snapshot.job.uid, begun.attempt),
        user=status.user or "",
        name=begun.name,
        since=begun.started_at or snapshot.now,
        settled=late_calls.settled(snapshot.cluster),
        job_id=status.job_id,
        counted=listed.array if listed is not None else status.array,
        tasks=listed.tasks if listed is not None else status.tasks,
        namespace=snapshot.job.namespace,
    )
    try:
        found = await slurm_calls.history(client, wanted, now)
    except SlurmError as error:
        logger.info("%s/%s: slurmdbd was not asked: %s", snapshot.job.namespace, snapshot.job.name, error)
        since = memory.history_away_since = memory.history_away_since or snapshot.now
        # It has time to hear of an end from when on it answers.
        memory.missing_since = None
        if snapshot.cluster is not None and snapshot.cluster.spec.external and snapshot.now - since > NO_HISTORY:
            # Whether that Slurm has a slurmdbd is not known.
            return replace(snapshot, keeps_history=False, history=History())
        return snapshot
    memory.history_away_since = None
    return replace(snapshot, history=found)
