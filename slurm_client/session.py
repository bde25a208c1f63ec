"""
One server, asked with patience: time limits, tokens, retries, the circuit, and which data parser to speak.

The session turns the name of an operation into an answer or an error of ours. What operations there are is in
:mod:`slurm_client.wire`, what they mean in :mod:`slurm_client.client`; reading answers is in
:mod:`slurm_client.answers`.

What is repeated: a call that never left (refused connection) always; a call that was sent, only if it changes nothing,
which :mod:`slurm_client.wire.endpoint` says of each operation; a refused token, once, with a renewed one; an unknown
path, once, after asking again which parsers the server has. Nothing is repeated beyond the caller's time limit.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import ssl
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from slurm_client import answers, encode, errors, wire
from slurm_client.circuit import Circuit
from slurm_client.intake import Excess, Intake, receive

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    import httpx

    from slurm_client.answers import Answer, ListOf
    from slurm_client.intake import Hold
    from slurm_client.tokens import TokenProvider

__all__ = ["RetryPolicy", "Session"]

_log = logging.getLogger("slurm_client")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """
    How often and how fast a call is repeated that may be repeated.

    Parameters
    ----------
    attempts
        Calls in all; 1 repeats nothing.
    first_pause, longest_pause
        Seconds; the pause doubles in between and is drawn at random from its upper half.
    """

    attempts: int = 3
    first_pause: float = 0.1
    longest_pause: float = 2.0

    def pause(self, failed: int, jitter: Callable[[], float]) -> float:
        """Return the seconds to wait after ``failed`` failed attempts."""
        full = min(self.longest_pause, self.first_pause * 2.0 ** (failed - 1))
        return full * (0.5 + 0.5 * jitter())


class Session:
    """
    Calls to one slurmrestd. Parameters as for :class:`~slurm_client.client.SlurmClient`.

    Attributes
    ----------
    api_version
        Data parser in use, e.g. ``v0.0.42``; ``None`` before the first negotiation.
    release
        Release of the Slurm that answered last, e.g. ``24.11.5``.
    circuit
        Whether calls are tried at all, and why not.
    calls
        Requests sent, for those who count.
    bytes_received
        Bytes of all bodies.
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
    ) -> None:
        if api_version is not None and api_version not in wire.PARSERS:
            raise ValueError(f"unknown data parser {api_version}; this library speaks {', '.join(wire.PARSERS)}")
        self._base_urls = [url.rstrip("/") for url in ([base_url] if isinstance(base_url, str) else base_url)]
        self._chosen = 0
        self._token = token
        self._pinned = api_version
        self._timeout = timeout
        self._retry = retry or RetryPolicy()
        self._user_name = user_name
        self._slots = asyncio.Semaphore(max_concurrency)
        self._jitter = jitter
        self._intake = intake or Intake()
        self._owner = owner
        self.circuit = circuit or Circuit()
        self.api_version: str | None = None
        self.release = ""
        self._negotiated_release = ""
        self._negotiation = asyncio.Lock()
        self.calls = 0
        self.bytes_received = 0
        self._http = _http_client(
            self._base_urls, transport, ca_bundle, client_certificate, unix_socket, max_concurrency, timeout
        )
        self._closed = False
        self._limits: set[asyncio.Timeout] = set()
        """Of the calls under way."""
        self._known: dict[str, answers.Known] = {}
        """The last answers to what is asked again and again, by path."""

    @property
    def base_url(self) -> str:
        """Where the next call goes: the first server, or another one after that could not be reached."""
        return self._base_urls[self._chosen]

    async def close(self) -> None:
        """Close all connections; calls under way end with ClientClosed, wherever they wait."""
        self._closed = True
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(0.0)
        for path in self._known:
            self._intake.forget(self._owner, (id(self), path))
        self._known.clear()
        await self._http.aclose()

    async def connect(self) -> str:
        """Negotiate within the session's time limit and return the data parser."""
        async with self._within(self._timeout, lambda: errors.Request("", "negotiation")):
            return await self.negotiate()

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
            return await self._with_renewals(operation, path, query, body, wanted, tolerate)

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
        """End what is inside after a time, or when the session is closed, with an error of ours."""
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
            if self._closed:
                closed = _closed(about())
                closed.sent = getattr(error, "sent", True)
                raise closed from error
            if isinstance(error, errors.Unreachable):
                raise
            late = errors.Timeout(f"no answer within {time.monotonic() - started:.1f} s", request=about())
            self.circuit.failed(late)
            raise late from error

    async def _with_renewals(
        self,
        operation: str,
        path: Mapping[str, str | int] | None,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        wanted: ListOf | None,
        tolerate: Callable[[errors.SlurmError], bool] | None,
    ) -> Answer:
        """Repeat once with a new token, and once with another data parser, if that is what the server refused."""
        renegotiated = renewed = False
        while True:
            version = self.api_version
            assert version is not None  # noqa: S101 - call() has negotiated
            endpoint = wire.endpoint(version, operation)
            if body is not None:
                encode.fitted(version, endpoint.body, body)
            try:
                return await self._with_retries(endpoint, version, path, query, body, wanted, tolerate)
            except _Refused as refused:
                if renewed:
                    raise refused.error from None
                renewed = True
                self._token.invalidate(refused.token)
                if await self._token.token() == refused.token:
                    raise refused.error from None
            except _UnknownUrl as unknown:
                if renegotiated or self._pinned:
                    raise errors.NotSupported(
                        f"the server has no {endpoint.method} {endpoint.path} with {version}",
                        available_in=wire.parsers_with(operation),
                        request=unknown.request,
                        status=404,
                    ) from None
                renegotiated = True
                await self.negotiate(again=version)

    async def _with_retries(
        self,
        endpoint: wire.Endpoint,
        version: str,
        path: Mapping[str, str | int] | None,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        wanted: ListOf | None,
        tolerate: Callable[[errors.SlurmError], bool] | None,
    ) -> Answer:
        failed = 0
        while True:
            try:
                return await self._once(endpoint, version, path, query, body, wanted, tolerate)
            except errors.Unreachable as error:
                failed += 1
                if not isinstance(error, errors.CircuitOpen):
                    self._chosen = (self._chosen + 1) % len(self._base_urls)
                repeatable = not error.sent or not endpoint.writes
                if not repeatable or failed >= self._retry.attempts or isinstance(error, errors.CircuitOpen):
                    raise
                # A server that took its time to say that slurmctld is away has already waited for us.
                if isinstance(error, errors.ControllerDown) and error.status is not None:
                    raise
                await asyncio.sleep(self._retry.pause(failed, self._jitter))

    async def _once(
        self,
        endpoint: wire.Endpoint,
        version: str,
        path: Mapping[str, str | int] | None,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        wanted: ListOf | None,
        tolerate: Callable[[errors.SlurmError], bool] | None,
    ) -> Answer:
        url = _url(endpoint, version, path)
        request = errors.Request(endpoint.method, url)
        self.circuit.check(request)
        token = await self._token.token()
        try:
            answer = await self._answer(endpoint, request, token, query, body, wanted, tolerate)
        except errors.Unauthorized as error:
            self.circuit.succeeded()
            raise _Refused(error, token) from error
        except errors.Unreachable as error:
            self.circuit.failed(error)
            raise
        except errors.SlurmError:
            self.circuit.succeeded()
            raise
        self.circuit.succeeded()
        self._note_release(answer)
        return answer

    async def _answer(
        self,
        endpoint: wire.Endpoint,
        request: errors.Request,
        token: str,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        wanted: ListOf | None,
        tolerate: Callable[[errors.SlurmError], bool] | None,
    ) -> Answer:
        """Send a request, receive its answer and understand it, within the room that there is for answers."""
        scope = asyncio.timeout(None)
        hold: Hold | None = None
        try:
            async with scope:
                with self._intake.open(self._owner, lambda: scope.reschedule(0.0)) as hold:
                    reply = await self._send(endpoint, request, token, query, body, hold)
                    return await self._understand(request, reply, wanted, tolerate)
        except Excess as error:
            raise errors.TooLarge(f"the answer is too large: {error}", request=request) from error
        except TimeoutError as error:
            if hold is None or not hold.ended:
                raise
            raise errors.TooLarge("the answer gave way to those of others", request=request) from error

    async def _send(
        self,
        endpoint: wire.Endpoint,
        request: errors.Request,
        token: str,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        hold: Hold,
    ) -> _Reply:
        """Send one request and return what was received."""
        import httpx

        if self._closed:
            raise _never_sent(_closed(request))
        headers = {"X-SLURM-USER-TOKEN": token, "Accept": "application/json", "Accept-Encoding": "identity"}
        if self._user_name is not None:
            headers["X-SLURM-USER-NAME"] = self._user_name
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body, separators=(",", ":")).encode()
        params = {name: str(value) for name, value in (query or {}).items() if value is not None}
        try:
            async with self._slots:
                self.calls += 1
                async with self._http.stream(
                    request.method,
                    self.base_url + request.path,
                    params=params,
                    headers=headers,
                    content=content,
                    extensions={wire.CHANGES_NOTHING: not endpoint.writes},
                ) as response:
                    received = await receive(response, request, hold, self._count)
                    return _Reply(response.status_code, response.headers.get("content-type", ""), received)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise _never_sent(errors.Unreachable(f"cannot connect: {_words(error)}", request=request)) from error
        except httpx.TimeoutException as error:
            raise errors.Timeout(f"no answer: {_words(error)}", request=request) from error
        except (httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError) as error:
            raise errors.InvalidRequest(f"cannot be sent: {_words(error)}", request=request) from error
        except (httpx.HTTPError, RuntimeError) as error:
            # RuntimeError is what httpx says when it was closed in between.
            raise errors.Unreachable(f"the connection broke: {_told(error)}", request=request) from error

    def _count(self, received: int) -> None:
        self.bytes_received += received

    async def _understand(
        self,
        request: errors.Request,
        reply: _Reply,
        wanted: ListOf | None,
        tolerate: Callable[[errors.SlurmError], bool] | None,
    ) -> Answer:
        status, content = reply.status, reply.text
        if answers.is_unknown_url(content, status):
            raise _UnknownUrl(request)
        good = 200 <= status < 300
        if status in {204, 304} and not content.strip():
            return answers.Answer(status)
        try:
            known = self._known.get(request.path)
            answer = await answers.read(
                content, status, request, wanted if good else None, known, room=2 * self._intake.answer
            )
        except errors.DecodeError as error:
            if good:
                raise
            raise answers.error_from_text(content, status, reply.content_type, request) from error
        if wanted is not None and wanted.recurs and answer.items is not None:
            self._known.pop(request.path, None)
            self._intake.keep(self._owner, (id(self), request.path), answer.weight)
            self._known[request.path] = answers.Known(answer.texts, answer.items)
        found = answers.error_in(answer, request)
        if found is not None and not (tolerate is not None and good and tolerate(found)):
            raise found
        for warning in answer.warnings:
            _log.debug("%s: %s", request, warning)
        return answer

    def refuse(self, answer: Answer, operation: str) -> None:
        """Raise the error a tolerated answer is, if it is one after all."""
        found = answers.error_in(answer, errors.Request("", operation))
        if found is not None:
            raise found

    # which data parser

    async def negotiate(self, *, again: str | None = None) -> str:
        """
        Make sure that a data parser is chosen, and return it.

        The newest parser that both sides have is found by asking from the newest downwards. It is asked again when a
        path is unknown all of a sudden, and when the release in the answers has changed: the server was upgraded.

        Parameters
        ----------
        again
            A parser that is known not to do any more.
        """
        if self._fresh(again):
            return self.api_version or ""
        async with self._negotiation:
            if self._fresh(again):
                return self.api_version or ""
            candidates = [self._pinned] if self._pinned else sorted(wire.PARSERS, reverse=True)
            for version in candidates:
                if await self._serves(version):
                    if version != self.api_version:
                        _log.info("%s: Slurm %s, data parser %s", self.base_url, self.release or "?", version)
                    self.api_version = version
                    self._negotiated_release = self.release
                    return version
            raise errors.NotSupported(
                f"{self.base_url} serves none of {', '.join(candidates)}", available_in=(), status=404
            )

    def _fresh(self, again: str | None) -> bool:
        upgraded = self.release != self._negotiated_release and not self._pinned
        return self.api_version is not None and self.api_version != again and not upgraded

    async def _serves(self, version: str) -> bool:
        """Whether the server has this data parser; a ping is answered even while slurmctld is away."""
        renewed = False
        while True:
            try:
                await self._with_retries(wire.PING, version, None, None, None, None, lambda _: True)
            except _UnknownUrl:
                return False
            except errors.ServerError as error:
                if error.status == 404:  # in words that are not slurmrestd's
                    return False
                raise
            except _Refused as refused:
                if renewed:
                    raise refused.error from None
                renewed = True
                self._token.invalidate(refused.token)
                if await self._token.token() == refused.token:
                    raise refused.error from None
            except errors.ControllerDown:
                return True
            else:
                return True

    def _note_release(self, answer: Answer) -> None:
        if answer.release:
            self.release = answer.release


