"""Random histories of Slurm and Kubernetes, and what must hold in all of them.

The operator deletes no pod with a running job, changes no drain or node of other owners, respects the update budget,
keeps finalizer and guard until the pods are gone, and reaches the wanted state once faults stop. The simulation starts
in `simulation/world.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.nodeset.simulation import doors, harness, settling
from tests.unit.nodeset.simulation.histories import HISTORIES, history
from tests.unit.nodeset.simulation.steps import BAD_MACHINES, STEPS_ON_HOSTS, Step
from tests.unit.nodeset.simulation.world import World

PART = 250
"""Histories in one test: some seconds of work, so that processes that share the tests end at about the same time."""

SEARCHED = 200
"""How many hypothesis searches; one that it finds, it makes as short as it can."""

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
                runner.run(settling.begin(keeps_instance=False)),
                runner.run(settling.begin(keeps_instance=True)),
                runner.run(settling.begin(keeps_instance=False, on_hosts=True)),
                runner.run(settling.begin(keeps_instance=True, on_hosts=True)),
            )
        finally:
            logging.disable(logging.NOTSET)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(0, HISTORIES, PART))
def test_random_histories_never_do_harm_and_settle(worlds: Worlds, first: int) -> None:
    runner, *begins = worlds
    wrong: list[str] = []
    for seed in range(first, min(first + PART, HISTORIES)):
        begin = seed % len(begins)
        try:
            runner.run(settling.live(begins[begin], history(seed, on_hosts=begins[begin].on_hosts)))
        except harness.Violated as error:
            wrong.append(f"history {seed}: {error}")
        except Exception as error:
            error.add_note(f"history {seed}")
            raise

    assert not wrong, "\n".join(wrong[:5])


@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(0, HISTORIES // 2, PART))
def test_drains_for_the_health_of_nodes_keep_to_their_rules_and_settle(worlds: Worlds, first: int) -> None:
    runner, *begins = worlds
    wrong: list[str] = []
    for seed in range(first, min(first + PART, HISTORIES // 2)):
        begin = begins[seed % len(begins)]
        try:
            # Half of them with health checks.
            steps = history(seed, on_hosts=begin.on_hosts, of_health=True, of_checks=seed % 8 > 3)
            runner.run(settling.live(begin, steps))
        except harness.Violated as error:
            wrong.append(f"history {seed}: {error}")

    assert not wrong, "\n".join(wrong[:5])


@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(0, HISTORIES // 8, PART))
def test_machines_are_rebooted_and_deleted_by_their_rules(worlds: Worlds, first: int) -> None:
    runner, *begins = worlds
    wrong: list[str] = []
    for seed in range(first, min(first + PART, HISTORIES // 8)):
        begin = begins[seed % len(begins)]
        try:
            # Half of them with a request in most.
            favoured = BAD_MACHINES if seed % 8 > 3 else ()
            steps = history(seed, favoured, on_hosts=begin.on_hosts, of_health=True, of_machines=True)
            runner.run(settling.live(begin, steps))
        except harness.Violated as error:
            wrong.append(f"history {seed}: {error}")

    assert not wrong, "\n".join(wrong[:5])


@pytest.mark.timeout(900)
def test_old_answers_about_jobs_do_no_harm(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are many jobs, plans are made with answers as old as that."""
    monkeypatch.setattr(doors, "SHARED_FOR", 25.0)
    runner, *begins = worlds
    for seed in range(100):
        begin = begins[seed % len(begins)]
        runner.run(settling.live(begin, history(seed, on_hosts=begin.on_hosts)))


