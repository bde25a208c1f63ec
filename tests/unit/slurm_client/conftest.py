"""Fixtures of the client's tests: a fake server. Random cases have no time limit: the machine may be busy."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import settings

from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.clients import KEY

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurmrestd]:
    """A server with three nodes."""
    async with FakeSlurmrestd(key=KEY) as server:
        for number in range(3):
            server.add_node(f"w-{number}")
        yield server
