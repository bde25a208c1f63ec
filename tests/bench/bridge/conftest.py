"""The Slurm of these measurements: a fake in a thread of the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.threaded import running

KEY: Final = b"k" * 32


@pytest.fixture
def slurm() -> Iterator[FakeSlurmrestd]:
    with running(key=KEY) as fake:
        _ = fake.world.add_partition("pods")
        yield fake
