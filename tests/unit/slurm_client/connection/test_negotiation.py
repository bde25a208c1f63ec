"""Which data parser is negotiated with a fake server, and when it is negotiated again."""

from __future__ import annotations

import asyncio

import pytest

from slurm_client import SlurmClient, errors, wire
from slurm_client.models import JobSpec
from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.clients import client, parser_of


async def test_negotiation_asks_from_the_newest_downwards_once() -> None:
    async with FakeSlurmrestd(release="24.11.5") as fake, client(fake) as slurm:
        assert parser_of(slurm) is None
        await asyncio.gather(*(slurm.nodes() for _ in range(5)))
        assert parser_of(slurm) == "v0.0.42"
        newer = [parser for parser in wire.PARSERS if parser > "v0.0.42"]
        assert len([request for request in fake.requests if request.path.endswith("/ping/")]) == len(newer) + 1


async def test_a_server_that_is_upgraded_is_asked_again() -> None:
    async with FakeSlurmrestd(release="24.11.5") as fake, client(fake) as slurm:
        await slurm.nodes()
        fake.upgrade("26.05.5")
        await slurm.nodes()
        await slurm.nodes()
        assert (slurm.api_version, slurm.slurm_version) == ("v0.0.45", "26.05.5")


async def test_a_server_that_drops_the_parser_is_asked_again() -> None:
    async with FakeSlurmrestd(release="24.11.5", versions=["v0.0.40"]) as fake, client(fake) as slurm:
        fake.add_node("w-0")
        assert await slurm.connect() == "v0.0.40"
        fake.versions = ("v0.0.42", "v0.0.43")
        assert len(await slurm.nodes()) == 1
        assert slurm.api_version == "v0.0.43"


async def test_a_pinned_parser_is_not_given_up() -> None:
    async with FakeSlurmrestd(release="24.11.5") as fake, client(fake, api_version="v0.0.41") as slurm:
        await slurm.nodes()
        fake.upgrade("26.05.5")
        with pytest.raises(errors.NotSupported):
            await slurm.nodes()
    with pytest.raises(ValueError, match=r"v0\.0\.39"):
        SlurmClient("http://localhost", "token", api_version="v0.0.39")


async def test_a_server_without_a_common_parser_is_not_supported(fake: FakeSlurmrestd) -> None:
    fake.versions = ("v0.0.38",)
    async with client(fake) as slurm:
        with pytest.raises(errors.NotSupported):
            await slurm.connect()


async def test_negotiation_works_while_slurmctld_is_away(fake: FakeSlurmrestd) -> None:
    fake.faults.controller_down()
    fake.controller_up = False
    async with client(fake) as slurm:
        assert await slurm.connect() == "v0.0.45"
        (ping,) = await slurm.ping()
        assert not ping.responding
        with pytest.raises(errors.ControllerDown):
            await slurm.nodes()


async def test_what_a_parser_lacks_is_refused_before_it_is_sent(fake: FakeSlurmrestd) -> None:
    async with client(fake, api_version="v0.0.42") as slurm:
        await slurm.connect()
        sent = slurm.calls
        with pytest.raises(errors.NotSupported) as refused:
            await slurm.create_node("NodeName=x State=CLOUD")
        assert refused.value.available_in == tuple(parser for parser in wire.PARSERS if parser > "v0.0.43")
        with pytest.raises(errors.NotSupported, match="memory_update_delay"):
            await slurm.submit_job(JobSpec(script="#!/bin/sh", other={"memory_update_delay": 3}))
        assert slurm.calls == sent


async def test_an_old_server_without_bulk_updates_gets_single_ones() -> None:
    async with FakeSlurmrestd(release="24.05.4") as fake, client(fake) as slurm:
        for number in range(5):
            fake.add_node(f"w-{number}")
        await slurm.drain_nodes(fake.nodes, "reason")
        assert all(node.is_drain for node in fake.nodes.values())
        assert len(fake.calls("post_node")) == 5
        with pytest.raises(errors.NotFound):
            await slurm.undrain_nodes(["a-unknown", *fake.nodes])
        assert not any(node.is_drain for node in fake.nodes.values())
