"""HTTP: `/metrics` and other pages that are ready, `/livez` and `/readyz`.

A request is answered from what is there. It never makes a call to Slurm, and never waits for one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from aiohttp import web

from slurm_exporter.page.text import CONTENT_TYPE

_log = logging.getLogger("slurm_exporter")

Page = Callable[[], bytes]
"""Returns a page that is ready. Must not block."""

Check = Callable[[], str]
"""Returns what is wrong, or an empty text."""

_INDEX = "slurm-exporter\n\n{pages}\n/livez\n/readyz\n"


class Server:
    """Serves pages.

    Parameters
    ----------
    pages
        Page by path.
    is_live, is_ready
        What is wrong with the process; why the pages have nothing to show yet.
    host, port
        Where to listen: on all addresses if no host is given; port 0 chooses a free one, in `port` after `start`.
    """

    def __init__(
        self, pages: Mapping[str, Page], is_live: Check, is_ready: Check, *, host: str | None = None, port: int = 8080
    ) -> None:
        self._pages = pages
        self._is_live = is_live
        self._is_ready = is_ready
        self._host = host
        self.port = port
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Start to listen.

        Raises
        ------
        OSError
            If the port is in use.
        """
        app = web.Application()
        for path in self._pages:
            app.router.add_get(path, self._answer_page)
        app.router.add_get("/livez", self._answer_live)
        app.router.add_get("/readyz", self._answer_ready)
        app.router.add_get("/", self._answer_index)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self.port).start()
        self.port = self._runner.addresses[0][1]
        _log.info("metrics on port %d: %s", self.port, ", ".join(self._pages))

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer_page(self, request: web.Request) -> web.Response:
        return web.Response(body=self._pages[request.path](), headers={"Content-Type": CONTENT_TYPE})

    async def _answer_live(self, _: web.Request) -> web.Response:
        return _verdict(self._is_live())

    async def _answer_ready(self, _: web.Request) -> web.Response:
        return _verdict(self._is_live() or self._is_ready())

    async def _answer_index(self, _: web.Request) -> web.Response:
        return web.Response(text=_INDEX.format(pages="\n".join(self._pages)))


def _verdict(problem: str) -> web.Response:
    return web.Response(status=503 if problem else 200, text=f"{problem or 'ok'}\n")
