"""Time that passes as fast as there is nothing to do: waiting takes none, and what is computed is done at one moment.

`install` is called before anything is imported that takes a clock as a default. Then `time.monotonic`, `time.time` and
what the operator and its client call `datetime.now` show the time of the model, in which only `Loop` moves ahead, to
the next thing that waits. Rules that the operator runs in threads run in the loop, so that all CPU is counted in one
place; CPU clocks are real.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import time
from datetime import datetime, tzinfo
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

from typing_extensions import override

P = ParamSpec("P")
T = TypeVar("T")

START = 1_800_000_000.0
"""Seconds since 1970 when a model begins."""


class Clock:
    """Seconds since the model began."""

    passed: ClassVar[float] = 0.0

    @classmethod
    def monotonic(cls) -> float:
        """In place of `time.monotonic`."""
        return 1_000.0 + cls.passed

    @classmethod
    def time(cls) -> float:
        """In place of `time.time`."""
        return START + cls.passed


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: the time of the model goes to where the wait would end."""

    @override
    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found:
            assert timeout is not None, "the model waits for nothing"
            Clock.passed += max(0.0, timeout)
        return found


class Loop(asyncio.SelectorEventLoop):
    """The event loop of a model."""

    def __init__(self) -> None:
        super().__init__(_Selector())


class _Same(type):
    @override
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


class _Datetime(datetime, metaclass=_Same):
    @classmethod
    @override
    def now(cls, tz: tzinfo | None = None) -> Self:
        return datetime.fromtimestamp(Clock.time(), tz)  # type: ignore[return-value]


def install() -> None:
    """Let the time of the model be that of this process."""
    time.monotonic = Clock.monotonic
    time.time = Clock.time


def install_dates() -> None:
    """The same for dates, in what has been imported; and let threads be none."""
    from slinky_operator.runtime.threads import Pool

    for name, module in list(sys.modules.items()):
        if name.startswith(("slinky_operator.", "slurm_client.")) and vars(module).get("datetime") is datetime:
            module.datetime = _Datetime  # type: ignore[attr-defined]

    async def run(self: Pool, key: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args, **kwargs)

    Pool.run = run  # type: ignore[method-assign]
