"""What the tests of watches share: a client that polls fast, and waiting for events and conditions."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from slurm_client import MintedToken, SlurmClient
from slurm_client.connection.circuit import Circuit
from slurm_client.connection.session import RetryPolicy
from slurm_client.models import Node
from slurm_client.testing import FakeSlurmrestd
from slurm_client.watch import Event, Pace

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurm_client.watch import Reader


KEY = b"k" * 32
FAST = Pace(interval=0.01, share=0.9, first_pause=0.01, longest_pause=0.05)


def client(fake: FakeSlurmrestd, **options: Any) -> SlurmClient:
    """Return a client that polls fast and neither repeats calls nor gives up."""
    options.setdefault("pace", FAST)
    options.setdefault("retry", RetryPolicy(attempts=1))
    options.setdefault("circuit", Circuit(threshold=0))
    return SlurmClient(fake.url, options.pop("token", MintedToken(KEY)), **options)


async def next_of(reader: Reader[Any], condition: Callable[[Event[Any]], bool] = lambda _: True) -> Any:
    """Return the next event that meets the condition; untyped, as each test knows whether there is an old and a new."""

    async def find() -> Event[Any]:
        async for event in reader:
            if condition(event):
                return event
        raise AssertionError("the reader ended")

    return await asyncio.wait_for(find(), 120)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


async def never(name: str) -> Node:
    """Fail: no object is to be asked for singly."""
    raise AssertionError(name)
