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
import copy
import random
import time
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from slurm_client import errors, wire
from slurm_client.connection import answers
from slurm_client.connection.answer_reader import AnswerReader
from slurm_client.connection.call import Call, Target, filled
from slurm_client.connection.circuit import Circuit
from slurm_client.connection.intake import Excess, Intake
from slurm_client.connection.negotiation import Negotiation
from slurm_client.connection.oversized import Oversized
from slurm_client.connection.retries import RefusedToken, Renewal, RetryPolicy, UnknownUrl
from slurm_client.connection.transport import Transport, closed_error, written
from slurm_client.hooks import Attempt, observed
from slurm_client.models.entry import Entry, keep

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    import httpx

    from slurm_client.connection.answers import Answer, ListOf
    from slurm_client.connection.intake import Hold
    from slurm_client.hooks import Hook
    from slurm_client.tokens import TokenProvider

__all__ = ["LAST_REQUEST", "RetryPolicy", "Session"]

LAST_REQUEST: ContextVar[errors.Request | None] = ContextVar("LAST_REQUEST", default=None)
"""What the running task asked last: what an error is about that is found in an answer afterwards."""

M = TypeVar("M", bound=Entry)


_ASKED_INSTEAD = "get_licenses"
"""A short answer that slurmctld gives to good tokens only."""

_FOR_THE_TOKEN = 5.0
"""Seconds, at most, for asking slurmctld whether it accepts a token."""


