"""Real clusters of both Slurm releases for the tests in this folder, each started once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from hack.images.names import SLURM_SUITES
from hack.images.rootfs import ensure
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.server import PARSERS_OF_RELEASE
from tests.integration.slurm_client.targets import FakeTarget, RealTarget, Target
from tests.support.slurm_host import SlurmHost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

PARSERS = {series: PARSERS_OF_RELEASE[series] for series in SLURM_SUITES}
"""Data parsers that each Slurm in the test images serves."""


def cases(*kinds: str, oldest: bool = True) -> list[Any]:
    """
    Return kind, release and data parser of each case.

    Each run has the newest parser of a release, and the oldest if wanted; others are left to `make test-full`.
    """
    return [
        pytest.param(
            (kind, series, version),
            id=f"{kind}-{series}-{version}",
            marks=() if version == versions[-1] or (oldest and version == versions[0]) else pytest.mark.full,
        )
        for kind in kinds
        for series, versions in PARSERS.items()
        for version in versions
    ]


def _cluster(series: str) -> Iterator[SlurmHost]:
    host = SlurmHost(ensure(series), extra_conf="Licenses=matlab:3\nNodeSet=everything Feature=all\nGresTypes=gpu")
    with host:
        host.add_node("w-0", instance_id="instance-0", extra="team/w")
        host.add_node("w-1", cpus=2)
        yield host


@pytest.fixture(scope="session")
def slurm_24_11() -> Iterator[SlurmHost]:
    """A cluster of Slurm 24.11."""
    yield from _cluster("24.11")


@pytest.fixture(scope="session")
def slurm_26_05() -> Iterator[SlurmHost]:
    """A cluster of Slurm 26.05."""
    yield from _cluster("26.05")


@pytest.fixture(params=cases("real", "fake"))
def case(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    """Kind of target, release and data parser."""
    chosen: tuple[str, str, str] = request.param
    return chosen


@pytest.fixture
def version(case: tuple[str, str, str]) -> str:
    """Data parser to speak."""
    return case[2]


@pytest_asyncio.fixture
async def target(case: tuple[str, str, str], request: pytest.FixtureRequest) -> AsyncIterator[Target]:
    """The cluster of the case."""
    kind, series, _ = case
    if kind == "real":
        host = request.getfixturevalue(f"slurm_{series.replace('.', '_')}")
        yield RealTarget(host, f"{series}.5")
        return
    async with FakeSlurmrestd(release=f"{series}.5", key=b"k" * 32) as fake:
        fake.add_node("w-0", instance_id="instance-0", extra="team/w", memory=256)
        fake.add_node("w-1", cpus=2, memory=256)
        fake.world.add_license("matlab", 3)
        yield FakeTarget(fake)
