"""A slurmdbd's job history behind a transport: it finds jobs by time and state as slurmdbd does (24.11 and 26.05)."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from slurm_client import SlurmClient
from slurm_client.connection.intake import Intake
from tests.unit.slurm_client.clients import SOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DOWN = {
    "errors": [
        {
            "description": "Failed to open slurmdbd connection",
            "error_number": 7000,
            "error": "Unable to connect to database",
            "source": "openapi_get_db_conn",
        }
    ]
}
"""What slurmrestd says without a slurmdbd, and (26.05) where slurmdbd refuses the token."""


@dataclass
class Run:
    """One run of a job, in seconds since 1970; ``end`` is 0 while it runs."""

    id: int
    eligible: int
    start: int
    end: int
    state: str = "COMPLETED"
    user: str = "root"
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def entry(self) -> dict[str, Any]:
        """What slurmrestd writes of it."""
        time = {"submission": self.eligible, "eligible": self.eligible, "start": self.start, "end": self.end}
        state = {"current": [self.state], "reason": "None"}
        return {"job_id": self.id, "cluster": "test", "user": self.user, "time": time, "state": state, **self.more}


@dataclass
class Slurmdbd:
    """Jobs, and what was asked for."""

    runs: list[Run] = field(default_factory=list)
    queries: list[dict[str, str]] = field(default_factory=list)
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        path = request.url.path.partition("/v0.0.")[2].partition("/")[2]
        service = request.url.path.split("/")[1]
        self.requests.append(f"{request.method} {service}/{path}")
        if request.method == "POST":
            self.bodies.append(json.loads(request.content))
        for prefix, (status, body) in self.answers.items():
            if f"{service}/{path}".startswith(prefix):
                return httpx.Response(status, json=body)
        if path == "jobs/" and service == "slurmdb":
            query = dict(request.url.params)
            self.queries.append(query)
            return httpx.Response(200, content=json.dumps({"jobs": self._found(query)}).encode())
        return httpx.Response(200, json={"pings": [], "licenses": []})

    def _found(self, query: dict[str, str]) -> list[dict[str, Any]]:
        since, until = (int(query[name].removeprefix("uts")) for name in ("start_time", "end_time"))
        return [
            run.entry
            for run in self.runs
            if run.user == query.get("users", run.user) and _is_in(run, query.get("state"), since, until)
        ]


def _is_in(run: Run, state: str | None, since: int, until: int) -> bool:
    """Whether a job is found in a time; one that ran no second is not found as running on the borders of two times."""
    if state is None:
        return run.eligible < until and (not run.end or run.end >= since)
    if state == "RUNNING":
        return run.start < until and (not run.end or run.end > since)
    return run.state == state and since <= run.end <= until


@asynccontextmanager
async def client(slurmdbd: Slurmdbd, **options: Any) -> AsyncIterator[SlurmClient]:
    """A client of it, which repeats without long pauses."""
    options.setdefault("token", "token")
    options.setdefault("intake", Intake())
    transport = httpx.MockTransport(slurmdbd.answer)
    async with SlurmClient("http://slurm", transport=transport, retry=SOON, **options) as slurm:
        yield slurm
