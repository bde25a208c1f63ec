"""The client: all operations on one slurmrestd, and what a caller must know about the connection."""

from __future__ import annotations

import copy
import re
import weakref
from typing import TYPE_CHECKING, Self

from slurm_client import errors
from slurm_client.connection.session import RetryPolicy, Session
from slurm_client.operations.database.database import Database
from slurm_client.operations.requests import RequestOperations
from slurm_client.operations.service import ServiceOperations
from slurm_client.tokens import NoToken, StaticToken, TokenProvider
from slurm_client.watch.watches import Watches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    import httpx

    from slurm_client.connection.circuit import Circuit, CircuitState
    from slurm_client.connection.intake import Intake
    from slurm_client.hooks import Hook
    from slurm_client.watch.pace import Pace

__all__ = ["RetryPolicy", "SlurmClient"]


_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$\\+-]{0,255}")
"""Names of users, also those of directories (``alice@example.org``); nothing that would end a header."""


class SlurmClient(Watches, ServiceOperations, RequestOperations):
    """
    One slurmrestd.

    Opening it sends nothing: the first call negotiates the data parser, or :meth:`connect` does. All calls raise
    :class:`~slurm_client.errors.SlurmError` and nothing else, and end within their time limit.

    Parameters
    ----------
    base_url
        ``http://host:port`` or ``https://…``; with ``unix_socket`` any host name will do. Of several slurmrestds for
        the same cluster, the next one is taken when one cannot be reached.
    token
        A provider, or a token as text. None is sent when absent: for ``rest_auth/local`` on a unix socket, and for
        gateways that know their users otherwise.
    api_version
        Data parser to speak, e.g. ``v0.0.42``; the newest common one when absent.
    timeout
        Seconds for a call with all its repetitions, unless the call says otherwise.
    retry
        How often and how fast calls are repeated that may be.
    user_name
        User to act for; slurmctld lets only SlurmUser and root do that.
    max_concurrency
        Requests under way at the same time; others wait their turn.
    circuit
        When to stop trying; one with its defaults when absent.
    ca_bundle, client_certificate
        File of certificates to trust; files of the certificate and key to show.
    unix_socket
        Path of the socket slurmrestd listens on.
    transport
        An httpx transport to use instead of the network.
    pace
        How often watches ask.
    intake
        Room for answers, which clients of one process may share; one of its own when absent.
    owner
        On whose behalf it asks: where answers take too much together, those of the largest owner give way.
    keep_raw
        Keep with each model the entry that it was read from, as ``model.raw``: a text of some kilobytes for each node
        and job.
    headers
        Sent with every request beside those of the client, e.g. for a gateway.
    proxy
        URL of an HTTP proxy; the environment's is never taken.
    bearer
        Send the token as ``Authorization: Bearer`` and not as ``X-SLURM-USER-TOKEN``.
    hook
        Told before and after each request: see :class:`~slurm_client.hooks.Hook`.

    Attributes
    ----------
    node_watch, job_watch, partition_watch, reservation_watch, license_watch
        What the watches know, how old it is, and ``refresh`` for single objects.

    Raises
    ------
    ValueError
        For a URL, a data parser, a header or a proxy that cannot be used.
    """

    def __init__(
        self,
        base_url: str | Sequence[str],
        token: TokenProvider | str | None = None,
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
        pace: Pace | None = None,
        intake: Intake | None = None,
        owner: str = "",
        keep_raw: bool = False,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        bearer: bool = False,
        hook: Hook | None = None,
    ) -> None:
        self._pace = pace
        self._views: weakref.WeakSet[SlurmClient] = weakref.WeakSet()
        self._parent: SlurmClient | None = None
        self._make_watches(pace)
        self._session = Session(
            base_url,
            NoToken() if token is None else StaticToken(token) if isinstance(token, str) else token,
            api_version=api_version,
            timeout=timeout,
            retry=retry,
            user_name=user_name,
            max_concurrency=max_concurrency,
            circuit=circuit,
            ca_bundle=ca_bundle,
            client_certificate=client_certificate,
            unix_socket=unix_socket,
            transport=transport,
            intake=intake,
            owner=owner,
            keep_raw=keep_raw,
            headers=headers,
            proxy=proxy,
            bearer=bearer,
            hook=hook,
        )

    @property
    def db(self) -> Database:
        """Calls to slurmdbd, on the same connection: job history, accounts, QOS, and what else accounting keeps."""
        return Database(self._session)

    def as_user(self, user: str, token: TokenProvider | str | None = None) -> SlurmClient:
        """
        Return a client for another user on the same connections, with the same data parser, circuit and limits.

        It has watches of its own. It ends with this client; closing it ends its watches and leaves the connections.

        Parameters
        ----------
        user
            Name of the user.
        token
            The user's own token, with which slurmctld knows the user. When absent, this client's token is sent with
            the name of the user (``X-SLURM-USER-NAME``), which slurmctld takes from SlurmUser and root alone. The
            name alone gives all rights of that user: never take it from a request that is not authenticated.

        Raises
        ------
        InvalidArgument
            If `user` is not a user name.
        """
        name: object = user
        if not isinstance(name, str) or _USER.fullmatch(name) is None:
            raise errors.InvalidArgument(f"as_user: {user!r:.40} is not a user name; nothing was sent", field="user")
        if token is not None and not isinstance(token, str | TokenProvider):
            raise errors.InvalidArgument("as_user: token is no token and gives none; nothing was sent", field="token")
        given = StaticToken(token) if isinstance(token, str) else token
        view = copy.copy(self)
        view._belong_to(self, self._session.as_user(user if given is None else None, given))  # noqa: SLF001 - a client
        self._views.add(view)
        return view

    def _belong_to(self, parent: SlurmClient, session: Session) -> None:
        self._parent, self._session, self._views = parent, session, weakref.WeakSet()
        self._make_watches(self._pace)

    async def connect(self) -> str:
        """Negotiate the data parser now, and return it, e.g. ``v0.0.42``."""
        return await self._session.connect()

    @property
    def base_url(self) -> str:
        """Where the next call goes."""
        return self._session.base_url

    @property
    def api_version(self) -> str | None:
        """Data parser in use; ``None`` before the first call."""
        return self._session.api_version

    @property
    def slurm_version(self) -> str:
        """Release of the Slurm that answered last, e.g. ``24.11.5``; empty before the first call."""
        return self._session.release

    @property
    def circuit(self) -> CircuitState:
        """Whether calls are tried at all, since when not, and why."""
        return self._session.circuit.state

    @property
    def calls(self) -> int:
        """Requests sent so far."""
        return self._session.calls

    @property
    def bytes_received(self) -> int:
        """Bytes of all bodies received so far."""
        return self._session.bytes_received

    async def close(self) -> None:
        """End all watches and close all connections; of a client for another user, the watches alone."""
        for view in list(self._views):
            await view.close()
        await self._close_watches()
        if self._parent is None:
            await self._session.close()
        else:
            self._session.forget()

    async def __aenter__(self) -> Self:
        """Return the client; nothing is sent yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
