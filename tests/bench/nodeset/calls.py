"""Counts requests to Slurm: polls for changed nodes separately from other calls."""

from __future__ import annotations

from collections import Counter

import httpx
from typing_extensions import override

POLL = "poll"


class Counting(httpx.AsyncHTTPTransport):
    """The network, with a count.

    Attributes
    ----------
    counts
        Requests by kind: `poll` for a list of nodes that was asked for only if it has changed, else method and path.
    """

    def __init__(self) -> None:
        super().__init__(trust_env=False)
        self.counts: Counter[str] = Counter()

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.counts[_kind(request)] += 1
        return await super().handle_async_request(request)

    def read(self) -> Counter[str]:
        """What has been asked so far."""
        return Counter(self.counts)


def told(asked: Counter[str], factor: float = 1.0) -> str:
    """What was asked, calls and polls; with a factor to make it the number in another time."""
    polls = asked[POLL]
    return f"{(asked.total() - polls) * factor:.0f} + {polls * factor:.0f}"


def _kind(request: httpx.Request) -> str:
    if request.method == "GET" and "update_time" in request.url.params:
        return POLL
    *_, collection, rest = request.url.path.split("/")
    # Of one node or one job all are the same kind.
    return f"{request.method} {collection if not rest or collection in {'node', 'job'} else rest}"
