"""An event loop whose clock jumps to the next timer: hours pass in milliseconds, and always the same way.

For code that waits on timers and futures only; with real sockets the clock would run ahead of the answers.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from typing_extensions import override

T = TypeVar("T")


class _Skipping(selectors.DefaultSelector):
    loop: VirtualTimeLoop

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("everything waits for something that will never happen")
            self.loop.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = 1000.0
        selector = _Skipping()
        selector.loop = self
        super().__init__(selector)

    @override
    def time(self) -> float:
        return self.now


def run_virtually(body: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(body)


def now() -> float:
    """Time of the running loop, as a clock to hand to what is tested."""
    return asyncio.get_running_loop().time()
