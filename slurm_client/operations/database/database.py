"""All calls to slurmdbd in one object."""

from __future__ import annotations

from slurm_client.operations.database.accounts import AccountOperations
from slurm_client.operations.database.associations import AssociationOperations
from slurm_client.operations.database.changes import JobChangeOperations
from slurm_client.operations.database.clusters import ClusterOperations
from slurm_client.operations.database.qos import QosOperations
from slurm_client.operations.database.service import DatabaseServiceOperations

__all__ = ["Database"]


class Database(
    JobChangeOperations,
    AccountOperations,
    AssociationOperations,
    QosOperations,
    ClusterOperations,
    DatabaseServiceOperations,
):
    """
    slurmdbd behind a slurmrestd, as ``slurm.db``: job history, accounts, and what else accounting keeps.

    It has no connection of its own: token, retries and time limits are those of its client.
    """
