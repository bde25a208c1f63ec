"""Clients of a fake server, for tests of how they handle its faults."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from slurm_client import MintedToken, SlurmClient
from slurm_client.connection.circuit import Circuit
from slurm_client.connection.session import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from slurm_client.testing import FakeSlurmrestd

KEY = b"k" * 32
SOON = RetryPolicy(attempts=3, first_pause=0.001, longest_pause=0.002)


@asynccontextmanager
async def client(fake: FakeSlurmrestd, **options: Any) -> AsyncIterator[SlurmClient]:
    """A client that repeats without long pauses, and that no circuit keeps from trying."""
    options.setdefault("retry", SOON)
    options.setdefault("circuit", Circuit(threshold=0))
    async with SlurmClient(fake.url, options.pop("token", MintedToken(KEY)), **options) as slurm:
        yield slurm


def circuit_of(slurm: SlurmClient) -> str:
    return slurm.circuit.name


def parser_of(slurm: SlurmClient) -> str | None:
    return slurm.api_version
