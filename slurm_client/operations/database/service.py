"""Calls about slurmdbd itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_client.connection.answers import ListOf
from slurm_client.decode.database import service as decode
from slurm_client.operations.base import missing
from slurm_client.operations.database.base import DatabaseOperations

if TYPE_CHECKING:
    from slurm_client.models import DatabaseDiag, DatabasePing

__all__ = ["DatabaseServiceOperations"]


class DatabaseServiceOperations(DatabaseOperations):
    """Ping and statistics."""

    async def ping(self, *, timeout: float | None = None) -> tuple[DatabasePing, ...]:
        """
        Ask slurmrestd which slurmdbds answer (v0.0.42 and newer).

        If none of them does, this raises DatabaseDown as every call does.
        """
        found = await self._list("db_get_ping", ListOf("pings", decode.ping), timeout=timeout)
        return found.items if found is not None else ()

    async def diag(self, *, timeout: float | None = None) -> DatabaseDiag:
        """Return slurmdbd's counters."""
        answer = await self._session.call("db_get_diag", wanted=ListOf("statistics", decode.diag), timeout=timeout)
        if not answer.items:
            raise missing("statistics", answer, "db_get_diag")
        found: DatabaseDiag = answer.items[0]
        return found
