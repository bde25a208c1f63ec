"""HTTP: `/metrics` and other pages that are ready, `/livez` and `/readyz`.

A request is answered from what is there. It never makes a call to Slurm, and never waits for one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from aiohttp import web
from prometheus_client import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from slurm_exporter.samples.family import Samples

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


CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4


class _One:
    """A registry of one family."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        """Give the family."""
        yield self._metric


def written(samples: Samples, labels: Mapping[str, str]) -> bytes:
    """Write a family; nothing if it has no samples.

    Parameters
    ----------
    samples
        The family and its values.
    labels
        Labels that each sample gets besides its own.
    """
    if not samples.values:
        return b""
    family = samples.family
    name = family.name.removesuffix("_total") if family.kind.value == "counter" else family.name
    metric = Metric(name, family.text, family.kind.value)
    for values, value in samples.values.items():
        metric.add_sample(family.name, {**labels, **dict(zip(family.labels, values, strict=True))}, float(value))
    return generate_latest(_One(metric))


def series(samples: Iterable[Samples]) -> int:
    """How many samples there are."""
    return sum(len(each.values) for each in samples)
