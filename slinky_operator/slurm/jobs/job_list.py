"""The jobs of one Cluster, requested as rarely as planning allows: a full list is the most expensive query.

At 6,000 jobs an answer is 35 MB, and takes half a second of slurmrestd's time and as much here. So all planners share
the answers, and an answer is used until the budget allows another query (`query_budget`). A query right before
something irreversible is never delayed but by one that is under way: all who want one meanwhile share the next. It is
counted, and its answer serves the planners too.

Of jobs without nodes, pending ones included, only those are kept that name nodes, with nothing else of them
(`node_references.remembered`): no planner needs the others.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Final

from slinky_operator.kube.cache.weight import run_in_thread
from slinky_operator.runtime import threads
from slinky_operator.slurm.jobs.query_budget import LONGEST_WAIT, Budget
from slinky_operator.slurm.nodes.node_references import remembered
from slurm_client import errors
from slurm_client.models import Job

AGE: Final = 1.0
"""Seconds for which one answer serves everybody who plans, as long as no node changes."""

THREAD_THRESHOLD: Final = 1_000
"""Jobs from which on an answer is looked through in a thread: each takes some microseconds, one that names nodes 30."""


class _Asked:
    """A question, when it was asked, and its answer."""

    def __init__(self, at: float, question: Awaitable[Sequence[Job]]) -> None:
        self.at = at
        self.answer = asyncio.ensure_future(question)
        # Read here too: all who asked may have gone by the time it fails.
        self.answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())

    @property
    def failed(self) -> bool:
        """Whether it has come to nothing."""
        done = self.answer.done()
        return done and (self.answer.cancelled() or self.answer.exception() is not None)


class _Turns:
    """A question that is asked once at a time; who comes while it is asked shares the next answer with others.

    Many who ask at once would otherwise slow each other down, until none has its answer in time.
    """

    def __init__(self, ask: Callable[[], Awaitable[Sequence[Job]]]) -> None:
        self._ask = ask
        self._running: asyncio.Task[Sequence[Job]] | None = None
        self._next: asyncio.Task[Sequence[Job]] | None = None

    async def answer(self) -> Sequence[Job]:
        """The answer to a question that is asked from now on; raises `SlurmError`."""
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
            self._next.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
        question = self._next
        await asyncio.wait({question})
        if question.cancelled():
            raise errors.ClientClosed("the question for jobs was given up")
        return question.result()

    async def _after(self, running: asyncio.Task[Sequence[Job]] | None) -> Sequence[Job]:
        if running is not None:
            await asyncio.wait({running})
        # From here on it is too late to share this one.
        self._running, self._next = self._next, None
        try:
            return await self._ask()
        finally:
            # Its list is nobody's any more.
            self._running = None


class Jobs:
    """What is known of the jobs of one Cluster.

    Parameters
    ----------
    ask
        Asks Slurm for all jobs; raises `SlurmError`.
    clock
        Seconds that are never set back.
    ask_briefly
        Asks for those that hold nodes, and for what the others name; the same as `ask`, if absent.
    key
        Namespace of the Cluster, and what identifies it: long lists are read in a thread, one at a time.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[Iterable[Job]]],
        clock: Callable[[], float] = time.monotonic,
        *,
        ask_briefly: Callable[[], Awaitable[Iterable[Job]]] | None = None,
        key: threads.Key = ("", "jobs"),
    ) -> None:
        self._all = _Turns(partial(self._ask_all, ask))
        self._brief = _Turns(partial(self._timed, ask_briefly or ask))
        self._key = key
        self._clock = clock
        self._asked: _Asked | None = None
        self._changed_at = -math.inf
        self._answered_at = -math.inf
        """When planners last had an answer."""
        self._budget = Budget(clock)

    def changed(self) -> None:
        """Note that a node has changed: an older answer may be wrong."""
        self._changed_at = self._clock()

    async def shared(self, since: float = -math.inf) -> Sequence[Job]:
        """The jobs that have or name nodes, by an answer that others may have asked for.

        Parameters
        ----------
        since
            An answer that was asked for before this moment is none, whatever another one costs.

        Raises
        ------
        SlurmError
            If they could not be asked for.
        """
        asked = self._asked
        if asked is None or asked.at < since or (self._is_old(asked) and self._may_ask()):
            asked = self._asked = _Asked(self._clock(), self._holding())
        # Waited for, not awaited: who waits may be cancelled, and the others still want the answer; and an answer
        # that was cancelled is an error for its waiters, never a cancellation of the waiters.
        await asyncio.wait({asked.answer})
        if asked.answer.cancelled():
            raise errors.ClientClosed("the question for jobs was given up")
        return asked.answer.result()

    async def fresh(self) -> Sequence[Job]:
        """All jobs, by an answer that is asked for from now on; raises `SlurmError`."""
        return await self._all.answer()

    async def holding(self) -> Sequence[Job]:
        """At least all jobs that hold nodes, by an answer that is asked for from now on; raises `SlurmError`."""
        return await self._brief.answer()

    async def _ask_all(self, ask: Callable[[], Awaitable[Iterable[Job]]]) -> Sequence[Job]:
        at = self._clock()
        found = await self._timed(ask)
        if self._asked is None or self._asked.at < at:
            self._asked = _Asked(at, self._kept(found))
            self._answered_at = self._clock()
        return found

    def _is_old(self, asked: _Asked) -> bool:
        return asked.failed or (asked.answer.done() and asked.at <= max(self._changed_at, self._clock() - AGE))

    def _may_ask(self) -> bool:
        """Whether the budget allows another question, or planners have had no answer for so long that one is due.

        What others ask right before something irreversible is spent as well, and may leave nothing for planners.
        """
        return self._budget.left > 0 or self._clock() - self._answered_at >= LONGEST_WAIT

    async def _holding(self) -> Sequence[Job]:
        # In turns too: planners that each need an answer from after a write of theirs are many.
        try:
            return await self._kept(await self._brief.answer())
        finally:
            self._answered_at = self._clock()

    async def _timed(self, ask: Callable[[], Awaitable[Iterable[Job]]]) -> Sequence[Job]:
        began = self._clock()
        try:
            return tuple(await ask())
        finally:
            self._budget.spend(self._clock() - began)

    async def _kept(self, jobs: Sequence[Job]) -> Sequence[Job]:
        return remembered(jobs) if len(jobs) < THREAD_THRESHOLD else await run_in_thread(self._key, remembered, jobs)
