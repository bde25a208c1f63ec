"""The front door: kopf watches what users write, and hands it on.

Each event of a Cluster or NodeSet goes into the mirror of its kind, which stores it and wakes whoever listens. Nothing
else happens in a handler: kopf neither retries nor reports what fails there, stores its state in annotations for any
other kind of handler, and reports no deletion of what vanished while its watch was broken (the mirrors' own slow relist
finds that out). What is done about a change is decided in the controllers.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import kopf
from typing_extensions import override

from slinky_operator.kube.connection import Connection
from slinky_operator.kube.discovery import until_shown
from slinky_operator.kube.mirror import Mirror

FIRST_PAUSE: Final = 1.0
"""Seconds before kopf's second attempt at a request."""

LONGEST_PAUSE: Final = 30.0
"""Seconds between two attempts at most."""


class Credentials(kopf.ConnectionInfo):
    """Credentials for kopf, checked as `kube.connection` checks the API server."""

    @override
    def as_ssl_context(self) -> ssl.SSLContext:
        """Return kopf's TLS settings without the demands of Python 3.13's strict mode, which many cluster CAs fail."""
        context = super().as_ssl_context()
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


class Backoffs(Iterable[float]):
    """Seconds between kopf's attempts, ever longer ones and without an end; kopf would give up after a minute."""

    @override
    def __iter__(self) -> Iterator[float]:
        pause = FIRST_PAUSE
        while True:
            yield pause * random.uniform(0.75, 1.0)  # noqa: S311 - jitter
            pause = min(2 * pause, LONGEST_PAUSE)


def registry(connection: Connection, mirrors: Sequence[Mirror]) -> kopf.OperatorRegistry:
    """Return kopf's handlers: log in as we do, feed each mirror.

    Parameters
    ----------
    connection
        Whose credentials kopf uses.
    mirrors
        One per custom resource.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    async def login(**_: Any) -> Credentials:
        return Credentials(**await connection.credentials())

    for mirror in mirrors:
        _feed(handlers, mirror)
    return handlers


def _feed(handlers: kopf.OperatorRegistry, mirror: Mirror) -> None:
    resource = mirror.resource

    @kopf.on.event(resource.group, resource.version, resource.plural, registry=handlers, id=f"feed-{resource.plural}")
    async def feed(type: str | None, body: Mapping[str, Any], **_: Any) -> None:  # noqa: A002 kopf's name
        # Not a plain function: kopf runs those in threads, and the queues belong to the event loop.
        mirror.feed(type, body)


def settings() -> kopf.OperatorSettings:
    """Return kopf's settings: it writes nothing, neither annotations nor Events, and asks for no other resource."""
    chosen = kopf.OperatorSettings()
    # The namespaces are given and the CRDs are there: no rights to list either are needed.
    chosen.scanning.disabled = True
    chosen.posting.enabled = False
    # An API server that is away, or refuses for a while, is waited for, however long that takes.
    chosen.networking.error_backoffs = Backoffs()
    # The signals are ours: the order of shutting down is decided in `app`.
    return chosen


async def run(
    connection: Connection,
    mirrors: Sequence[Mirror],
    *,
    identity: str,
    namespaces: Sequence[str],
    stop: asyncio.Event,
    ready: asyncio.Event,
) -> None:
    """Run kopf until `stop` is set or a signal asks the process to end.

    Parameters
    ----------
    identity
        This process; kopf would ask for a user name, and there is none in a container.
    namespaces
        Namespaces to watch; none means all.
    ready
        Set once kopf watches.

    Raises
    ------
    Exception
        What kopf could not bear: a watch that ends with an error other than 410, for example. The process is expected
        to end and to be started again.
    """
    # It looks once which kinds there are.
    await until_shown(connection, [mirror.resource for mirror in mirrors])
    await kopf.operator(
        registry=registry(connection, mirrors),
        settings=settings(),
        standalone=True,
        identity=cast("Any", identity),
        stop_flag=stop,
        ready_flag=ready,
        **({"namespaces": list(namespaces)} if namespaces else {"clusterwide": True}),
    )
