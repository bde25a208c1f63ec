"""The world that tests of a SlurmJob's files share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.slurmjob.file_worlds import FileWorld, file_world


@pytest.fixture
async def files() -> AsyncIterator[FileWorld]:
    async with file_world() as world:
        yield world
