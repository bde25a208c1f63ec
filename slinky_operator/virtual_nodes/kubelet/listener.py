"""The port of the kubelet API: how many connections there are, for how long, and whose.

A connection carries one request. Until its caller is known it has a few seconds, and a place in the share of its
address: a caller that opens many and says nothing loses them, and keeps nobody else out.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from typing_extensions import override

from slinky_operator.virtual_nodes.kubelet.shares import NoPlace, Place, Shares

logger = logging.getLogger(__name__)

HANDSHAKE_S: Final = 5.0
ASKING_S: Final = 15.0
"""Seconds until a caller must be known, from the connection on."""

EACH: Final = 32
"""Connections of one address whose caller is not known yet."""

TOTAL: Final = 64
"""The same of all; TLS takes some 300 KiB for each."""

BACKLOG: Final = 256
END_S: Final = 1.0
"""Seconds for answers that are under way when the process ends."""

_PASSING: Final = frozenset({errno.ECONNABORTED, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of one connection, or of a moment."""

PAUSE_S: Final = 0.1
"""Seconds until the next attempt to accept, where descriptors are used up."""

BEGINNING: Final = 8
"""Handshakes that are under way, beyond which connections are accepted one by one, `BEGINNING_S` apart: each handshake
is half a millisecond of work, and all that have something to read are done in one turn of the event loop."""

BEGINNING_S: Final = 0.001

HEAD: Final = 16_384
"""Most bytes of a line of a request's head: a token may be in one."""

Handler = Callable[[web.BaseRequest, Callable[[], None]], Awaitable[web.StreamResponse]]
"""Answers a request; the second argument is called once the caller is known and may ask."""

# Callers get what is wrong with their requests: anybody may send anything, and a line for each would fill the log.
_SILENT: Final = logging.getLogger(f"{__name__}.requests")
_SILENT.disabled = True


@dataclass(eq=False, slots=True)
class _Visit:
    """A connection whose caller is not known yet."""

    place: Place
    timer: asyncio.TimerHandle
    end: Callable[[], object]

    def over(self) -> None:
        """End it: it has taken too long, or gives way."""
        _ = self.end()


class Listener:
    """Accepts connections.

    Parameters
    ----------
    handler
        Answers requests.
    context
        What the next connection is accepted with.
    host, port
        Where to listen: on all addresses if there is no host; port 0 chooses a free one, in `port` after `listen`.
    shares
        Of connections whose caller is not known yet.
    asking
        Seconds until a caller must be known.
    """

    def __init__(
        self,
        handler: Handler,
        context: Callable[[], ssl.SSLContext],
        *,
        host: str = "",
        port: int = 0,
        shares: Shares | None = None,
        asking: float = ASKING_S,
    ) -> None:
        self._handler = handler
        self._context = context
        self._host, self.port = host, port
        self._asking = asking
        # One without a place that is taken is false.
        self.unknown = Shares(EACH, TOTAL) if shares is None else shares
        """Places of connections whose caller is not known yet."""
        self._visits: dict[RequestHandler, _Visit] = {}
        self._transports: dict[RequestHandler, asyncio.Transport] = {}
        self._beginning: set[asyncio.Task[None]] = set()
        self._socket: socket.socket | None = None

    def listen(self) -> None:
        """Open the port.

        Raises
        ------
        OSError
            It is in use.
        """
        dual = not self._host and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual or ":" in self._host else socket.AF_INET
        address = (self._host, self.port)
        self._socket = socket.create_server(address, family=family, dualstack_ipv6=dual, backlog=BACKLOG)
        self._socket.settimeout(0)
        self.port = self._socket.getsockname()[1]

    async def run(self) -> None:
        """Accept connections until it is cancelled; then all are closed."""
        if self._socket is None:
            self.listen()
        listening = self._socket
        if listening is None:
            raise OSError(errno.EBADF, "the port is not open")
        loop = asyncio.get_running_loop()
        server = _Server(self._answer, self._lost)
        try:
            while True:
                try:
                    connection, address = await loop.sock_accept(listening)
                except OSError as error:
                    if error.errno not in _PASSING:
                        raise
                    logger.warning("kubelet API: no connection can be accepted: %s", error.strerror)
                    await asyncio.sleep(PAUSE_S)
                    continue
                self._accepted(server, connection, str(address[0]))
                # A connection that waits already is accepted without a pause: others have their turn after each.
                await asyncio.sleep(BEGINNING_S if len(self._beginning) > BEGINNING else 0)
        finally:
            listening.close()
            for task in tuple(self._beginning):
                _ = task.cancel()
            await server.shutdown(END_S)
            for transport in tuple(self._transports.values()):
                # One with TLS is closed only when its other side agrees; by then aiohttp has forgotten it.
                transport.abort()
            await asyncio.sleep(0)

    def _accepted(self, server: web.Server, connection: socket.socket, address: str) -> None:
        """Give a connection its place, and begin with it in a task of its own."""
        connection.settimeout(0)
        visits: list[_Visit] = []

        def end() -> None:
            for visit in visits:
                visit.over()

        try:
            place = self.unknown.take(address, end)
        except NoPlace:
            connection.close()
            return
        protocol = server()
        task = asyncio.create_task(self._shake_hands(protocol, connection))
        visit = _Visit(place, asyncio.get_running_loop().call_later(self._asking, end), task.cancel)
        visits.append(visit)
        self._visits[protocol] = visit
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _shake_hands(self, protocol: RequestHandler, connection: socket.socket) -> None:
        """From then on the server has the connection."""
        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=self._context(),
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=HANDSHAKE_S,
            )
        except (OSError, asyncio.CancelledError) as error:
            logger.debug("kubelet API: no TLS connection: %s", error)
            connection.close()
            self._closed(protocol)
            return
        if not transport.is_closing():
            self._transports[protocol] = transport
        visit = self._visits.get(protocol)
        if visit is not None:
            visit.end = transport.abort

    def _lost(self, protocol: RequestHandler) -> None:
        """A connection is gone."""
        _ = self._transports.pop(protocol, None)
        self._closed(protocol)

    def _closed(self, protocol: RequestHandler) -> None:
        """A connection is gone, or its caller is known."""
        visit = self._visits.pop(protocol, None)
        if visit is not None:
            visit.timer.cancel()
            self.unknown.leave(visit.place)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        return await self._handler(request, lambda: self._closed(request.protocol))


class _Server(web.Server):
    """The server of aiohttp, which says when a connection is gone."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        lost: Callable[[RequestHandler], None],
    ) -> None:
        super().__init__(
            handler,
            access_log=None,
            logger=_SILENT,
            handler_cancellation=True,
            keepalive_timeout=0,
            lingering_time=0,
            max_line_size=HEAD,
            max_field_size=HEAD,
        )
        self._lost = lost

    @override
    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        self._lost(handler)
        super().connection_lost(handler, exc)
