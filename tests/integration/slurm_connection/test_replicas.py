"""Two real slurmrestds in front of one slurmctld, of which one hangs, ends, or waits for slurmctld."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio

from hack.images.rootfs import ensure
from hack.machine import ports
from slinky_operator.cluster.parts.slurmrestd.manifests import ANSWERS, THREADS
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slinky_operator.slurm.connection.contact import Contact, ContactState, Endpoint, Trouble
from slurm_client import MintedToken
from slurm_client.models import JobSpec
from tests.support.slurm_host import SlurmHost

FIRST, SECOND = "slurmrestd", "slurmrestd-2"


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def host(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    options = ("-s", "openapi/slurmctld", "-t", str(THREADS))
    with SlurmHost(ensure(request.param), slurmrestd_options=options) as cluster:
        cluster.add_node("w-0")
        yield cluster


@pytest.fixture(scope="module")
def second_port(host: SlurmHost) -> int:
    (port,) = ports.hold(1)
    host.start_slurmrestd(SECOND, port)
    return port


@pytest.fixture
def contacts() -> list[Contact]:
    return []


@pytest_asyncio.fixture
async def entry(host: SlurmHost, second_port: int, contacts: list[Contact]) -> AsyncIterator[ClusterClient]:
    clients = ClientMap(OpenFence())
    clients.subscribe_contact(lambda _, contact: contacts.append(contact))
    found = await clients.put(
        "u",
        "here",
        "slurm",
        endpoint=Endpoint(host.url, timeout=120.0, poll_interval=0.1, poll_interval_max=0.5),
        token=MintedToken(host.jwt_key, "slurm"),
        fingerprint="1",
        replicas=(host.url, f"http://127.0.0.1:{second_port}"),
    )
    try:
        await until(lambda: found.nodes)
        yield found
    finally:
        await clients.close_all()


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(120):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110 - daemons set no event
            await asyncio.sleep(0.05)


async def polled_again(entry: ClusterClient) -> None:
    before = entry.nodes_at
    assert before is not None
    await until(lambda: entry.nodes_at is not None and entry.nodes_at > before)


async def test_one_that_hangs_is_not_noticed_by_those_who_call(
    host: SlurmHost, entry: ClusterClient, contacts: list[Contact], second_port: int
) -> None:
    urls = {FIRST: host.url, SECOND: f"http://127.0.0.1:{second_port}"}
    for name, other in ((FIRST, SECOND), (SECOND, FIRST)):
        await asyncio.to_thread(host.freeze, name)
        try:
            assert [node.name for node in await entry.client.nodes()] == ["w-0"]
            assert entry.replicas.urls[0] == urls[other]
            await entry.client.drain_nodes(["w-0"], f"without {name}")
            assert (await entry.client.node("w-0")).reason == f"without {name}"
            await entry.client.undrain_nodes(["w-0"])
            await polled_again(entry)
        finally:
            await asyncio.to_thread(host.thaw, name)
    assert [contact.state for contact in contacts] == [ContactState.READY]


async def test_one_that_has_ended_is_not_noticed_either(
    host: SlurmHost, entry: ClusterClient, contacts: list[Contact], second_port: int
) -> None:
    await asyncio.to_thread(host.stop, FIRST, kill=True)
    try:
        job = await entry.client.submit_job(JobSpec(script="#!/bin/sh\n", hold=True))
        await entry.client.cancel_job(job.id)
        await polled_again(entry)
    finally:
        await asyncio.to_thread(host.start_slurmrestd)
    await asyncio.to_thread(host.stop, SECOND, kill=True)
    try:
        await polled_again(entry)
    finally:
        await asyncio.to_thread(host.start_slurmrestd, SECOND, second_port)
    assert [contact.state for contact in contacts] == [ContactState.READY]


async def test_both_that_wait_for_slurmctld_are_no_fault_of_theirs(
    host: SlurmHost, entry: ClusterClient, contacts: list[Contact], second_port: int
) -> None:
    await asyncio.to_thread(host.freeze, "slurmctld")
    try:
        await until(lambda: len(contacts) > 1)
        for name, port in ((FIRST, host.rest_port), (SECOND, second_port)):
            assert probe(host, name, port) == 0, host.logs()
    finally:
        await asyncio.to_thread(host.thaw, "slurmctld")
    assert (contacts[1].state, contacts[1].trouble) == (ContactState.UNREACHABLE, Trouble.CONTROLLER_DOWN)
    await until(lambda: contacts[-1].state is ContactState.READY)


def test_the_readiness_probe_asks_for_an_answer(host: SlurmHost) -> None:
    assert probe(host, FIRST, host.rest_port) == 0
    host.freeze(FIRST)
    try:
        assert probe(host, FIRST, host.rest_port) != 0
    finally:
        host.thaw(FIRST)
    assert probe(host, FIRST, host.rest_port) == 0
    log = (host.folder / f"{FIRST}.log").read_text()
    assert "GET /livez" in log
    assert "authentication failed" not in log


def probe(host: SlurmHost, name: str, port: int) -> int:
    """Exit code of the probe, in the daemon's own root."""
    command = ANSWERS.replace(f"/{naming.SLURMRESTD_PORT} ", f"/{port} ").replace("-t 8 ", "-t 2 ")
    assert command != ANSWERS
    return host.run_beside(name, "bash", "-c", command, check=False).returncode
