"""
How long one turn of the event loop takes, and how much memory this program has.

The CPU time of the loop's own thread is what counts: on a busy machine the rest of a delay is other programs.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sized

ROUNDS = 3


def resident_mib(word: str) -> float:
    """
    Return the resident size of this program: ``VmRSS`` now, ``VmHWM`` the largest so far.

    getrusage would tell that of its parent as well.
    """
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[word].split()[0]) / 1024


@contextlib.asynccontextmanager
async def stalls() -> AsyncIterator[list[tuple[float, float]]]:
    """
    Collect by how much a task that wants to run every millisecond runs late, in seconds.

    Beside it the CPU time that this thread used in between: on a busy machine the rest is other programs.
    """
    late: list[tuple[float, float]] = [(0.0, 0.0)]

    async def tick() -> None:
        last, used = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now, using = time.perf_counter(), time.thread_time()
            late.append((now - last - 0.001, using - used))
            last, used = now, using

    task = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    try:
        yield late
    finally:
        await asyncio.sleep(0.01)
        task.cancel()


@contextlib.contextmanager
def collections() -> Iterator[list[float]]:
    """Collect how long each garbage collection took, in seconds of CPU time."""
    took: list[float] = []
    begun = 0.0

    def note(phase: str, _: dict[str, int]) -> None:
        nonlocal begun
        if phase == "start":
            begun = time.thread_time()
        else:
            took.append(time.thread_time() - begun)

    gc.callbacks.append(note)
    try:
        yield took
    finally:
        gc.callbacks.remove(note)


async def best_of(measured: Callable[[], Awaitable[Sized]]) -> dict[str, Any]:
    """
    Run a few times; return the fastest, the smallest of the longest stalls, the most CPU in one, and the memory.

    That is the peak, and what is held while the last result is; the result of the round before has gone by then.
    """
    before, held_before = resident_mib("VmHWM"), resident_mib("VmRSS")
    seconds, stall, own, garbage = [], [], [], [0.0]
    objects: Sized = ()
    for _ in range(ROUNDS):
        objects = ()
        async with stalls() as late:
            started = time.perf_counter()
            with collections() as took:
                objects = await measured()
            seconds.append(time.perf_counter() - started)
        garbage += took
        stall.append(max(wall for wall, _ in late))
        own.append(max(cpu for _, cpu in late))
    tracked = len(gc.get_objects())
    gc.collect()
    # What is free inside the allocator's heap is not held by anybody.
    ctypes.CDLL(None).malloc_trim(0)
    return {
        "objects": len(objects),
        "seconds": min(seconds),
        "stall": min(stall),
        "own": max(own),
        "garbage": max(garbage),
        "tracked": tracked,
        "mib": resident_mib("VmHWM") - before,
        "held": resident_mib("VmRSS") - held_before,
    }
