"""
Fixtures for pytest, there as soon as the extra ``testing`` is installed.

``fake_slurm``
    A :class:`~slurm_client.testing.server.FakeSlurmrestd` with an empty cluster, for each test a new one. It runs in a
    thread, so tests may be asynchronous or not.
``fake_slurm_options``
    What it is made with; override it: ``{"release": "24.11.5"}``.
``fake_slurm_client``
    A :class:`~slurm_client.sync.SyncSlurmClient` of it.

Nothing is imported before a fixture is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurm_client.sync import SyncSlurmClient
    from slurm_client.testing.server import FakeSlurmrestd

__all__ = ["fake_slurm", "fake_slurm_client", "fake_slurm_options"]


@pytest.fixture
def fake_slurm_options() -> dict[str, Any]:
    """Return the options of ``fake_slurm``; override it for another release, a key, a unix socket."""
    return {}


@pytest.fixture
def fake_slurm(fake_slurm_options: dict[str, Any]) -> Iterator[FakeSlurmrestd]:
    """Run a slurmrestd with a pretended cluster until the test ends."""
    from slurm_client.testing.threaded import running

    with running(**fake_slurm_options) as fake:
        yield fake


@pytest.fixture
def fake_slurm_client(fake_slurm: FakeSlurmrestd) -> Iterator[SyncSlurmClient]:
    """Return a client of ``fake_slurm``, for the user slurm."""
    from slurm_client.sync import SyncSlurmClient
    from slurm_client.tokens import MintedToken

    with SyncSlurmClient(fake_slurm.url, MintedToken(fake_slurm.key or b"k" * 32)) as client:
        yield client
