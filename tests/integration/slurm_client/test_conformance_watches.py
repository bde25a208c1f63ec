"""Watches: on real Slurm of both releases and on the fake each kind has an initial list, and changes after it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from slurm_client.models import ReservationSpec
from slurm_client.watch import SYNCED
from tests.integration.slurm_client.conftest import PARSERS
from tests.integration.slurm_client.targets import until

if TYPE_CHECKING:
    from slurm_client.watch import Event, Reader
    from tests.integration.slurm_client.targets import Target

NEWEST = [(kind, series, parsers[-1]) for kind in ("real", "fake") for series, parsers in PARSERS.items()]

WRITING = [case for case in NEWEST if case[2] >= "v0.0.43"]
"""Those whose parser can write reservations."""

newest, writing = (
    pytest.mark.parametrize("case", cases, ids=["-".join(case) for case in cases], indirect=True)
    for cases in (NEWEST, WRITING)
)

PATIENCE = 120


async def next_of(reader: Reader[Any], key: str) -> Event[Any]:
    """Return the next event of an object."""

    async def find() -> Event[Any]:
        async for event in reader:
            if event.key == key:
                return event
        raise AssertionError("the reader ended")

    return await asyncio.wait_for(find(), PATIENCE)


@newest
async def test_every_kind_has_an_initial_list(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        readers: dict[str, Reader[Any]] = {
            "w-0": slurm.watch_nodes(),
            "all": slurm.watch_partitions(),
            "matlab": slurm.watch_licenses(),
        }
        for key, reader in readers.items():
            assert key in await asyncio.wait_for(reader.initial(), PATIENCE)
        empty = slurm.watch_reservations(mark=True)
        assert await asyncio.wait_for(anext(empty), PATIENCE) is SYNCED


@newest
async def test_unchanged_reservations_are_not_listed_again(target: Target, version: str) -> None:
    async with target.client(version) as slurm:

        async def unchanged() -> bool:
            return await slurm.reservations((await slurm.reservations()).last_update) is None

        await until(unchanged)


@writing
async def test_a_reservation_is_seen_as_it_comes_changes_and_goes(target: Target, version: str) -> None:
    name = target.name()
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    async with target.client(version) as slurm, slurm.watch_reservations() as events:
        assert name not in await events.initial()
        await slurm.create_reservation(
            ReservationSpec(name=name, nodes=["w-1"], users=["root"], start_time=start, duration=timedelta(hours=1))
        )
        assert (await next_of(events, name)).kind == "added"
        await slurm.update_reservation(ReservationSpec(name=name, duration=timedelta(hours=3)))
        changed = await next_of(events, name)
        assert changed.old is not None
        assert changed.new is not None
        assert (changed.old.end_time, changed.new.end_time) == (start + timedelta(hours=1), start + timedelta(hours=3))
        await slurm.delete_reservation(name)
        assert (await slurm.reservation_watch.refresh(name)) == {name: None}
        assert (await next_of(events, name)).kind == "removed"
