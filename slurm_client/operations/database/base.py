"""What calls to slurmdbd have in common: the session of the client that they are reached from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_client.operations.base import Operations

if TYPE_CHECKING:
    from slurm_client.connection.session import Session

__all__ = ["DatabaseOperations"]


class DatabaseOperations(Operations):
    """
    Base of all classes of calls to slurmdbd.

    Where slurmrestd answers and slurmdbd does not, each of them raises :class:`~slurm_client.errors.DatabaseDown`.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
