"""Fixture of the tests of watches: a fake server without nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.watch.watching import KEY


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurmrestd]:
    """A server to which each test adds what it needs."""
    async with FakeSlurmrestd(key=KEY) as server:
        yield server
