"""Background tasks whose crash ends the process.

A task that died unnoticed is worse than a crash: the caches become stale while everything else keeps running. Tasks run
until they are stopped, so a task that returns counts as crashed too. The process is expected to exit and to be
restarted. An expected end (`expected` of its exception) is logged without a trace by the caller that ends the process.

When kopf exits, it cancels every task created after its own start. Start everything here before kopf.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self

logger = logging.getLogger(__name__)

STOP_TIMEOUT: Final = 10.0
"""Seconds that a cancelled task may take to end."""


class TaskCrashed(Exception):
    """A background task exited without being stopped."""

    def __init__(self, name: str, error: BaseException | None) -> None:
        self.name = name
        self.error = error
        self.expected = bool(getattr(error, "expected", False))
        """Whether this is expected; the message is then complete."""
        if error is None:
            words = f"{name} exited without being stopped"
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
        """Run `body` until it is stopped.

        Raises
        ------
        ValueError
            If a task of this name is running.
        """
        if name in self._tasks:
            body.close()
            raise ValueError(f"a task {name} is already running")
        task = asyncio.get_running_loop().create_task(body, name=name)
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._ended(name, done))

    async def wait(self, stop: asyncio.Event | None = None) -> None:
        """Return when `stop` is set.

        Raises
        ------
        TaskCrashed
            As soon as a task exits without being stopped.
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
        """Cancel one task and wait until it ends."""
        task = self._tasks.get(name)
        if task is None:
            return
        self._stopping.add(name)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=STOP_TIMEOUT)
        if not done:
            logger.error("task %s does not end", name)

    async def stop_all(self) -> None:
        """Stop all tasks, the last started first, since it may depend on earlier ones."""
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
        # Retrieved first, so that asyncio does not report an exception as never retrieved.
        error = None if task.cancelled() else task.exception()
        if name in self._stopping:
            self._stopping.discard(name)
            if error is not None:
                logger.error("task %s failed while it was being stopped", name, exc_info=error)
            return
        crashed = TaskCrashed(name, error)
        if not crashed.expected:
            logger.critical("background task %s has exited unexpectedly", name, exc_info=error)
        crash = self._crash_future()
        if not crash.done():
            crash.set_result(crashed)
