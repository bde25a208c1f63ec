"""
One server, asked with patience: time limits, tokens, retries and the circuit.

The session turns the name of an operation into an answer or a `SlurmError`. What operations there are is in
:mod:`slurm_client.wire`, what they mean in :mod:`slurm_client.operations`. Which data parser to speak is settled by
`negotiation`, one request is sent by `transport`, and its answer is read by `answer_reader`.

What is repeated: a call that never left (refused connection) always; a call that was sent, only if it changes nothing,
which :mod:`slurm_client.wire.endpoint` says of each operation; a refused token, once, with a renewed one; an unknown
path, once, after asking again which parsers the server has. Nothing is repeated beyond the caller's time limit.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from slurm_client import errors, wire
from slurm_client.connection import answers
from slurm_client.connection.answer_reader import AnswerReader
from slurm_client.connection.circuit import Circuit
from slurm_client.connection.intake import Excess, Intake
from slurm_client.connection.negotiation import Negotiation
from slurm_client.connection.retries import RefusedToken, Renewal, RetryPolicy, UnknownUrl
from slurm_client.connection.transport import Transport, closed_error
from slurm_client.encode.values import fitted
from slurm_client.models.entry import Entry, keep

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    import httpx

    from slurm_client.connection.answers import Answer, ListOf
    from slurm_client.connection.intake import Hold
    from slurm_client.tokens import TokenProvider

__all__ = ["RetryPolicy", "Session"]

M = TypeVar("M", bound=Entry)


@dataclass(frozen=True, slots=True)
class _Call:
    """What is asked for, whatever the data parser."""

    path: Mapping[str, str | int] | None = None
    query: Mapping[str, Any] | None = None
    body: Mapping[str, Any] | None = None
    wanted: ListOf | None = None
    tolerate: Callable[[errors.SlurmError], bool] | None = None


_PING = _Call(tolerate=lambda _: True)


class Session:
    """
    Calls to one slurmrestd. Parameters as for :class:`~slurm_client.client.SlurmClient`.

    Attributes
    ----------
    circuit
        Whether calls are tried at all, and why not.
    """

    def __init__(
        self,
        base_url: str | Sequence[str],
        token: TokenProvider,
        *,
        api_version: str | None = None,
        timeout: float = 30.0,
        retry: RetryPolicy | None = None,
        user_name: str | None = None,
        max_concurrency: int = 16,
        circuit: Circuit | None = None,
        ca_bundle: str | Path | None = None,
        client_certificate: tuple[str | Path, str | Path] | None = None,
        unix_socket: str | Path | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        jitter: Callable[[], float] = random.random,
        intake: Intake | None = None,
        owner: str = "",
        keep_raw: bool = False,
    ) -> None:
        self._negotiation = Negotiation(api_version, self._ping, lambda: self.base_url)
        self._token = token
        self._timeout = timeout
        self._retry = retry or RetryPolicy()
        self._jitter = jitter
        self._intake = intake or Intake()
        self._owner = owner
        self._reader = AnswerReader(self._intake, owner, keep_raw=keep_raw)
        self._keep_raw = keep_raw
        self.circuit = circuit or Circuit()
        self._transport = Transport(
            [base_url] if isinstance(base_url, str) else base_url,
            user_name=user_name,
            max_concurrency=max_concurrency,
            timeout=timeout,
            ca_bundle=ca_bundle,
            client_certificate=client_certificate,
            unix_socket=unix_socket,
            transport=transport,
        )
        self._limits: set[asyncio.Timeout] = set()
        """Of the calls under way."""

    @property
    def base_url(self) -> str:
        """Where the next call goes: the first server, or another one after that could not be reached."""
        return self._transport.base_url

    @property
    def api_version(self) -> str | None:
        """Data parser in use, e.g. ``v0.0.42``; ``None`` before the first negotiation."""
        return self._negotiation.version

    @property
    def release(self) -> str:
        """Release of the Slurm that answered last, e.g. ``24.11.5``."""
        return self._negotiation.release

    @property
    def calls(self) -> int:
        """Requests sent, for those who count."""
        return self._transport.calls

    @property
    def bytes_received(self) -> int:
        """Bytes of all bodies."""
        return self._transport.bytes_received

    async def close(self) -> None:
        """Close all connections; calls under way end with ClientClosed, wherever they wait."""
        self._transport.closed = True
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(0.0)
        self._reader.forget()
        await self._transport.close()

    async def connect(self) -> str:
        """Negotiate within the session's time limit and return the data parser."""
        async with self._within(self._timeout, lambda: errors.Request("", "negotiation")):
            return await self.negotiate()

    async def negotiate(self) -> str:
        """Return the data parser in use, after negotiating it where that is needed; within the caller's time limit."""
        return await self._negotiation.agree()

    # calls

    async def require(self, operation: str) -> None:
        """Raise NotSupported if the data parser in use has no such operation."""
        wire.endpoint(await self.connect(), operation)

    async def call(
        self,
        operation: str,
        *,
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        wanted: ListOf | None = None,
        timeout: float | None = None,
        tolerate: Callable[[errors.SlurmError], bool] | None = None,
    ) -> Answer:
        """
        Carry out an operation and return its answer.

        Parameters
        ----------
        operation
            Its name in the specification without prefix and version, e.g. ``get_nodes``.
        path, query, body
            Parameters of the path, of the query (``None`` is left out), and the JSON body.
        wanted
            The list in the answer that is to be decoded.
        timeout
            Seconds for everything, repetitions included; the session's when absent.
        tolerate
            Errors inside a readable answer for which this is true are left to the caller.

        Raises
        ------
        SlurmError
            And nothing else.
        """
        limit = self._timeout if timeout is None else timeout
        async with self._within(limit, lambda: self._request(operation, path)):
            await self.negotiate()
            return await self._with_renewals(operation, _Call(path, query, body, wanted, tolerate))

    def kept(self, model: M, raw: Mapping[str, Any]) -> M:
        """Return a model that was read from a part of an answer, which it keeps if this client keeps such."""
        if self._keep_raw:
            keep(model, raw)
        return model

    def refuse(self, answer: Answer, operation: str) -> None:
        """Raise the error a tolerated answer is, if it is one after all."""
        found = answers.error_in(answer, errors.Request("", operation))
        if found is not None:
            raise found

    def _request(self, operation: str, path: Mapping[str, str | int] | None) -> errors.Request:
        """What a call is about: its URL, or its name while no data parser has been agreed on."""
        try:
            if self.api_version is not None:
                endpoint = wire.endpoint(self.api_version, operation)
                return errors.Request(endpoint.method, _url(endpoint, self.api_version, path))
        except errors.NotSupported:
            # Then there is no URL; the call itself says so.
            pass
        return errors.Request("", f"negotiation for {operation}")

    @asynccontextmanager
    async def _within(self, seconds: float, about: Callable[[], errors.Request]) -> AsyncIterator[None]:
        """End the block after a time, or when the session is closed, with a `SlurmError`."""
        started = time.monotonic()
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                self._limits.add(limit)
                try:
                    yield
                finally:
                    self._limits.discard(limit)
        except (TimeoutError, errors.Unreachable) as error:
            if self._transport.closed:
                closed = closed_error(about())
                closed.sent = getattr(error, "sent", True)
                raise closed from error
            if isinstance(error, errors.Unreachable):
                raise
            late = errors.Timeout(f"no answer within {time.monotonic() - started:.1f} s", request=about())
            self.circuit.failed(late)
            raise late from error

    async def _with_renewals(self, operation: str, call: _Call) -> Answer:
        """Repeat once with a new token, and once with another data parser, if that is what the server refused."""
        renewal, renegotiated = Renewal(self._token), False
        while True:
            version = self.api_version
            assert version is not None  # noqa: S101 - call() has negotiated
            endpoint = wire.endpoint(version, operation)
            if call.body is not None:
                fitted(version, endpoint.body, call.body)
            try:
                return await self._with_retries(endpoint, version, call)
            except RefusedToken as refused:
                await renewal.after(refused)
            except UnknownUrl as unknown:
                if renegotiated or self._negotiation.pinned:
                    raise errors.NotSupported(
                        f"the server has no {endpoint.method} {endpoint.path} with {version}",
                        available_in=wire.parsers_with(operation),
                        request=unknown.request,
                        status=404,
                    ) from None
                renegotiated = True
                await self._negotiation.agree(again=version)

    async def _ping(self, version: str) -> None:
        """Ping with a data parser; once more with a new token if that is what the server refused."""
        renewal = Renewal(self._token)
        while True:
            try:
                await self._with_retries(wire.PING, version, _PING)
            except RefusedToken as refused:
                await renewal.after(refused)
            else:
                return

    async def _with_retries(self, endpoint: wire.Endpoint, version: str, call: _Call) -> Answer:
        failed = 0
        while True:
            try:
                return await self._once(endpoint, version, call)
            except errors.Unreachable as error:
                failed += 1
                if not isinstance(error, errors.CircuitOpen):
                    self._transport.turn_to_next_server()
                repeatable = not error.sent or not endpoint.writes
                if not repeatable or failed >= self._retry.attempts or isinstance(error, errors.CircuitOpen):
                    raise
                # A server that took its time to say that slurmctld is away has already waited for us.
                if isinstance(error, errors.ControllerDown) and error.status is not None:
                    raise
                await asyncio.sleep(self._retry.pause(failed, self._jitter))

    async def _once(self, endpoint: wire.Endpoint, version: str, call: _Call) -> Answer:
        request = errors.Request(endpoint.method, _url(endpoint, version, call.path))
        self.circuit.check(request)
        token = await self._token.token()
        try:
            answer = await self._answer(endpoint, request, token, call)
        except errors.Unauthorized as error:
            self.circuit.succeeded()
            raise RefusedToken(error, token) from error
        except errors.Unreachable as error:
            self.circuit.failed(error)
            raise
        except errors.SlurmError:
            self.circuit.succeeded()
            raise
        self.circuit.succeeded()
        if answer.release:
            self._negotiation.release = answer.release
        return answer

    async def _answer(self, endpoint: wire.Endpoint, request: errors.Request, token: str, call: _Call) -> Answer:
        """Send a request, receive its answer and understand it, within the room that there is for answers."""
        scope = asyncio.timeout(None)
        hold: Hold | None = None
        try:
            async with scope:
                with self._intake.open(self._owner, lambda: scope.reschedule(0.0)) as hold:
                    reply = await self._transport.send(
                        request, token, call.query, call.body, hold, writes=endpoint.writes
                    )
                    return await self._reader.read(request, reply, call.wanted, call.tolerate)
        except Excess as error:
            raise errors.TooLarge(f"the answer is too large: {error}", request=request) from error
        except TimeoutError as error:
            if hold is None or not hold.ended:
                raise
            raise errors.TooLarge("the answer gave way to those of others", request=request) from error


def _url(endpoint: wire.Endpoint, version: str, path: Mapping[str, str | int] | None) -> str:
    return endpoint.url(version, {name: quote(str(value), safe="") for name, value in (path or {}).items()})
