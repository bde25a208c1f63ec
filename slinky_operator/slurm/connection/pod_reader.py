"""Answers that the operator reads by HTTP from a pod of a Cluster, other than those of slurmrestd.

A user who may edit a Cluster may run any program in such a pod. So an answer passes the intake of Slurm's answers: it
has a size, is never unpacked, is given up when its time is over, and takes room from the share of its namespace; its
JSON has a depth, and what is kept of it is counted. No cookie is kept, and no redirect is followed.

What an answer means is left to those who ask. Only this module, `job_output`, the client of slurmrestd and that of
the API server open connections (`tests/unit/bounds/test_connections.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self

import httpx

from slurm_client import errors
from slurm_client.connection import answers
from slurm_client.connection.http import refuse_cookies
from slurm_client.connection.intake import Excess, Hold, Intake, receive

SECONDS: Final = 5.0
"""For one answer, from the connection to its last byte."""

SILENCE: Final = 2.0
"""Seconds without a byte after which a pod is given up."""

ROOM: Final = 4
"""Bytes in memory that each byte of an answer may become."""


class NoAnswer(Exception):
    """There is no answer that can be used.

    Parameters
    ----------
    why
        One line; it repeats nothing of what was received.
    status
        The HTTP status, if that is the reason.
    """

    def __init__(self, why: str, status: int | None = None) -> None:
        self.why = why
        self.status = status
        super().__init__(why)


class PodReader:
    """Reads JSON objects from pods.

    Parameters
    ----------
    intake
        Room for answers, shared with the clients of slurmrestd.
    transport
        What sends the requests; the network if absent.
    seconds
        For one answer.
    """

    def __init__(
        self, intake: Intake, *, transport: httpx.AsyncBaseTransport | None = None, seconds: float = SECONDS
    ) -> None:
        self._intake = intake
        self._seconds = seconds
        self._http = httpx.AsyncClient(
            transport=transport,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            timeout=httpx.Timeout(SILENCE),
            trust_env=False,
        )
        refuse_cookies(self._http)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def read(self, url: str, *, owner: str, limit: int) -> Mapping[str, Any]:
        """Read the JSON object at a URL.

        Parameters
        ----------
        owner
            The namespace on whose behalf it is read.
        limit
            Bytes that the answer may have.

        Raises
        ------
        NoAnswer
            And nothing else.
        """
        scope = asyncio.timeout(self._seconds)
        hold: Hold | None = None
        try:
            async with scope:
                with self._intake.open(owner, lambda: scope.reschedule(0.0), limit) as hold:
                    return await self._object(url, hold)
        except TimeoutError as error:
            if hold is not None and hold.ended:
                raise NoAnswer("its answer gave way to those of others") from error
            raise NoAnswer(f"its answer was not complete after {self._seconds:g} s") from error
        except Excess as error:
            raise NoAnswer(f"its answer is too large: {error}") from error
        except errors.SlurmError as error:
            raise NoAnswer(error.message) from error
        except (httpx.RemoteProtocolError, httpx.DecodingError) as error:
            # Its words would repeat what was received.
            raise NoAnswer("what was received is no HTTP, or ends too early") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NoAnswer(str(error) or type(error).__name__) from error

    async def _object(self, url: str, hold: Hold) -> Mapping[str, Any]:
        request = errors.Request("GET", url)
        async with self._http.stream("GET", url) as response:
            if response.status_code != HTTPStatus.OK:
                raise NoAnswer(f"it answered {response.status_code}", response.status_code)
            text = await receive(response, request, hold, lambda _: None)
        answer = await answers.read(text, HTTPStatus.OK, request, room=ROOM * hold.limit)
        return answer.fields

    def keep(self, owner: str, what: Hashable, size: int) -> None:
        """Count something that is kept of an answer, in the place of what was kept under that name.

        Raises
        ------
        NoAnswer
            If too much is kept for that namespace; then it must not be kept.
        """
        try:
            self._intake.keep(owner, what, size)
        except Excess as error:
            raise NoAnswer(str(error)) from error

    def forget(self, owner: str, what: Hashable) -> None:
        """Count nothing under that name any more."""
        self._intake.forget(owner, what)
