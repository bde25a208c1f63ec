"""Calls about slurmdbd itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.connection.answers import ListOf
from slurm_client.decode.database import service as decode
from slurm_client.decode.read import mapping
from slurm_client.operations.base import missing
from slurm_client.operations.database.base import DatabaseOperations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurm_client.models import DatabaseDiag, DatabasePing

__all__ = ["DatabaseServiceOperations"]


class DatabaseServiceOperations(DatabaseOperations):
    """Ping, statistics and configuration."""

    async def ping(self, *, timeout: float | None = None) -> tuple[DatabasePing, ...]:
        """
        Ask slurmrestd which slurmdbds answer (v0.0.42 and newer).

        If none of them does, this raises DatabaseDown as every call does.
        """
        found = await self._records("db_get_ping", ListOf("pings", decode.ping), timeout=timeout)
        return found.items

    async def diag(self, *, timeout: float | None = None) -> DatabaseDiag:
        """Return slurmdbd's counters."""
        answer = await self._session.call("db_get_diag", wanted=ListOf("statistics", decode.diag), timeout=timeout)
        if not answer.items:
            raise missing("statistics", answer, "db_get_diag")
        found: DatabaseDiag = answer.items[0]
        return found

    async def conf(self, *, timeout: float | None = None) -> Mapping[str, Any]:
        """Return slurmdbd.conf as slurmdbd has loaded it, as it is written (v0.0.45 and newer)."""
        answer = await self._session.call("db_get_conf", timeout=timeout)
        if not isinstance(answer.fields.get("slurmdbd_conf"), dict):
            raise missing("slurmdbd_conf", answer, "db_get_conf")
        return mapping(answer.fields["slurmdbd_conf"])

    async def config(self, *, timeout: float | None = None) -> Mapping[str, Any]:
        """
        Return all that slurmdbd keeps but jobs, as it is written: one list each.

        Their keys are ``clusters``, ``accounts``, ``users``, ``associations``, ``qos``, ``wckeys``, ``tres`` and, up to
        v0.0.44, ``instances``.
        """
        answer = await self._session.call("db_get_config", timeout=timeout)
        if not isinstance(answer.fields.get("associations"), list):
            raise missing("associations", answer, "db_get_config")
        return {
            key: value
            for key, value in answer.fields.items()
            if isinstance(value, list) and key not in {"errors", "warnings"}
        }