@pytest.mark.timeout(900)
@settings(
    max_examples=SEARCHED,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=st.lists(st.tuples(st.sampled_from(STEPS_ON_HOSTS), st.integers(0, 7)), max_size=50),
    begin=st.integers(0, 3),
)
def test_searched_histories_never_do_harm_and_settle(worlds: Worlds, steps: list[Step], begin: int) -> None:
    runner, *begins = worlds
    runner.run(settling.live(begins[begin], steps))


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
    "a pod comes up for an update while slurmctld, restarted, has not heard of the others": [
        ("evict", 0), ("see", 0), ("pass", 4), ("edit", 0), ("see_all", 1), ("slurmctld_restarts", 0), ("pass", 4),
        ("restart", 1),
    ],
    "an ordinal is written with more digits while its pod ends": [
        ("pad", 1), ("user_deletes_pod", 0), ("see_all", 0), ("pass", 0), ("pass", 0),
    ],
    "the claim of an ordinal that is written with more digits": [
        ("pad", 1), ("user_deletes_pod", 0), ("kubelet_ends", 0), ("kubelet_ends", 0), ("see_all", 0), ("poll", 0),
        ("pass", 0), ("pass", 0), ("poll", 0), ("see_all", 0), ("pass", 0),
    ],
    "a scale-in is taken back": [
        ("job_starts", 0), ("job_starts", 0), ("job_starts", 0), ("poll", 0), ("scale", 1), ("see_all", 0), ("pass", 0),
        ("poll", 0), ("scale", 3), ("see_all", 0), ("pass", 0),
    ],
    "the last Node that an update reaches is cordoned": [
        ("usurp", 6), ("evict", 2), ("edit", 6), ("restart", 5), ("pass", 0), ("evict", 3), ("see_all", 4),
        ("cordon_host", 6), ("pass", 3),
    ],
    "a Node is cordoned when its pod comes back from an update": [
        ("user_deletes_pod", 7), ("edit", 6), ("kubelet_ends", 1), ("slurm_forgets", 0), ("kubelet_ends", 4),
        ("restart", 4), ("evict", 0), ("see", 4), ("cordon_host", 4), ("pass", 0), ("usurp", 3),
    ],
    "a pod is cordoned before it comes up from an update, and slurmctld has not heard of the others": [
        ("edit", 0), ("see_all", 0), ("pass", 0), ("pass", 0), ("kubelet_ends", 0), ("kubelet_ends", 0), ("see_all", 0),
        ("pass", 0), ("pass", 0), ("slurmctld_restarts", 0), ("restart", 6), ("cordon", 5), ("see_all", 6),
    ],
    "an update comes to a node that is to be given back by Slurm's drain, beside one that is not Ready for long": [
        ("patience", 2), ("user_deletes_pod", 0), ("kubelet_ends", 0), ("kubelet_ends", 0), ("see_all", 6), ("pass", 0),
        ("edit", 0), ("misregister", 2),
    ],
    "a pod is evicted, unseen, when an update goes on beside a scale-in": [
        ("edit", 0), ("see_all", 0), ("pass", 0), ("pass", 0), ("kubelet_ends", 0), ("kubelet_ends", 0), ("see_all", 0),
        ("pass", 0), ("pass", 0), ("scale", 2), ("see_all", 5), ("evict", 6),
    ],
    "a job is suspended, and its pod goes, at the tick of the clock at which jobs were asked for": [
        ("scale", 2), ("see_all", 0), ("pass", 0), ("job_starts", 0), ("job_suspends", 0), ("user_deletes_pod", 0),
        ("kubelet_ends", 0), ("kubelet_ends", 0), ("scale", 7), ("admin_drains", 0), ("see_all", 1), ("poll", 0),
    ],
    "the garbage collector takes the revisions of a NodeSet whose deletion the cache does not show yet": [
        ("usurp", 5), ("pad", 1), ("restart", 0), ("delete", 1), ("collect", 1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("begin", range(4))
@pytest.mark.parametrize("name", FOUND)
def test_histories_found_before(worlds: Worlds, name: str, begin: int) -> None:
    runner, *begins = worlds
    runner.run(settling.live(begins[begin], FOUND[name]))


def test_the_load_of_nodes_makes_no_whole_pass(worlds: Worlds) -> None:
    runner, begin, *_ = worlds
    before = harness.Doubting.left_out
    quiet = [("see_all", 0), ("pass", 0), ("see_all", 0), ("pass", 0)]
    runner.run(settling.live(begin, [*quiet, ("job_starts", 1), ("poll", 0), ("pass", 0)]))
    assert harness.Doubting.left_out > before