class Session:
    """
    Calls to one slurmrestd. Parameters as for :class:`~slurm_client.client.SlurmClient`.

    Attributes
    ----------
    circuit
        Whether calls are tried at all, and why not.
    oversized
        Lists that were too large.
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
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        bearer: bool = False,
        hook: Hook | None = None,
    ) -> None:
        self._negotiation = Negotiation(api_version, self._ping, lambda: self.base_url)
        self._hook = hook
        self._token = token
        self._user_name = user_name
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
            max_concurrency=max_concurrency,
            timeout=timeout,
            ca_bundle=ca_bundle,
            client_certificate=client_certificate,
            unix_socket=unix_socket,
            transport=transport,
            headers=headers,
            proxy=proxy,
            bearer=bearer,
        )
        self.oversized = Oversized()
        self._limits: dict[asyncio.Task[Any] | None, asyncio.Timeout] = {}
        """Of the calls under way, by the task that waits for each."""

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

    @property
    def room(self) -> int:
        """Bytes that what is read of one answer may take."""
        return 2 * self._intake.answer

    def as_user(self, user_name: str | None, token: TokenProvider | None) -> Session:
        """
        Return a session of another user on the same connections, with the same data parser, circuit and limits.

        Parameters
        ----------
        user_name
            For the header ``X-SLURM-USER-NAME``; none is sent when absent.
        token
            The user's own; the token of this session when absent.
        """
        view = copy.copy(self)
        view._serve(user_name, token or self._token)  # noqa: SLF001 - of the same class
        return view

    def _serve(self, user_name: str | None, token: TokenProvider) -> None:
        self._user_name = user_name
        self._token = token
        # What one user was shown is not for another.
        self._reader = AnswerReader(self._intake, self._owner, keep_raw=self._keep_raw)

    def forget(self) -> None:
        """Give back the room of all answers that are kept."""
        self._reader.forget()

    async def close(self) -> None:
        """Close all connections; calls under way end with ClientClosed, wherever they wait."""
        self._transport.closed = True
        for limit in self._limits.values():
            if not limit.expired():
                limit.reschedule(0.0)
        self._reader.forget()
        await self._transport.close()

    async def connect(self) -> str:
        """Negotiate within the session's time limit and return the data parser."""
        return await self.negotiate()

    async def negotiate(self, timeout: float | None = None) -> str:
        """Return the data parser in use, after negotiating it where that is needed, within ``timeout`` seconds."""
        async with self._within(self._timeout if timeout is None else timeout, lambda: self.about("negotiation")):
            return await self._negotiation.agree()

    # calls

    async def require(self, operation: str, timeout: float | None = None) -> None:
        """Raise NotSupported if the data parser in use has no such operation."""
        version = await self.negotiate(timeout)
        async with self._within(self._timeout, lambda: self.about(operation)):
            wire.endpoint(version, operation)

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
            Errors inside a readable answer, whatever its status, for which this is true are left to the caller.

        Raises
        ------
        SlurmError
            And nothing else.
        """
        return await self._carried_out(
            Call(operation, path=path, query=query, body=body, wanted=wanted, tolerate=tolerate), timeout
        )

    async def request(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        repeatable: bool = False,
        timeout: float | None = None,
    ) -> Answer:
        """
        Send a request to a path on the server, of which ``{version}`` stands for the data parser.

        What it does follows from method and path, where they are those of an operation that is known here; all else
        counts as a write. Parameters and errors as for :meth:`~slurm_client.client.SlurmClient.request`.
        """
        call = Call("", query=query, body=body, method=method, url=url, repeatable=repeatable)
        return await self._carried_out(call, timeout)

    async def prepared(
        self, operation: str, *, body: Mapping[str, Any], timeout: float | None = None
    ) -> tuple[errors.Request, bytes]:
        """
        Return the request that `call` would send, with its body, and send nothing but what negotiation needs.

        Raises
        ------
        SlurmError
            And nothing else.
        """
        call = Call(operation, body=body)
        version = await self.negotiate(timeout)
        async with self._within(self._timeout, lambda: self.about(operation)):
            target = call.target(version)
            return errors.Request(target.endpoint.method, target.url, self._transport.server), written(body)

    async def _carried_out(self, call: Call, timeout: float | None) -> Answer:
        limit = self._timeout if timeout is None else timeout
        async with self._within(limit, lambda: self._request(call)):
            if call.negotiates:
                await self._negotiation.agree()
            return await self._with_renewals(call)

    def kept(self, model: M, raw: Mapping[str, Any]) -> M:
        """Return a model that was read from a part of an answer, which it keeps if this client keeps such."""
        if self._keep_raw:
            keep(model, raw)
        return model

    def refuse(self, answer: Answer, operation: str) -> None:
        """Raise the error a tolerated answer is, if it is one after all."""
        found = answers.error_in(answer, LAST_REQUEST.get() or self.about(operation))
        if found is not None:
            raise found

    def about(self, call: str) -> errors.Request:
        """Return what a call is about that has no URL, or none yet."""
        return errors.Request("", call, self._transport.server)

    def _request(self, call: Call) -> errors.Request:
        """What a call is about: its URL, or its name while no data parser has been agreed on."""
        version = self.api_version
        if version is None and call.negotiates:
            return self.about(f"negotiation for {call.operation or f'{call.method} {call.url}'}")
        try:
            target = call.target(version or "")
        except errors.SlurmError:
            # Then there is no URL; the call itself says so.
            return self.about(call.operation)
        return errors.Request(target.endpoint.method, target.url, self._transport.server)

    @asynccontextmanager
    async def _within(self, seconds: float, about: Callable[[], errors.Request]) -> AsyncIterator[None]:
        """End the block after a time, or when the session is closed, with a `SlurmError` that says what it is about."""
        started = time.monotonic()
        limit = asyncio.timeout(seconds)
        task = asyncio.current_task()
        try:
            async with limit:
                self._limits[task] = limit
                try:
                    yield
                finally:
                    self._limits.pop(task, None)
        except (TimeoutError, errors.Unreachable) as error:
            if self._transport.closed:
                closed = closed_error(about())
                closed.sent = getattr(error, "sent", True)
                raise closed from error
            if isinstance(error, errors.Unreachable):
                raise
            late = errors.Timeout(f"no answer within {time.monotonic() - started:.1f} s", request=about())
            self.circuit.failed(late)
            self._transport.turn_to_next_server()
            raise late from error
        except errors.SlurmError as error:
            if error.request is None and not isinstance(error, errors.InvalidArgument):
                error.request = about()
            raise

    async def _with_renewals(self, call: Call) -> Answer:
        """Repeat once with a new token, and once with another data parser, if that is what the server refused."""
        renewal, renegotiated = Renewal(self._token), False
        while True:
            version = self.api_version or ""
            try:
                target = call.target(version)
                LAST_REQUEST.set(errors.Request(target.endpoint.method, target.url, self._transport.server))
                return await self._asked(target, call, version)
            except RefusedToken as refused:
                await renewal.after(refused)
            except UnknownUrl as unknown:
                if not call.negotiates:
                    raise errors.NotSupported(unknown.message, request=unknown.request, status=404) from None
                if renegotiated or self._negotiation.pinned:
                    raise errors.NotSupported(
                        f"the server lacks this call with data parser {version}",
                        available_in=wire.parsers_with(call.operation),
                        request=unknown.request,
                        status=404,
                    ) from None
                renegotiated = True
                await self._negotiation.agree(again=version)

    async def _ping(self, version: str) -> None:
        """Ping with a data parser; once more with a new token if that is what the server refused."""
        renewal = Renewal(self._token)
        call = Call(wire.PING.operation, tolerate=lambda error: error.status == 200)
        while True:
            try:
                await self._with_retries(filled(wire.PING, version, None), call)
            except RefusedToken as refused:
                await renewal.after(refused)
            else:
                return

    async def _asked(self, target: Target, call: Call, version: str) -> Answer:
        """
        Ask, and find out whether a slurmdbd that cannot be reached has in fact refused the token.

        Slurm says the same of both (26.05), but slurmctld refuses such a token too, in words of its own. Nothing was
        done then, so that the call may be repeated with a new token.
        """
        try:
            return await self._with_retries(target, call)
        except errors.DatabaseDown as down:
            if not down.sent and version:
                await self._try_token(version)
            raise

    async def _try_token(self, version: str) -> None:
        """Raise RefusedToken if slurmctld refuses the token; return if it does not, or does not say."""
        target = filled(wire.endpoint(version, _ASKED_INSTEAD), version, None)
        try:
            async with asyncio.timeout(min(_FOR_THE_TOKEN, self._timeout / 2)):
                await self._once(target, Call(_ASKED_INSTEAD))
        except RefusedToken:
            raise
        except (errors.SlurmError, TimeoutError):
            return

    async def _with_retries(self, target: Target, call: Call) -> Answer:
        failed = 0
        while True:
            try:
                return await self._once(target, call)
            except errors.Unreachable as error:
                # A slurmdbd that is away is not back in a moment, and each server has the same one.
                if isinstance(error, errors.DatabaseDown):
                    raise
                failed += 1
                if not isinstance(error, errors.CircuitOpen):
                    self._transport.turn_to_next_server()
                repeatable = not error.sent or not target.endpoint.writes or call.repeatable
                if not repeatable or failed >= self._retry.attempts or isinstance(error, errors.CircuitOpen):
                    raise
                # A server that took its time to say that slurmctld is away has already waited for us.
                if isinstance(error, errors.ControllerDown) and error.status is not None:
                    raise
                await asyncio.sleep(self._retry.pause(failed, self._jitter))

    async def _once(self, target: Target, call: Call) -> Answer:
        request = errors.Request(target.endpoint.method, target.url, self._transport.server)
        self.circuit.check(request)
        try:
            token = await self._token.token()
        except errors.Unauthorized as error:
            error.request = error.request or request
            raise
        try:
            answer = await self._answer(target, request, token, call)
        except errors.Unauthorized as error:
            self.circuit.succeeded()
            if not token:
                error.message += "; this client sends no token"
            raise RefusedToken(error, token) from error
        except errors.DatabaseDown:
            # slurmrestd answers, and calls to slurmctld need no slurmdbd.
            self.circuit.succeeded()
            raise
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

    async def _answer(self, target: Target, request: errors.Request, token: str, call: Call) -> Answer:
        """Send a request, receive its answer and understand it, within the room that there is for answers."""
        endpoint = target.endpoint
        attempt = Attempt(
            request.server,
            request.method,
            endpoint.operation,
            target.template,
            request.path,
            endpoint.writes,
            next(call.numbers),
        )
        scope = asyncio.timeout(None)
        hold: Hold | None = None
        with observed(self._hook, attempt, lambda: self._end_of_time(request)) as exchange:
            try:
                async with scope:
                    with self._intake.open(self._owner, lambda: scope.reschedule(0.0)) as hold:
                        reply = await self._transport.send(
                            request,
                            token,
                            call.query,
                            call.body,
                            hold,
                            exchange,
                            writes=endpoint.writes,
                            user_name=self._user_name,
                        )
                        return await self._reader.read(request, reply, call.wanted, call.tolerate)
            except Excess as error:
                raise errors.TooLarge(f"the answer is too large: {error}", request=request) from error
            except TimeoutError as error:
                if hold is None or not hold.ended:
                    raise
                raise errors.TooLarge("the answer gave way to those of others", request=request) from error

    def _end_of_time(self, request: errors.Request) -> errors.SlurmError | None:
        """Return the error of the call of this task if its time is over; ``None`` if it is not."""
        limit = self._limits.get(asyncio.current_task())
        if limit is None or not limit.expired():
            return None
        return closed_error(request) if self._transport.closed else errors.Timeout("no answer in time", request=request)
