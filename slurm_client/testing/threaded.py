"""
The fake for tests that are not asynchronous: it runs in a thread, and what a test arranges is done in that thread.

Nothing else of the fake knows threads: its methods are put behind a call into its own.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from slurm_client.testing.server import FakeSlurmrestd

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

__all__ = ["running"]


@contextmanager
def running(**options: Any) -> Iterator[FakeSlurmrestd]:
    """
    Run a fake in a thread of its own until the block ends.

    Its methods, those of its ``world`` and ``faults``, and ``clock.advance`` may be called from any thread. ``start``
    and ``stop`` remain coroutines for the loop of the fake.

    Parameters
    ----------
    options
        Those of :class:`~slurm_client.testing.server.FakeSlurmrestd`.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="fake-slurmrestd", daemon=True)
    thread.start()

    def wait(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    async def make() -> FakeSlurmrestd:
        fake = FakeSlurmrestd(**options)
        await fake.start()
        return fake

    try:
        fake = wait(make())
        try:
            for part in (fake.world, fake.faults, fake):
                _put_behind(part, loop, thread)
            fake.clock.follow = fake.world.follow
            yield fake
        finally:
            wait(type(fake).stop(fake))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _put_behind(part: object, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Let every public method of an object run in the thread of the loop, whichever thread calls it."""
    for name in dir(type(part)):
        method = inspect.getattr_static(type(part), name)
        if not name.startswith("_") and inspect.isfunction(method) and not inspect.iscoroutinefunction(method):
            setattr(part, name, _hopping(getattr(part, name), loop, thread))
    for name, value in list(vars(part).items()):
        # What the fake has of the world's own.
        if inspect.ismethod(value) and not name.startswith("_"):
            setattr(part, name, getattr(value.__self__, value.__name__))


def _hopping(
    method: Callable[..., Any], loop: asyncio.AbstractEventLoop, thread: threading.Thread
) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        if threading.current_thread() is thread:
            return method(*arguments, **options)

        async def called() -> Any:
            return method(*arguments, **options)

        return asyncio.run_coroutine_threadsafe(called(), loop).result()

    return call
