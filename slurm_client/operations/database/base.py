"""What calls to slurmdbd have in common: the session of the client that they are reached from, and how lists come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.models.listing import Listing
from slurm_client.operations.base import Operations, missing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurm_client.connection.answers import ListOf
    from slurm_client.connection.session import Session

__all__ = ["DatabaseOperations"]


class DatabaseOperations(Operations):
    """
    Base of all classes of calls to slurmdbd.

    Where slurmrestd answers and slurmdbd does not, each of them raises :class:`~slurm_client.errors.DatabaseDown`.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    async def _records(
        self,
        operation: str,
        wanted: ListOf,
        *,
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Listing[Any]:
        """
        Ask for a list.

        Where there is nothing, slurmrestd gives an empty list, or none and a warning that it found nothing.
        """
        answer = await self._session.call(operation, wanted=wanted, path=path, query=query, timeout=timeout)
        if answer.items is None and not any("found nothing" in each.description for each in answer.warnings):
            raise missing(wanted.key, answer, operation)
        return Listing(tuple(answer.items or ()), answer.last_update, answer.warnings)
