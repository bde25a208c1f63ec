"""Sends one request to the API server: fenced if it writes, repeated where that cannot do harm.

What is repeated
    reads and writes whose repetition has the same effect (apply, merge patch and PUT without a version, delete
    of a known uid): after a lost connection, a 5xx or a 429;
    every other write: only when it certainly did not arrive (no connection, 429).
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, Self

import aiohttp

from slinky_operator.kube import errors
from slinky_operator.kube.calls.connection import Connection, FenceClosed
from slinky_operator.kube.calls.depth import decoded
from slinky_operator.kube.errors import Target
from slinky_operator.kube.leadership.fence import Fence
from slinky_operator.kube.objects import Object, Objects

MAX_IN_FLIGHT: Final = 50
"""Requests on the wire at once; more only makes the API server queue them."""

ATTEMPTS: Final = 4
"""How often a repeatable request is sent before its error is raised."""

LONGEST_WAIT: Final = 10.0
"""Seconds of a Retry-After that are waited for here; a longer one is raised to the caller, who can do other work."""

Observer = Callable[[str, str, str, float], None]
"""Called after each request with verb, resource, outcome (`ok`, or the name of the error) and seconds; for metrics."""


class Transport:
    """Requests to the API server, and what becomes of those that fail.

    Parameters
    ----------
    connection
        Shared session; closed by its owner.
    fence
        Asked before every write.
    field_manager
        Name under which our fields are kept apart from others'.
    timeout
        Seconds for one request, watches excepted.
    observer
        Told about each finished request.
    max_in_flight
        Requests on the wire at once; clients on the same connection count apart.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        fence: Fence,
        field_manager: str,
        timeout: float = 30.0,
        observer: Observer | None = None,
        max_in_flight: int = MAX_IN_FLIGHT,
        rng: random.Random | None = None,
    ) -> None:
        self._connection = connection
        self._fence = fence
        self._field_manager = field_manager
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, 5.0))
        self._observer = observer
        self._slots = asyncio.Semaphore(max_in_flight)
        self._rng = rng or random.Random()  # noqa: S311 - jitter

    def apart(self, timeout: float) -> Self:
        """A client on the same connection whose calls do not wait for those of this one.

        Parameters
        ----------
        timeout
            Seconds for one of its calls.
        """
        return type(self)(
            self._connection,
            fence=self._fence,
            field_manager=self._field_manager,
            timeout=timeout,
            observer=self._observer,
            rng=self._rng,
        )

    def _write_query(self, *, field_manager: str | None = None, dry_run: bool = False) -> dict[str, str]:
        query = {"fieldManager": field_manager or self._field_manager}
        if dry_run:
            query["dryRun"] = "All"
        return query

    async def _send(
        self,
        target: Target,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | Objects | None = None,
        content_type: str = "application/json",
        repeatable: bool = False,
        most: int | None = None,
        attempts: int = ATTEMPTS,
    ) -> Object:
        """Send a request, repeat it where that is safe, and return the decoded answer.

        Parameters
        ----------
        attempts
            How often it is sent at most.

        Raises
        ------
        TooLong
            The answer has more than `most` bytes; the rest of it was not read.
        """
        write = method != "GET"
        # As Go writes it: a ControllerRevision's data are kept byte by byte, and the garbage collector's patch of its
        # owners, which writes them again, is refused if that makes a difference.
        payload = None if body is None else json.dumps(body, separators=(",", ":"), sort_keys=True).encode()
        attempt = 0
        renewed = False
        while True:
            attempt += 1
            sent = time.monotonic()
            try:
                async with self._slots:
                    sent = time.monotonic()
                    answer = await self._attempt(
                        target, method, path, query, payload, content_type, self._fence if write else None, most
                    )
            except errors.KubeError as error:
                self._observe(target, error, time.monotonic() - sent)
                if isinstance(error, errors.Unauthorized) and not renewed and await self._connection.refresh():
                    renewed = True
                    continue
                wait = self._wait_before_repeat(error, attempt, repeatable=repeatable or not write)
                if wait is None or attempt >= attempts:
                    raise
                await asyncio.sleep(wait)
            else:
                self._observe(target, None, time.monotonic() - sent)
                return answer

    async def _attempt(
        self,
        target: Target,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        payload: bytes | None,
        content_type: str,
        fence: Fence | None,
        most: int | None,
    ) -> Object:
        if fence is not None and (why := fence.closed_because()):
            raise errors.Fenced(target, why)
        try:
            async with self._connection.request(
                method,
                path,
                query=query,
                body=payload,
                content_type=content_type if payload is not None else None,
                timeout=self._timeout,
                fence=fence,
            ) as response:
                if response.status >= HTTPStatus.MULTIPLE_CHOICES:
                    await self._raise_for(target, response)
                answer = decoded(await _read(target, response, most))
        except FenceClosed as closed:
            raise errors.Fenced(target, str(closed)) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise errors.Unavailable(target, words(error), maybe_done=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise errors.Unavailable(target, words(error)) from error
        return answer if isinstance(answer, dict) else {}

    def _wait_before_repeat(self, error: errors.KubeError, attempt: int, *, repeatable: bool) -> float | None:
        """Seconds to wait before sending again, or `None` to raise the error."""
        if isinstance(error, errors.TooManyRequests):
            safe = True
        elif isinstance(error, errors.Unavailable):
            safe = repeatable or not error.maybe_done
        else:
            safe = False
        if not safe or (error.retry_after or 0.0) > LONGEST_WAIT:
            return None
        backoff: float = 0.1 * 2**attempt * self._rng.uniform(0.5, 1.5)
        # Requests with the same wait would otherwise be repeated at the same instant.
        return max(backoff, (error.retry_after or 0.0) * self._rng.uniform(1.0, 1.2))

    async def _raise_for(self, target: Target, response: aiohttp.ClientResponse) -> None:
        raise errors.from_response(target, response.status, await response.read(), response.headers.get("Retry-After"))

    def _observe(self, target: Target, error: errors.KubeError | None, seconds: float) -> None:
        if self._observer is not None:
            self._observer(target.verb, target.resource, "ok" if error is None else type(error).__name__, seconds)


async def _read(target: Target, response: aiohttp.ClientResponse, most: int | None) -> bytes | bytearray:
    """Read the body, but no more than `most` bytes of it."""
    if most is None:
        return await response.read()
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            response.close()
            raise errors.TooLong(target, f"the answer has more than {most} bytes")
    return body


def words(error: BaseException) -> str:
    """Text for an error of the transport; some of them, timeouts above all, have none of their own."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
