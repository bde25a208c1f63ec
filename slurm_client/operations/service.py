"""Calls about slurmctld itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.connection.answers import ListOf
from slurm_client.decode import resources, service
from slurm_client.decode.read import items, mapping
from slurm_client.operations.base import Operations, missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurm_client.models import Diag, License, Ping, Share

__all__ = ["ServiceOperations"]


class ServiceOperations(Operations):
    """Ping, statistics, configuration, licenses and shares."""

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
        Make slurmctld read its configuration again. Never retried.

        A good answer does not mean that it did: one that runs in the foreground answers first and may die of a bad
        file afterwards.
        """
        await self._session.call("get_reconfigure", timeout=timeout)

    async def conf(self, *, timeout: float | None = None) -> Mapping[str, Any]:
        """Return the configuration slurmctld has loaded, as it is written (v0.0.45 and newer)."""
        answer = await self._session.call("get_conf", timeout=timeout)
        if not isinstance(answer.fields.get("slurm_conf"), dict):
            raise missing("slurm_conf", answer, "get_conf")
        return mapping(answer.fields["slurm_conf"])

    async def licenses(self, *, timeout: float | None = None) -> tuple[License, ...]:
        """Return all licenses."""
        found = await self._list("get_licenses", ListOf("licenses", resources.license_), timeout=timeout)
        return found.items if found is not None else ()

    async def shares(
        self, *, users: Sequence[str] = (), accounts: Sequence[str] = (), timeout: float | None = None
    ) -> tuple[Share, ...]:
        """
        Return the fair-share tree; empty without accounting.

        Parameters
        ----------
        users
            Of the users, only these; accounts stay.
        accounts
            Only these, and the users in them.
        """
        answer = await self._session.call(
            "get_shares",
            wanted=ListOf("shares", resources.shares, parts=lambda raw: items(raw.get("shares"))),
            timeout=timeout,
        )
        if answer.items is None:
            raise missing("shares", answer, "get_shares")
        # slurmrestd has filters and looks for them among the parameters of the path (24.11 and 26.05).
        return tuple(share for group in answer.items for share in group if _is_of(share, users, accounts))


def _is_of(share: Share, users: Sequence[str], accounts: Sequence[str]) -> bool:
    is_user = "USER" in share.kind
    account = share.parent if is_user else share.name
    return (not users or not is_user or share.name in users) and (not accounts or account in accounts)
