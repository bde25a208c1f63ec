"""Random histories of Slurm and Kubernetes, and what must hold in all of them.

No pod with a living job is deleted by us, nobody else's drain or node is touched, the update budget holds, finalizer
and guard outlive the pods, and once faults stop everything becomes as wanted. The model begins in `model/world.py`.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.nodeset.model import harness
from tests.unit.nodeset.model.histories import history
from tests.unit.nodeset.model.world import World

HISTORIES = int(os.environ.get("NODESET_HISTORIES", "2000"))
"""How many from seeds; another number is set for a short or a long run."""

SEARCHED = 200
"""How many hypothesis searches; one that it finds, it makes as short as it can."""

CHUNK = 250
"""Histories one process lives through before it takes the next ones."""

Worlds = tuple[asyncio.Runner, World, World, World, World]


@pytest.fixture(scope="module")
def worlds() -> Iterator[Worlds]:
    """A loop, and worlds to begin in: with a Slurm that takes a new instance id at each registration or not, and with
    ordinals or one pod on each Node."""
    with asyncio.Runner() as runner:
        logging.disable(logging.WARNING)
        try:
            yield (
                runner,
                runner.run(harness.begin(keeps_instance=False)),
                runner.run(harness.begin(keeps_instance=True)),
                runner.run(harness.begin(keeps_instance=False, on_hosts=True)),
                runner.run(harness.begin(keeps_instance=True, on_hosts=True)),
            )
        finally:
            logging.disable(logging.NOTSET)


def live_through(first: int, count: int) -> list[str]:
    """Live through so many histories from a seed on; gives what went wrong. Runs in a process of its own."""
    logging.disable(logging.WARNING)
    wrong: list[str] = []
    with asyncio.Runner() as runner:
        begins = [
            runner.run(harness.begin(keeps_instance=keeps, on_hosts=on_hosts))
            for on_hosts in (False, True)
            for keeps in (False, True)
        ]
        for seed in range(first, first + count):
            try:
                runner.run(harness.live(begins[seed % 4], history(seed, on_hosts=seed % 4 > 1)))
            except harness.Violated as error:
                wrong.append(f"history {seed}: {error}")
    return wrong


@pytest.mark.timeout(120 + HISTORIES // 4)
def test_random_histories_never_do_harm_and_settle() -> None:
    chunks = [(first, min(CHUNK, HISTORIES - first)) for first in range(0, HISTORIES, CHUNK)]
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        wrong = [told for found in pool.map(live_through, *zip(*chunks, strict=True)) for told in found]

    assert not wrong, "\n".join(wrong[:5])


@pytest.mark.timeout(300)
@settings(
    max_examples=SEARCHED,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=st.lists(st.tuples(st.sampled_from(harness.STEPS_ON_HOSTS), st.integers(0, 7)), max_size=50),
    begin=st.integers(0, 3),
)
def test_searched_histories_never_do_harm_and_settle(worlds: Worlds, steps: list[harness.Step], begin: int) -> None:
    runner, *begins = worlds
    runner.run(harness.live(begins[begin], steps))


# Histories the model once found a fault with.
FOUND = {
    "a suspended job of a lost pod on a node that an administrator drained": [
        ("job_starts", 0), ("admin_drains", 0), ("job_suspends", 0), ("user_deletes_pod", 0), ("kubelet_ends", 0),
        ("kubelet_ends", 0), ("restart", 0), ("pass", 0), ("pass", 0),
    ],
    "the answer to a create is lost, and then the NodeSet is deleted": [
        ("user_deletes_pod", 0), ("kubelet_ends", 0), ("kubelet_ends", 0), ("see_all", 0), ("pass", 0), ("poll", 0),
        ("lose_kube", 0), ("pass", 0), ("delete", 0), ("pass", 0), ("see_all", 0), ("pass", 0),
    ],
    "slurmctld has forgotten everything": [
        ("job_starts", 0), ("job_starts", 1), ("slurm_forgets", 0), ("poll", 0), ("scale", 0), ("see_all", 0),
        ("pass", 0),
    ],
    "a suspended job leaves its node idle": [
        ("job_starts", 2), ("job_suspends", 0), ("poll", 0), ("scale", 0), ("see_all", 0), ("pass", 0), ("pass", 0),
        ("poll", 0), ("pass", 0), ("pass", 0),
    ],
    "a scale-in is taken back": [
        ("job_starts", 0), ("job_starts", 0), ("job_starts", 0), ("poll", 0), ("scale", 1), ("see_all", 0), ("pass", 0),
        ("poll", 0), ("scale", 3), ("see_all", 0), ("pass", 0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("name", FOUND)
def test_histories_found_before(worlds: Worlds, name: str, keeps: bool) -> None:
    runner, *begins = worlds
    runner.run(harness.live(begins[keeps], FOUND[name]))
