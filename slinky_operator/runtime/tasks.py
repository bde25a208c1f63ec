"""Background tasks whose crash ends the process.

A task that died unnoticed is worse than a crash: the caches go stale, and everything goes on as if. Tasks run until
they are stopped, so one that returns by itself counts as crashed too. The process is expected to end and to be
started again. An end that is meant to be (`expected` of its exception) is left to whoever ends the process to tell of:
it needs no trace.

kopf cancels, when it exits, every task that was created after it had started. Start everything here before kopf.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self

logger = logging.getLogger(__name__)

STOP_TIMEOUT: Final = 10.0
"""Seconds a cancelled task may take to end."""


class TaskCrashed(Exception):
    """A background task ended by itself."""

    def __init__(self, name: str, error: BaseException | None) -> None:
        self.name = name
        self.error = error
        self.expected = bool(getattr(error, "expected", False))
        """Whether this is meant to happen, and says all there is to say."""
        if error is None:
            words = f"{name} ended without being asked"
        else:
            words = str(error) if self.expected else f"{name}: {type(error).__name__}: {error}"
        super().__init__(words)


class Supervisor:
    """Starts background tasks, notices the first crash, and stops them in reverse order.

    Use it as an asynchronous context manager; leaving it stops all tasks.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._crash: asyncio.Future[TaskCrashed] | None = None
        self._stopping: set[str] = set()

    def start(self, name: str, body: Coroutine[Any, Any, None]) -> None:
        """Run `body` until it is stopped; names are unique among running tasks."""
        if name in self._tasks:
            body.close()
            raise ValueError(f"a task {name} is running already")
        task = asyncio.get_running_loop().create_task(body, name=name)
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._ended(name, done))

    async def wait(self, stop: asyncio.Event | None = None) -> None:
        """Return when `stop` is set.

        Raises
        ------
        TaskCrashed
            As soon as a task ends by itself.
        """
        crash = self._crash_future()
        waiting: set[asyncio.Future[Any]] = {crash}
        stopped = asyncio.ensure_future(stop.wait()) if stop is not None else None
        if stopped is not None:
            waiting.add(stopped)
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if stopped is not None:
                stopped.cancel()
        if crash.done():
            raise crash.result()

    async def stop(self, name: str) -> None:
        """Cancel one task and wait for its end."""
        task = self._tasks.get(name)
        if task is None:
            return
        self._stopping.add(name)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=STOP_TIMEOUT)
        if not done:
            logger.error("task %s does not end", name)

    async def stop_all(self) -> None:
        """Stop all tasks, the last started first: it may use what was started before."""
        for name in reversed(list(self._tasks)):
            await self.stop(name)

    def crashed(self) -> str | None:
        """Why the process must be restarted, or `None`; for the liveness check."""
        crash = self._crash
        return str(crash.result()) if crash is not None and crash.done() else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop_all()

    def _crash_future(self) -> asyncio.Future[TaskCrashed]:
        if self._crash is None:
            self._crash = asyncio.get_running_loop().create_future()
        return self._crash

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        self._tasks.pop(name, None)
        # Asked first, so that no exception is left unread.
        error = None if task.cancelled() else task.exception()
        if name in self._stopping:
            self._stopping.discard(name)
            if error is not None:
                logger.error("task %s failed while it was being stopped", name, exc_info=error)
            return
        crashed = TaskCrashed(name, error)
        if not crashed.expected:
            logger.critical("background task %s has ended by itself", name, exc_info=error)
        crash = self._crash_future()
        if not crash.done():
            crash.set_result(crashed)
