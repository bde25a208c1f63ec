"""The fixtures that users of the library have in their tests: a fake in a thread, and a client of it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from slurm_client import SlurmClient, errors
from slurm_client.sync import SyncSlurmClient
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.plugin import fake_slurm, fake_slurm_client
from slurm_client.testing.threaded import running

__all__ = ["fake_slurm", "fake_slurm_client"]


@pytest.fixture
def fake_slurm_options() -> dict[str, Any]:
    return {"release": "25.11.2", "key": b"q" * 32}


def test_the_client_asks_the_fake(fake_slurm: FakeSlurmrestd, fake_slurm_client: SyncSlurmClient) -> None:
    fake_slurm.add_node("w-0", cpus=2)
    job = fake_slurm.add_job(nodes=["w-0"])
    assert fake_slurm_client.job(job.id).nodes == ("w-0",)
    assert fake_slurm_client.slurm_version == "25.11.2"
    fake_slurm.finish_job(job.id)
    assert fake_slurm_client.node("w-0").is_idle
    fake_slurm.faults.controller_down()
    with pytest.raises(errors.ControllerDown):
        fake_slurm_client.nodes()
    assert [request.path for request in fake_slurm.calls("get_job")] == [f"/slurm/v0.0.44/job/{job.id}"]


async def test_it_serves_asynchronous_tests_too(fake_slurm: FakeSlurmrestd) -> None:
    fake_slurm.world.add_node("w-0")
    fake_slurm.key = None
    async with SlurmClient(fake_slurm.url, "any token") as slurm:
        assert (await slurm.node("w-0")).is_usable


def test_what_a_test_arranges_is_done_in_the_thread_of_the_fake(
    fake_slurm: FakeSlurmrestd, fake_slurm_client: SyncSlurmClient
) -> None:
    seen: set[str] = set()

    def clock() -> float:
        seen.add(threading.current_thread().name)
        return 1.7e9

    fake_slurm.world._clock = clock
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: fake_slurm.add_node(f"w-{number}"), range(40)))
        listed = [pool.submit(fake_slurm_client.nodes) for _ in range(8)]
    assert len(made) == 40
    assert all(len(each.result()) == 40 for each in listed)
    assert seen == {"fake-slurmrestd"}


def test_nothing_is_left_behind() -> None:
    before = set(threading.enumerate())
    with running() as fake, SyncSlurmClient(fake.url, "any token") as slurm:
        assert not slurm.nodes().items
    assert set(threading.enumerate()) <= before
