"""
The HTTP client of a session: where connections go, what they trust, and what is said in every request.

No redirects are followed, and nothing is taken from the environment. What an answer means is left to others.
"""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import httpx

__all__ = ["extra_headers", "http_client", "is_header_value", "refuse_cookies", "servers"]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"[\x21-\x7e]([\t\x20-\x7e]{0,8190}[\x21-\x7e])?")
_OURS = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "transfer-encoding",
        "x-slurm-user-name",
        "x-slurm-user-token",
    }
)


def extra_headers(headers: Mapping[str, str] | None, *, bearer: bool) -> dict[str, str]:
    """
    Return headers that may be sent beside those of the client.

    Parameters
    ----------
    bearer
        Whether the client sets ``Authorization``.

    Raises
    ------
    ValueError
        For a header of the client's own, and for what is no header. The value is not repeated: it may be a secret.
    """
    ours = _OURS | {"authorization"} if bearer else _OURS
    for name, value in (headers or {}).items():
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"not the name of a header: {name!r:.60}")
        if name.lower() in ours:
            raise ValueError(f"the client sets the header {name} itself")
        if not is_header_value(value):
            raise ValueError(f"the value of the header {name} is not one line of printable ASCII")
    return dict(headers or {})


def is_header_value(text: str) -> bool:
    """Whether a text can be the value of a header: one line of printable ASCII, at most 8 KiB."""
    return _VALUE.fullmatch(text) is not None


def servers(base_urls: Sequence[str]) -> list[str]:
    """
    Return the URLs to which paths are added.

    Raises
    ------
    ValueError
        For a URL that cannot be used, and for none.
    """
    import httpx

    if not base_urls:
        raise ValueError("there must be a URL")
    for base_url in base_urls:
        if any(character in base_url for character in "?#@"):
            # The paths of slurmrestd would become a part of them.
            raise ValueError("a URL must have no query, no fragment and no password")
        url = httpx.URL(base_url)
        if url.scheme not in {"http", "https"} or not url.host:
            raise ValueError(f"not an http or https URL: {str(url)!r}")
    return [base_url.rstrip("/") for base_url in base_urls]


def http_client(
    base_urls: Sequence[str],
    *,
    transport: httpx.AsyncBaseTransport | None,
    ca_bundle: str | Path | None,
    client_certificate: tuple[str | Path, str | Path] | None,
    unix_socket: str | Path | None,
    proxy: str | None,
    max_concurrency: int,
    timeout: float,
) -> httpx.AsyncClient:
    """
    Build the one HTTP client of a session. Parameters as for :class:`~slurm_client.client.SlurmClient`.

    Raises
    ------
    ValueError
        For a proxy that cannot be used, or not together with a socket or a transport.
    """
    import httpx

    if proxy is not None and (transport is not None or unix_socket is not None):
        raise ValueError("a proxy goes neither with a transport nor with a unix socket")
    verify: ssl.SSLContext | bool = False
    if any(url.startswith("https:") for url in base_urls):
        verify = ssl.create_default_context(cafile=str(ca_bundle) if ca_bundle else None)
        if client_certificate is not None:
            certificate, key = client_certificate
            verify.load_cert_chain(str(certificate), str(key))
    if transport is None:
        transport = httpx.AsyncHTTPTransport(
            verify=verify,
            uds=str(unix_socket) if unix_socket else None,
            proxy=_proxy(proxy, ca_bundle) if proxy is not None else None,
            limits=httpx.Limits(max_connections=max_concurrency, max_keepalive_connections=max_concurrency),
            trust_env=False,
        )
    # The session's own time limit is over everything; this one only notices a dead connection inside a longer limit.
    client = httpx.AsyncClient(transport=transport, timeout=httpx.Timeout(max(timeout, 60.0)), trust_env=False)
    refuse_cookies(client)
    return client


def refuse_cookies(client: httpx.AsyncClient) -> None:
    """Let an HTTP client keep no cookie: slurmrestd sets none, and another server could set some with each answer."""
    from http.cookiejar import DefaultCookiePolicy

    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))


def _proxy(url: str, ca_bundle: str | Path | None) -> httpx.Proxy:
    """Return a proxy; its URL may hold a password and is not repeated in errors."""
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        parsed = httpx.URL("")
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ValueError("the proxy is not an http or https URL")
    context = ssl.create_default_context(cafile=str(ca_bundle) if ca_bundle else None)
    return httpx.Proxy(parsed, ssl_context=context if parsed.scheme == "https" else None)
