"""Calls about slurmctld itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_client.answers import ListOf
from slurm_client.decode import service
from slurm_client.operations.base import Operations, missing

if TYPE_CHECKING:
    from slurm_client.models import Diag, Ping

__all__ = ["ServiceOperations"]


class ServiceOperations(Operations):
    """Ping, statistics, configuration."""

    async def ping(self, *, timeout: float | None = None) -> tuple[Ping, ...]:
        """
        Ask slurmrestd whether the slurmctlds answer.

        A good answer does not mean that any of them does: look at ``responding``.
        """
        found = await self._list("get_ping", ListOf("pings", service.ping), timeout=timeout)
        return found.items if found is not None else ()

    async def diag(self, *, timeout: float | None = None) -> Diag:
        """Return slurmctld's counters."""
        answer = await self._session.call("get_diag", wanted=ListOf("statistics", service.diag), timeout=timeout)
        if not answer.items:
            raise missing("statistics", answer, "get_diag")
        found: Diag = answer.items[0]
        return found

    async def reconfigure(self, *, timeout: float | None = None) -> None:
        """
        Let slurmctld read its configuration again. Never repeated by itself.

        A good answer does not mean that it did: one that runs in the foreground answers first and may die of a bad
        file afterwards.
        """
        await self._session.call("get_reconfigure", timeout=timeout)
