"""Where the API server is and how to log in: configuration, credentials, TLS and the HTTP session.

The `kubernetes` package finds and refreshes the credentials (service account token, re-read every minute;
kubeconfig with client certificates, tokens, exec and OIDC plugins). Requests then go over one aiohttp session built
from its configuration: its own request layer decodes into typed models that drop unknown fields and cost several
times more CPU.

This module logs, once, when the API server stops answering and when it answers again; callers that wait for it log
nothing. The meaning of requests, and which answers are errors, is left to `client`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import aiohttp

from slinky_operator.kube.calls.login import (
    KUBE_CONFIG_DEFAULT_LOCATION,
    ConfigException,
    Configuration,
    load_incluster_config,
    load_kube_config,
)
from slinky_operator.kube.leadership.fence import Fence

logger = logging.getLogger(__name__)

KEPT: Final = 60.0
"""Seconds for which a connection is kept for the next request: each new one takes a TLS handshake, and API servers
close them after 90 s."""

FAREWELL: Final = 0.1
"""Seconds for TLS connections to be closed by the other side."""


class NoCredentials(Exception):
    """Neither a service account nor a usable kubeconfig was found."""


class FenceClosed(Exception):
    """Raised inside the HTTP client to keep a request from being sent; never leaves the package."""


class Connection:
    """An authenticated HTTP session with the API server; close it when done.

    Parameters
    ----------
    configuration
        A `kubernetes.aio` configuration. Use `connect` to make one.
    reload
        Refreshes the configuration in place after the server answered 401; `None` if there is nothing to refresh.
    """

    def __init__(self, configuration: Any, *, reload: Callable[[], Awaitable[None]] | None = None) -> None:
        self._configuration = configuration
        self._reload = reload
        self._base = str(configuration.host).rstrip("/")
        self._environments_proxy = _proxy_for(self._base)
        self._session: aiohttp.ClientSession | None = None
        self._in_use: dict[aiohttp.ClientSession, int] = {}
        self._silent_since: float | None = None

    @classmethod
    async def connect(cls, kubeconfig: Path | None = None, context: str | None = None) -> Self:
        """Find the API server: the given kubeconfig, else the service account, else the default kubeconfig.

        Raises
        ------
        NoCredentials
            If there is none, or what there is cannot be used.
        """
        configuration = Configuration()
        if kubeconfig is None:
            try:
                load_incluster_config(client_configuration=configuration)
            except ConfigException:
                logger.debug("no service account here, looking for a kubeconfig")
            else:
                return cls(configuration)
        path = str(kubeconfig or KUBE_CONFIG_DEFAULT_LOCATION)

        async def load() -> None:
            await load_kube_config(
                config_file=path, context=context, client_configuration=configuration, persist_config=False
            )

        try:
            await load()
        except (ConfigException, OSError) as error:
            raise NoCredentials(f"no service account, and kubeconfig {path} cannot be used: {error}") from error
        return cls(configuration, reload=load)

    @property
    def host(self) -> str:
        """Base URL of the API server."""
        return self._base

    @asynccontextmanager
    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str | None = None,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - handed to the HTTP client
        fence: Fence | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send one request and hand over the answer with its body unread.

        Parameters
        ----------
        fence
            Looked at again right before bytes leave; `None` for requests that change nothing.

        Raises
        ------
        aiohttp.ClientError, TimeoutError
            As the transport does.
        FenceClosed
            If the fence closed before the request was sent.
        """
        session = self._session or self._open()
        headers = await self._headers(content_type)
        self._in_use[session] = self._in_use.get(session, 0) + 1
        answered = False
        try:
            async with session.request(
                method,
                self._base + path,
                params=query,
                data=body,
                headers=headers,
                timeout=timeout,
                trace_request_ctx=fence,
                **self._route(),
            ) as response:
                answered = True
                self._note_answer()
                try:
                    yield response
                finally:
                    # A watch given up is cut at once: a polite TLS farewell would outlive the event loop.
                    if response.connection is not None and response.connection.transport is not None:
                        response.connection.transport.abort()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            closed = _fence_behind(error)
            if closed is not None:
                raise closed from None
            if not answered:
                self._note_silence(error)
            raise
        finally:
            self._in_use[session] -= 1
            if not self._in_use[session]:
                del self._in_use[session]
                if session is not self._session:
                    await session.close()

    async def credentials(self) -> dict[str, Any]:
        """Return server, CA, token and client certificate as they are now, by the names kopf gives them.

        For the one other client in the process; it asks again when the server answers 401.
        """
        configuration = self._configuration
        authorization = await configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        # "Bearer x" from a kubeconfig, "bearer x" from a service account; kopf writes the first word itself.
        token = authorization.split(" ", 1)[-1] if authorization else None
        found = {
            "server": self._base,
            "insecure": not configuration.verify_ssl,
            "ca_path": configuration.ssl_ca_cert,
            "ca_data": configuration.ca_cert_data,
            "certificate_path": configuration.cert_file,
            "private_key_path": configuration.key_file,
            "username": configuration.username,
            "password": configuration.password,
            "token": token,
            "proxy_url": configuration.proxy,
        }
        return {name: value for name, value in found.items() if value}

    async def refresh(self) -> bool:
        """Refresh the credentials after a 401; returns whether a second attempt makes sense."""
        if self._reload is None:
            # The service account token is re-read by its own hook, at most once a minute.
            return False
        await self._reload()
        # Client certificates live in the session's TLS context, so a new session is needed. Requests under way on
        # the old one, watches among them, must not be cut: the last of them closes it.
        old, self._session = self._session, None
        if old is not None and old not in self._in_use:
            await old.close()
        return True

    async def close(self) -> None:
        """Close the session; requests under way fail."""
        sessions = {session for session in (*self._in_use, self._session) if session is not None}
        self._session = None
        if not sessions:
            return
        for session in sessions:
            await session.close()
        # Connections of requests cancelled on their way say a TLS farewell, and aiohttp tells nobody when it is over.
        await asyncio.sleep(FAREWELL)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _note_answer(self) -> None:
        if self._silent_since is not None:
            logger.info("the API server answers again, after %.0f s", time.monotonic() - self._silent_since)
            self._silent_since = None

    def _note_silence(self, error: Exception) -> None:
        if self._silent_since is None:
            self._silent_since = time.monotonic()
            words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            logger.warning("the API server does not answer, waiting for it: %s", words)

    async def _headers(self, content_type: str | None) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if content_type:
            headers["Content-Type"] = content_type
        # The configuration's hook rereads a service account token after a minute.
        authorization = await self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if authorization:
            headers["Authorization"] = authorization
        return headers

    def _route(self) -> dict[str, Any]:
        """Proxy and TLS name, for the few who have them."""
        options: dict[str, Any] = {}
        if self._configuration.tls_server_name:
            options["server_hostname"] = self._configuration.tls_server_name
        if self._configuration.proxy:
            options["proxy"] = self._configuration.proxy
            options["proxy_headers"] = self._configuration.proxy_headers
        elif self._environments_proxy is not None:
            options["proxy"] = self._environments_proxy
        return options

    def _open(self) -> aiohttp.ClientSession:
        configuration = self._configuration
        tls: ssl.SSLContext | bool = True
        if self._base.startswith("https"):
            tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
            if configuration.cert_file:
                tls.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
            if not configuration.verify_ssl:
                tls.check_hostname = False
                tls.verify_mode = ssl.CERT_NONE
            # Cluster CAs are often made without the extensions that Python 3.13's strict mode demands.
            tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        guard = aiohttp.TraceConfig()
        guard.on_request_headers_sent.append(_check_fence)
        guard.on_request_chunk_sent.append(_check_fence)
        self._session = aiohttp.ClientSession(
            # Concurrency is bounded by the client, where a lease renewal cannot be starved by other requests.
            connector=aiohttp.TCPConnector(ssl=tls, limit=0, keepalive_timeout=KEPT),
            # It would look for proxies, and passwords in a .netrc, in two threads before each request.
            trust_env=False,
            trace_configs=[guard],
            # A compressed list costs more CPU on both ends than it saves inside a cluster.
            skip_auto_headers=["Accept-Encoding"],
        )
        return self._session


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address, in the variables that kubectl reads."""
    parts = urlsplit(url)
    if not parts.hostname or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


async def _check_fence(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    """Stop the request if its fence has closed; aiohttp writes to the socket right after, without an `await`."""
    fence: Fence | None = context.trace_request_ctx
    if fence is not None and (why := fence.closed_because()):
        raise FenceClosed(why)


def _fence_behind(error: BaseException) -> FenceClosed | None:
    """The fence's word behind an error of the transport: while a body is written it comes wrapped as one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, FenceClosed):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None
