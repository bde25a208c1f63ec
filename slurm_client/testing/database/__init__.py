"""
The database side of the fake: what slurmdbd keeps, behind the paths that begin with ``/slurmdb``.

Accounts, users, associations and QOS are arranged and asked for through :class:`Database`; the history is that of the
jobs in the fake's world, also of those slurmctld has forgotten.
"""

from slurm_client.testing.database.store import Database

__all__ = ["Database"]
