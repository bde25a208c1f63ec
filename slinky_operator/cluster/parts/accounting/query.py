"""The query whether slurmdbd answers, and which slurmctld it knows: one small call through slurmrestd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from slinky_operator.cluster.memory import AccountingAnswer
from slinky_operator.reconcile.text import cut
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import errors

TIMEOUT: Final = 15.0
"""Seconds for the call."""

LONGEST: Final = 400
"""Maximum characters of an error that are kept."""


async def ask_accounting(
    client: ClusterClient | None, name: str, clock: Callable[[], float], before: AccountingAnswer | None = None
) -> AccountingAnswer | None:
    """Ask slurmdbd for its record of a cluster; `None` if slurmrestd cannot be asked, or lacks the calls so far.

    Parameters
    ----------
    name
        `ClusterName`.
    before
        The last answer.
    """
    if client is None:
        return None
    try:
        record = await client.client.db.cluster(name, timeout=TIMEOUT)
    except errors.NotSupported:
        # Its pod is about to be replaced by one with the calls of slurmdbd.
        return None
    except errors.NotFound:
        return AccountingAnswer(clock())
    except errors.SlurmError as error:
        return AccountingAnswer(clock(), why=cut(f"slurmdbd: {str(error) or type(error).__name__}", LONGEST))
    address = cut(record.controller_host, LONGEST)
    return AccountingAnswer(clock(), address, again=before is not None and before.controller == address)
