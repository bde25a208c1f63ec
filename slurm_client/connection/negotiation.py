"""
Which data parser to speak: the newest that both sides have, asked again when the server was upgraded.

How a server is asked is left to :mod:`slurm_client.connection.session`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from slurm_client import errors, wire
from slurm_client.connection.retries import UnknownUrl

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["Negotiation"]

_log = logging.getLogger("slurm_client")


class Negotiation:
    """
    The data parser agreed on with one server.

    Parameters
    ----------
    pinned
        The only one to be used; the newest that both sides have when absent.
    ping
        Pings the server with a data parser. Raises UnknownUrl if the server lacks it.
    server
        Gives the URL of the server, for messages.

    Attributes
    ----------
    version
        Data parser in use; ``None`` before the first negotiation.
    release
        Release of the Slurm that answered last.
    """

    def __init__(self, pinned: str | None, ping: Callable[[str], Awaitable[object]], server: Callable[[], str]) -> None:
        if pinned is not None and pinned not in wire.PARSERS:
            raise ValueError(f"unknown data parser {pinned}; this library speaks {', '.join(wire.PARSERS)}")
        self.pinned = pinned
        self.version: str | None = None
        self.release = ""
        self._ping = ping
        self._server = server
        self._agreed_release = ""
        self._lock = asyncio.Lock()

    async def agree(self, *, again: str | None = None) -> str:
        """
        Make sure that a data parser is chosen, and return it.

        The newest parser that both sides have is found by asking from the newest downwards. It is asked again when a
        path is unknown all of a sudden, and when the release in the answers has changed: the server was upgraded.

        Parameters
        ----------
        again
            A parser that is known not to do any more.

        Raises
        ------
        NotSupported
            If the server has none that this library speaks.
        """
        if self._is_fresh(again):
            return self.version or ""
        async with self._lock:
            if self._is_fresh(again):
                return self.version or ""
            candidates = [self.pinned] if self.pinned else sorted(wire.PARSERS, reverse=True)
            for version in candidates:
                if await self._serves(version):
                    if version != self.version:
                        _log.info("%s: Slurm %s, data parser %s", self._server(), self.release or "?", version)
                    self.version = version
                    self._agreed_release = self.release
                    return version
            raise errors.NotSupported(
                f"the server has none of the data parsers that this library speaks: {', '.join(candidates)}",
                available_in=(),
                status=404,
            )

    def _is_fresh(self, again: str | None) -> bool:
        upgraded = self.release != self._agreed_release and not self.pinned
        return self.version is not None and self.version != again and not upgraded

    async def _serves(self, version: str) -> bool:
        """Whether the server has this data parser; a ping is answered even while slurmctld is away."""
        try:
            await self._ping(version)
        except UnknownUrl:
            return False
        except errors.ServerError as error:
            if error.status == 404:  # in words that are not slurmrestd's
                return False
            raise
        except errors.ControllerDown:
            return True
        return True
