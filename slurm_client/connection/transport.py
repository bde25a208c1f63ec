"""
HTTP to slurmrestd: connections, headers, and what it means when one of them fails.

One request is sent once here. Repeating it is left to `session`, understanding the answer to `answer_reader`.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slurm_client import errors, wire
from slurm_client.connection.intake import receive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import httpx

    from slurm_client.connection.intake import Hold

__all__ = ["Reply", "Transport", "closed_error"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What was received."""

    status: int
    content_type: str
    text: str


class Transport:
    """
    Connections to one slurmrestd, or to several that serve the same Slurm.

    Parameters
    ----------
    base_urls
        Where it listens.
    user_name
        For the header ``X-SLURM-USER-NAME``.
    max_concurrency
        Requests under way at a time.
    timeout
        Seconds of the longest usual call.
    ca_bundle, client_certificate, unix_socket, transport
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
        For a URL that cannot be used.
    """

    def __init__(
        self,
        base_urls: Sequence[str],
        *,
        user_name: str | None,
        max_concurrency: int,
        timeout: float,
        ca_bundle: str | Path | None,
        client_certificate: tuple[str | Path, str | Path] | None,
        unix_socket: str | Path | None,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self._base_urls = [url.rstrip("/") for url in base_urls]
        self._chosen = 0
        self._user_name = user_name
        self._slots = asyncio.Semaphore(max_concurrency)
        self._http = _http_client(
            self._base_urls, transport, ca_bundle, client_certificate, unix_socket, max_concurrency, timeout
        )
        self.calls = 0
        self.bytes_received = 0
        self.closed = False

    @property
    def base_url(self) -> str:
        """Where the next request goes."""
        return self._base_urls[self._chosen]

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
        *,
        writes: bool,
    ) -> Reply:
        """
        Send one request and return what was received.

        Parameters
        ----------
        request
            Method and path.
        token
            For the header ``X-SLURM-USER-TOKEN``.
        query, body
            Parameters of the query (``None`` is left out), and the JSON body.
        hold
            Room for the answer.
        writes
            Whether it changes anything.

        Raises
        ------
        Unreachable
            If there was no answer; ``sent`` tells whether the request may have been carried out.
        InvalidRequest
            If it cannot be sent at all.
        """
        import httpx

        if self.closed:
            raise _never_sent(closed_error(request))
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
                    extensions={wire.CHANGES_NOTHING: not writes},
                ) as response:
                    received = await receive(response, request, hold, self._count)
                    return Reply(response.status_code, response.headers.get("content-type", ""), received)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise _never_sent(errors.Unreachable(f"cannot connect: {_words(error)}", request=request)) from error
        except httpx.TimeoutException as error:
            raise errors.Timeout(f"no answer: {_words(error)}", request=request) from error
        except (httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError) as error:
            raise errors.InvalidRequest(f"cannot be sent: {_words(error)}", request=request) from error
        except (httpx.HTTPError, RuntimeError) as error:
            # RuntimeError is what httpx says when it was closed in between.
            raise errors.Unreachable(f"the connection broke: {_how_it_broke(error)}", request=request) from error

    def _count(self, received: int) -> None:
        self.bytes_received += received


def closed_error(request: errors.Request) -> errors.ClientClosed:
    """Return the error of a call that the end of the client has ended."""
    return errors.ClientClosed("the client is closed", request=request)


def _never_sent(error: errors.Unreachable) -> errors.Unreachable:
    error.sent = False
    return error


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _how_it_broke(error: Exception) -> str:
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
