"""
HTTP to slurmrestd: connections, headers, and what it means when one of them fails.

One request is sent once here. Repeating it is left to `session`, understanding the answer to `answer_reader`.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slurm_client import errors, wire
from slurm_client.connection.http import extra_headers, http_client, is_header_value, servers
from slurm_client.connection.intake import receive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import httpx

    from slurm_client.connection.body.pieces import Pieces
    from slurm_client.connection.intake import Hold
    from slurm_client.hooks import Exchange

__all__ = ["Reply", "Transport", "closed_error", "written"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What was received."""

    status: int
    content_type: str
    text: Pieces


class Transport:
    """
    Connections to one slurmrestd, or to several that serve the same Slurm.

    Parameters
    ----------
    base_urls
        Where it listens.
    max_concurrency
        Requests under way at a time.
    timeout
        Seconds of the longest usual call.
    ca_bundle, client_certificate, unix_socket, transport, headers, proxy, bearer
        As for :class:`~slurm_client.client.SlurmClient`.

    Attributes
    ----------
    calls
        Requests sent.
    bytes_received
        Bytes of all bodies.
    closed
        Whether no request is sent any more.

    Raises
    ------
    ValueError
        For a URL, a header or a proxy that cannot be used.
    """

    def __init__(
        self,
        base_urls: Sequence[str],
        *,
        max_concurrency: int,
        timeout: float,
        ca_bundle: str | Path | None,
        client_certificate: tuple[str | Path, str | Path] | None,
        unix_socket: str | Path | None,
        transport: httpx.AsyncBaseTransport | None,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        bearer: bool = False,
    ) -> None:
        self._base_urls = servers(base_urls)
        self._socket = f"unix:{unix_socket}" if unix_socket else ""
        self._chosen = 0
        self._bearer = bearer
        self._headers = extra_headers(headers, bearer=bearer)
        self._slots = asyncio.Semaphore(max_concurrency)
        self._http = http_client(
            self._base_urls,
            transport=transport,
            ca_bundle=ca_bundle,
            client_certificate=client_certificate,
            unix_socket=unix_socket,
            proxy=proxy,
            max_concurrency=max_concurrency,
            timeout=timeout,
        )
        self.calls = 0
        self.bytes_received = 0
        self.closed = False

    @property
    def base_url(self) -> str:
        """Where the next request goes."""
        return self._base_urls[self._chosen]

    @property
    def server(self) -> str:
        """Where the next request goes, for people: a URL, or ``unix:`` and the path of a socket."""
        return self._socket or self.base_url

    def turn_to_next_server(self) -> None:
        """Send what follows to another server, if there is one."""
        self._chosen = (self._chosen + 1) % len(self._base_urls)

    async def close(self) -> None:
        """Close all connections."""
        self.closed = True
        await self._http.aclose()

    async def send(
        self,
        request: errors.Request,
        token: str,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        hold: Hold,
        exchange: Exchange,
        *,
        writes: bool,
        user_name: str | None = None,
    ) -> Reply:
        """
        Send one request and return what was received.

        Parameters
        ----------
        request
            Method and path.
        token
            For the header ``X-SLURM-USER-TOKEN``, or ``Authorization``; none is sent where it is empty.
        query, body
            Parameters of the query (``None`` is left out, a list is repeated), and the JSON body.
        hold
            Room for the answer.
        exchange
            Told of the status and of the bytes received.
        writes
            Whether it changes anything.
        user_name
            For the header ``X-SLURM-USER-NAME``.

        Raises
        ------
        Unreachable
            If there was no answer; ``sent`` tells whether the request may have been carried out.
        Unauthorized
            If the token cannot be sent.
        InvalidRequest
            If the request cannot be sent at all.
        """
        import httpx

        if self.closed:
            raise _never_sent(closed_error(request))
        content = None if body is None else written(body)
        headers = self._headers_of(request, token, user_name, with_body=body is not None)
        params = {name: _parameter(value) for name, value in (query or {}).items() if value is not None}
        try:
            async with self._slots:
                self.calls += 1
                async with self._http.stream(
                    request.method,
                    self.base_url + request.path,
                    params=params,
                    headers=headers,
                    content=content,
                    extensions={wire.CHANGES_NOTHING: not writes},
                ) as response:
                    exchange.status = response.status_code
                    if response.status_code == 407:
                        raise _never_sent(errors.Unreachable(_refused("407"), request=request, status=407))
                    received = await receive(response, request, hold, lambda size: self._count(exchange, size))
                    return Reply(response.status_code, response.headers.get("content-type", ""), received)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise _never_sent(errors.Unreachable(f"cannot connect: {_words(error)}", request=request)) from error
        except httpx.ProxyError as error:
            raise _never_sent(errors.Unreachable(_refused(str(error)), request=request)) from error
        except httpx.TimeoutException as error:
            raise errors.Timeout(f"no answer: {_words(error)}", request=request) from error
        except (httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError) as error:
            raise errors.InvalidRequest(f"cannot be sent: {_words(error)}", request=request) from error
        except (httpx.HTTPError, RuntimeError) as error:
            # RuntimeError is what httpx says when it was closed in between.
            raise errors.Unreachable(f"the connection broke: {_how_it_broke(error)}", request=request) from error

    def _headers_of(
        self, request: errors.Request, token: str, user_name: str | None, *, with_body: bool
    ) -> dict[str, str]:
        """Return the headers of a request; Unauthorized if the token is no header."""
        headers = self._headers | {"Accept": "application/json", "Accept-Encoding": "identity"}
        if token:
            if not is_header_value(token):
                # What httpx says of it would repeat it.
                raise errors.Unauthorized("the token is not one line of printable ASCII", request=request)
            headers |= {"Authorization": f"Bearer {token}"} if self._bearer else {"X-SLURM-USER-TOKEN": token}
        if user_name is not None:
            headers["X-SLURM-USER-NAME"] = user_name
        if with_body:
            headers["Content-Type"] = "application/json"
        return headers

    def _count(self, exchange: Exchange, received: int) -> None:
        self.bytes_received += received
        exchange.count(received)


def closed_error(request: errors.Request) -> errors.ClientClosed:
    """Return the error of a call that the end of the client has ended."""
    return errors.ClientClosed("the client is closed", request=request)


def _never_sent(error: errors.Unreachable) -> errors.Unreachable:
    error.sent = False
    return error


def written(body: Mapping[str, Any]) -> bytes:
    """
    Return a body in JSON, as it is sent.

    Raises
    ------
    InvalidArgument
        If there is something in it that JSON lacks, such as a datetime.
    """
    try:
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.InvalidArgument(
            f"the body is not what JSON has: {errors.said(str(error))}; nothing was sent", field="body"
        ) from error


def _refused(words: str) -> str:
    """Say how a proxy refused, by its status alone: its words may be anybody's."""
    status = re.match(r"[1-5][0-9]{2}\b", words)
    return f"the proxy does not connect{f': it answered {status.group()}' if status else ''}"


def _parameter(value: Any) -> str | list[str]:
    """Write a parameter of a query; slurmrestd takes several values by the repeated name, and no commas."""
    return [str(each) for each in value] if isinstance(value, list | tuple) else str(value)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _how_it_broke(error: Exception) -> str:
    """Say how a connection broke, without quoting what was received: it may be anybody's."""
    import httpx

    words = _words(error)
    if isinstance(error, httpx.RemoteProtocolError) and not words.startswith(("Server disconnected", "peer closed")):
        return "what was received is no HTTP"
    return words
