"""Reservations of the fake: nodes by hostlists, or as many as are asked for; measured with 26.05."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from slurm_client import MintedToken, SlurmClient, errors
from slurm_client.models import ReservationSpec
from tests.unit.slurm_client.clients import KEY

if TYPE_CHECKING:
    from slurm_client.testing import FakeSlurmrestd


def spec(name: str, **values: Any) -> ReservationSpec:
    begin = datetime(2030, 1, 1, tzinfo=UTC)
    return ReservationSpec(name=name, start_time=begin, duration=timedelta(hours=1), users=["root"], **values)


async def test_nodes_are_named_by_hostlists(fake: FakeSlurmrestd) -> None:
    async with SlurmClient(fake.url, MintedToken(KEY, "slurm")) as slurm:
        for name, nodes, wanted in (
            ("text", "w-[0-1]", ("w-0", "w-1")),
            ("list", ["w-[1-2]", "w-0"], ("w-1", "w-2", "w-0")),
            ("all", ["ALL"], ("w-0", "w-1", "w-2")),
        ):
            await slurm.create_reservation(spec(name, nodes=nodes))
            made = await slurm.reservation(name)
            assert (set(made.nodes), made.node_count, made.core_count) == (set(wanted), len(wanted), len(wanted))
            await slurm.delete_reservation(name)
        for wrong in ("w-[0", "", ["w-0", "w 1"]):
            with pytest.raises(errors.InvalidArgument) as refused:
                await slurm.create_reservation(spec("wrong", nodes=wrong))
            assert refused.value.field == "nodes"


async def test_nodes_are_counted(fake: FakeSlurmrestd) -> None:
    async with SlurmClient(fake.url, MintedToken(KEY, "slurm")) as slurm:
        await slurm.create_reservation(spec("two", node_count=2))
        assert (await slurm.reservation("two")).nodes == ("w-0", "w-1")
        await slurm.create_reservation(spec("one", node_count=1))
        assert (await slurm.reservation("one")).nodes == ("w-2",)
        with pytest.raises(errors.Conflict) as refused:
            await slurm.create_reservation(spec("three", node_count=1))
        assert refused.value.number == 2016
