"""`/livez`, `/readyz`, `/healthz` and `/metrics` on one port.

Liveness fails if this process must be restarted: dead or stuck workers, crashed background tasks. A stuck event loop
does not answer, which has the same effect. Readiness means that it can do its work: caches are filled. A standby
without leadership is ready, since otherwise no Deployment could be rolled out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from slinky_operator.runtime import threads

logger = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""Returns the problem, or `None`. Must not block."""


class HealthServer:
    """HTTP server for the kubelet and for Prometheus.

    Parameters
    ----------
    registry
        Metrics to serve.
    host, port
        Where to listen: on all addresses if no host is given; port 0 chooses a free port, in `port` after `start`.
    """

    def __init__(self, registry: CollectorRegistry, *, host: str | None = None, port: int = 8080) -> None:
        self._registry = registry
        self._host = host
        self.port = port
        self._live: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}
        self._runner: web.AppRunner | None = None
        self._scrape = asyncio.Lock()

    def add_liveness(self, name: str, check: Check) -> None:
        """Add a check whose failure restarts the process."""
        self._live[name] = check

    def add_readiness(self, name: str, check: Check | asyncio.Event) -> None:
        """Add a check whose failure removes the pod from Services and halts rollouts; an event fails until set."""
        if isinstance(check, asyncio.Event):
            event = check
            self._ready[name] = lambda: None if event.is_set() else "not yet"
        else:
            self._ready[name] = check

    async def start(self) -> None:
        """Start to listen.

        Raises
        ------
        OSError
            If the port is in use.
        """
        app = web.Application()
        app.router.add_get("/livez", self._answer_live)
        app.router.add_get("/healthz", self._answer_live)
        app.router.add_get("/readyz", self._answer_ready)
        app.router.add_get("/metrics", self._answer_metrics)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        logger.info("health and metrics on port %d", self.port)

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer_live(self, _: web.Request) -> web.Response:
        return _verdict(self._live)

    async def _answer_ready(self, _: web.Request) -> web.Response:
        return _verdict({**self._live, **self._ready})

    async def _answer_metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        # A page about thousands of objects takes tenths of a second; scrapers wait for each other.
        async with self._scrape:
            page = await threads.PAGES.run(("", "metrics"), encode, self._registry)
        return web.Response(body=page, headers={"Content-Type": content_type})


def _verdict(checks: dict[str, Check]) -> web.Response:
    lines: list[str] = []
    healthy = True
    for name, check in checks.items():
        try:
            wrong = check()
        except Exception as error:
            logger.exception("health check %s failed to run", name)
            wrong = f"{type(error).__name__}: {error}"
        healthy = healthy and wrong is None
        lines.append(f"[+]{name} ok" if wrong is None else f"[-]{name} failed: {wrong}")
    return web.Response(status=200 if healthy else 503, text="\n".join([*lines, "ok" if healthy else "failed", ""]))
