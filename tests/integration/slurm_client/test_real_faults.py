"""Outages, upgrades and many state changes of real daemons, each in a separate cluster."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from hack.images.rootfs import ensure
from slurm_client import MintedToken, SlurmClient, errors
from slurm_client.connection.circuit import Circuit
from slurm_client.models import JobSpec
from slurm_client.testing import FakeSlurmrestd
from slurm_client.watch import Pace
from tests.integration.slurm_client.targets import until
from tests.support.slurm_host import SlurmHost
from tests.support.slurm_series import OLDER_IN_FULL

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long(125)


def client(host: SlurmHost, **options: Any) -> SlurmClient:
    options.setdefault("circuit", Circuit(threshold=0))
    options.setdefault("pace", Pace(interval=0.1))
    options.setdefault("timeout", 120.0)
    return SlurmClient(host.url, MintedToken(host.jwt_key, "root"), **options)


@pytest.fixture(params=OLDER_IN_FULL)
def host(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    with SlurmHost(ensure(request.param), extra_conf="Licenses=matlab:3") as cluster:
        cluster.add_node("w-0")
        yield cluster


async def test_slurmctld_away_and_back(host: SlurmHost) -> None:
    async with (
        FakeSlurmrestd() as other,
        SlurmClient(other.url, "token") as free,
        client(host) as slurm,
        slurm.watch_nodes() as events,
    ):
        await anext(events)
        await slurm.drain_nodes(["w-0"], "kept")
        await asyncio.to_thread(host.stop, "slurmctld")
        stuck = asyncio.create_task(slurm.nodes())
        for _ in range(20):
            await asyncio.wait_for(free.nodes(), 60)
        with pytest.raises(errors.ControllerDown) as down:
            await stuck
        assert down.value.status in {500, 502}
        assert down.value.number in {104, 111, 1800}
        (ping,) = await slurm.ping()
        assert not ping.responding
        with pytest.raises(errors.Timeout):
            await slurm.nodes(timeout=1)
        await asyncio.to_thread(host.start_slurmctld)

        async def back() -> bool:
            status = slurm.node_watch.status
            return status.failures == 0 and status.age is not None and status.age < 5

        await until(back, 60)
        node = slurm.node_watch.objects["w-0"]
        assert node.is_drain
        assert node.reason == "kept"


async def test_no_answer_to_who_ends_a_job_is_no_refusal(host: SlurmHost) -> None:
    async with client(host) as slurm:
        job = await slurm.submit_job(JobSpec(script="#!/bin/sh\n", hold=True))
        await asyncio.to_thread(host.freeze, "slurmctld")
        for call in (slurm.cancel_jobs([job.id]), slurm.cancel_job(job.id)):
            with pytest.raises(errors.ControllerDown, match="did not answer in time") as silent:
                await call
            assert silent.value.number == 1
            assert silent.value.sent
        await asyncio.to_thread(host.thaw, "slurmctld")

        async def cancelled() -> bool:
            return (await slurm.job(job.id)).state.base == "CANCELLED"

        await slurm.cancel_job(job.id)
        await until(cancelled)


async def test_without_slurmdbd_who_ends_a_job_of_another_stops_slurmctld(host: SlurmHost) -> None:
    async with client(host) as slurm, SlurmClient(host.url, MintedToken(host.jwt_key, "daemon"), timeout=120) as daemon:
        job = await slurm.submit_job(JobSpec(script="#!/bin/sh\n", hold=True))
        with pytest.raises(errors.ControllerDown, match="somebody may have ended a job that is not theirs"):
            await daemon.cancel_job(job.id)
        # Even its owner gets no answer any more.
        with pytest.raises(errors.SlurmError):
            await slurm.job(job.id)
        await asyncio.to_thread(host.stop, "slurmctld", kill=True)
        await asyncio.to_thread(host.start_slurmctld)

        failures: list[str] = []

        async def back() -> bool:
            try:
                # One call that is never answered must not take all the time there is.
                return bool(await slurm.nodes(timeout=15))
            except errors.SlurmError as error:
                failures.append(str(error))
                return False

        await until(back, or_tell=lambda: f"{failures[-3:]}\n{host.logs()}")


async def test_slurmrestd_away_and_back_under_a_watch(host: SlurmHost) -> None:
    async with client(host) as slurm, slurm.watch_nodes() as events:
        await anext(events)
        await asyncio.to_thread(host.stop, "slurmrestd", kill=True)

        async def failing() -> bool:
            return slurm.node_watch.status.failures > 1

        await until(failing)
        assert isinstance(slurm.node_watch.status.error, errors.Unreachable)
        await asyncio.to_thread(host.start_slurmrestd)
        await asyncio.to_thread(host.run, "scontrol", "update", "nodename=w-0", "comment=after")
        while (event := await anext(events)).new is None or event.new.comment != "after":
            pass
        assert event.old is not None
        assert event.old.comment == ""


async def test_a_frozen_slurmrestd_is_given_up_in_time(host: SlurmHost) -> None:
    async with client(host) as slurm:
        await slurm.connect()
        host.freeze("slurmrestd")
        with pytest.raises(errors.Timeout):
            await slurm.nodes(timeout=0.5)
        host.thaw("slurmrestd")
        assert len(await slurm.nodes()) == 1


async def test_an_expired_token_is_renewed(host: SlurmHost) -> None:
    now = [0.0]
    start = int(time.time())

    def clock() -> float:
        return start + now[0]

    token = MintedToken(host.jwt_key, "root", timedelta(hours=1), clock=clock)
    async with SlurmClient(host.url, token) as slurm:
        now[0] = -10_000
        expired = await token.token()
        now[0] = -10_000 + 600
        assert await token.token() == expired
        # The provider still believes in it, slurmctld does not: it is minted again and the call is repeated once.
        now[0] = -10_000
        with pytest.raises(errors.Unauthorized):
            await slurm.nodes()
        now[0] = 0
        assert len(await slurm.nodes()) == 1


@pytest.mark.timeout(600)
async def test_two_hundred_flips_of_a_real_node_are_all_told(host: SlurmHost) -> None:
    async with client(host) as slurm, slurm.watch_nodes() as events:
        last = (await anext(events)).new
        for number in range(200):
            await slurm.update_nodes(["w-0"], comment=str(number))
            await slurm.node_watch.refresh("w-0")
            while True:
                event = await anext(events)
                assert event.old == last
                last = event.new
                assert last is not None
                if last.comment == str(number):
                    break
            assert event.old is not None
            assert event.old.comment == (str(number - 1) if number else "")


async def test_slurm_upgraded_under_a_watch() -> None:
    with SlurmHost(ensure("24.11")) as old:
        old.add_node("w-0")
        new = SlurmHost(ensure("26.05"), jwt_key=old.jwt_key, rest_port=old.rest_port)
        async with client(old) as slurm, slurm.watch_nodes() as events:
            await anext(events)
            assert (slurm.api_version, slurm.slurm_version) == ("v0.0.42", "24.11.5")
            await asyncio.to_thread(old.close)
            try:
                await asyncio.to_thread(new.start)
                await asyncio.to_thread(new.add_node, "w-1")
                while (await anext(events)).key != "w-1":
                    pass

                async def renegotiated() -> bool:
                    return slurm.api_version == "v0.0.45"

                await until(renegotiated)
                assert slurm.slurm_version == "26.05.5"
            finally:
                await asyncio.to_thread(new.close)


def shape(value: Any, where: str = "") -> set[str]:
    """Return paths and types of a JSON value; lists by their first entry, empty ones as such."""
    if isinstance(value, dict):
        return {path for key, entry in value.items() for path in shape(entry, f"{where}.{key}")}
    if isinstance(value, list):
        return shape(value[0], f"{where}[]") if value else set()
    return {f"{where}:{'number' if isinstance(value, float) else type(value).__name__}"}


async def test_the_fake_writes_what_slurm_writes(host: SlurmHost) -> None:
    """Same keys and types, parser by parser; what a list is empty of on either side is left out."""
    release = host.run("sinfo", "--version").stdout.split()[1]
    await asyncio.to_thread(host.sbatch, "sleep 600")
    await until(lambda: asyncio.to_thread(lambda: host.job_state(1) == "RUNNING"))
    async with FakeSlurmrestd(release=release) as fake, httpx.AsyncClient(trust_env=False, timeout=120) as http:
        fake.add_node("w-0")
        fake.add_job(nodes=["w-0"])
        fake.world.add_license("matlab", 3)

        async def get(url: str, path: str) -> Any:
            answer = await http.get(f"{url}{path}", headers={"X-SLURM-USER-TOKEN": host.token("root")})
            assert answer.status_code == 200
            return answer.json()

        for version in fake.versions:
            for path in (
                "/ping/",
                "/nodes/",
                "/node/w-0",
                "/jobs/",
                "/job/1",
                "/jobs/state/",
                "/partitions/",
                "/licenses/",
            ):
                real = shape(await get(host.url, f"/slurm/{version}{path}"))
                mine = shape(await get(fake.url, f"/slurm/{version}{path}"))
                # What one side has in a list that is empty on the other, and details of cores nobody reads.
                differing = {each for each in real ^ mine if "[]" not in each.split(".", 3)[-1]}
                differing = {each for each in differing if "job_resources" not in each and "warnings" not in each}
                assert not differing, f"{version}{path}"