@dataclass(frozen=True, slots=True)
class _Reply:
    """What was received."""

    status: int
    content_type: str
    text: str


class _Refused(errors.SlurmError):
    """The server refused a token; never leaves the session."""

    def __init__(self, error: errors.Unauthorized, token: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.token = token


class _UnknownUrl(errors.SlurmError):
    """The server has no such path; never leaves the session."""

    def __init__(self, request: errors.Request) -> None:
        super().__init__("unknown path", request=request, status=404)


def _never_sent(error: errors.Unreachable) -> errors.Unreachable:
    error.sent = False
    return error


def _url(endpoint: wire.Endpoint, version: str, path: Mapping[str, str | int] | None) -> str:
    return endpoint.url(version, {name: quote(str(value), safe="") for name, value in (path or {}).items()})


def _closed(request: errors.Request) -> errors.ClientClosed:
    return errors.ClientClosed("the client is closed", request=request)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _told(error: Exception) -> str:
    """Say how a connection broke, without quoting what was received: it may be anybody's."""
    import httpx

    words = _words(error)
    if isinstance(error, httpx.RemoteProtocolError) and not words.startswith(("Server disconnected", "peer closed")):
        return "what was received is no HTTP"
    return words


def _http_client(
    base_urls: Sequence[str],
    transport: httpx.AsyncBaseTransport | None,
    ca_bundle: str | Path | None,
    client_certificate: tuple[str | Path, str | Path] | None,
    unix_socket: str | Path | None,
    max_concurrency: int,
    timeout: float,
) -> httpx.AsyncClient:
    """Build the one HTTP client of a session: no proxies, no redirects, nothing from the environment."""
    import httpx

    if not base_urls:
        raise ValueError("there must be a URL")
    for base_url in base_urls:
        if any(character in base_url for character in "?#@"):
            # The paths of slurmrestd would become a part of them.
            raise ValueError("a URL must have no query, no fragment and no password")
    urls = [httpx.URL(base_url) for base_url in base_urls]
    for url in urls:
        if url.scheme not in {"http", "https"} or not url.host:
            raise ValueError(f"not an http or https URL: {str(url)!r}")
    verify: ssl.SSLContext | bool = False
    if any(url.scheme == "https" for url in urls):
        verify = ssl.create_default_context(cafile=str(ca_bundle) if ca_bundle else None)
        if client_certificate is not None:
            certificate, key = client_certificate
            verify.load_cert_chain(str(certificate), str(key))
    if transport is None:
        transport = httpx.AsyncHTTPTransport(
            verify=verify,
            uds=str(unix_socket) if unix_socket else None,
            limits=httpx.Limits(max_connections=max_concurrency, max_keepalive_connections=max_concurrency),
            trust_env=False,
        )
    # The session's own time limit is over everything; this one only notices a dead connection inside a longer limit.
    return httpx.AsyncClient(transport=transport, timeout=httpx.Timeout(max(timeout, 60.0)), trust_env=False)
