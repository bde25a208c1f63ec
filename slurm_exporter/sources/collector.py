"""The watches and polls of one client, and the snapshot of what they know.

Each runs at its own pace: the number of scrapers changes nothing here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

from slurm_client import SlurmClient
from slurm_client.watch import Watch
from slurm_exporter.sources.health import Health
from slurm_exporter.sources.polled import Polled
from slurm_exporter.sources.snapshot import Snapshot

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often Slurm is asked, and for how long an answer is shown.

    Parameters
    ----------
    interval
        Seconds between polls of lists and counters.
    slow_interval
        Seconds between polls of what changes slowly: fair share.
    stale_after
        Seconds after which data that Slurm did not confirm is not exported any more.
    """

    interval: float = 10.0
    slow_interval: float = 60.0
    stale_after: float = 120.0


class Collector:
    """What is asked of one slurmrestd.

    Parameters
    ----------
    client
        Connection; its watches poll at `Cadence.interval` if it was built with that pace.
    cadence
        How often.
    accounting
        Whether to ask for what slurmdbd knows.
    clock, now
        Monotonic seconds; wall-clock time.

    Attributes
    ----------
    tasks
        What polls; none of them ends by itself.
    """

    def __init__(
        self,
        client: SlurmClient,
        cadence: Cadence,
        *,
        accounting: bool = True,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._cadence = cadence
        self._clock = clock
        self._now = now
        self._watches: dict[str, Watch[Any]] = {
            "nodes": client.node_watch,
            "jobs": client.job_watch,
            "partitions": client.partition_watch,
            "reservations": client.reservation_watch,
            "licenses": client.license_watch,
        }
        self._polls: dict[str, Polled[Any]] = {
            "diag": self._polled("diag", client.diag),
            "ping": self._polled("ping", client.ping),
        }
        if accounting:
            self._polls["shares"] = Polled("shares", client.shares, cadence.slow_interval, clock)
            self._polls["slurmdbd"] = Polled("slurmdbd", client.db.ping, cadence.slow_interval, clock)
        self.tasks: list[asyncio.Task[None]] = []

    def _polled(self, name: str, ask: Callable[[], Awaitable[T]]) -> Polled[T]:
        return Polled(name, ask, self._cadence.interval, self._clock)

    async def __aenter__(self) -> Self:
        for name, watch in self._watches.items():
            self.tasks.append(asyncio.create_task(self._drain(watch), name=f"events of {name}"))
        for name, poll in self._polls.items():
            self.tasks.append(asyncio.create_task(poll.run(), name=f"polls of {name}"))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    @property
    def crashed(self) -> str:
        """What broke, other than Slurm; empty if nothing did. A process that says something here must be restarted."""
        for task in self.tasks:
            if task.done() and not task.cancelled():
                return f"{task.get_name()}: {task.exception() or 'ended'}"
        return ""

    async def _drain(self, watch: Watch[Any]) -> None:
        """Read a watch, so that it polls; what it knows is taken from its picture."""
        async with watch.reader() as events:
            async for _ in events:
                pass

    def snapshot(self) -> Snapshot:
        """What is known now, without what is too old."""
        lists = {name: self._objects(name) for name in self._watches}
        answers = {name: self._answer(poll) for name, poll in self._polls.items()}
        return Snapshot(
            now=self._now(),
            release=self._client.slurm_version,
            data_parser=self._client.api_version or "",
            **lists,
            diag=answers["diag"],
            pings=answers["ping"],
            shares=answers.get("shares"),
            database_pings=answers.get("slurmdbd"),
            health=self.health(),
        )

    def health(self) -> tuple[Health, ...]:
        """How each source is doing."""
        return (*(self._watch_health(name) for name in self._watches), *(poll.health for poll in self._polls.values()))

    def _objects(self, name: str) -> Mapping[str, Any] | None:
        status = self._watches[name].status
        if not status.synced or status.age is None or status.age > self._cadence.stale_after:
            return None
        # A copy: the live view changes while the snapshot is counted.
        return dict(self._watches[name].objects)

    def _answer(self, poll: Polled[T]) -> T | None:
        confirmed = poll.health.confirmed_at
        if confirmed is None or self._clock() - confirmed > max(
            self._cadence.stale_after, 3 * self._cadence.slow_interval
        ):
            return None
        return poll.answer

    def _watch_health(self, name: str) -> Health:
        status = self._watches[name].status
        return Health(
            name,
            status.synced and status.error is None,
            None if status.age is None else self._clock() - status.age,
            status.polls,
            status.failed_polls,
            status.duration,
            "" if status.error is None else str(status.error)[:500],
        )
