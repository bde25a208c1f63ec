"""A seed is a plan, the same one each time; what each lane draws is its own."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random

import pytest

from tests.campaign.deck import hand
from tests.campaign.faults.table import FAULTS
from tests.campaign.kept import KEPT, SECONDS
from tests.campaign.lanes import actions, jobs
from tests.campaign.lanes.keys import MADE_SECRETS, STEPS
from tests.campaign.lanes.upkeep import HARMS
from tests.campaign.plan import (
    ADMIN,
    BROKEN,
    JOBS,
    LANES,
    LATE,
    cards,
    has_other_node,
    has_upgrade,
    make,
    tables,
)

SEEDS = range(40)


def test_a_seed_is_the_same_plan_each_time_and_others_are_others() -> None:
    assert [make(seed, 90) for seed in SEEDS] == [make(seed, 90) for seed in SEEDS]
    assert len({str([*map(str, make(seed, 90).steps)]) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("seconds", [30, 90])
@pytest.mark.parametrize("first", [7, 113])
def test_twenty_seeds_in_a_row_have_every_kind_of_every_lane(first: int, seconds: float) -> None:
    steps = [step for seed in range(first, first + 20) for step in make(seed, seconds).steps]
    for lane, deck in cards().items():
        drawn = [step for step in steps if step.lane == lane]
        assert {step.name for step in drawn} == set(tables()[lane])
        for card in deck:
            assert any(step.name == card.name and card.values.items() <= step.values.items() for step in drawn), card


def test_every_harm_every_mistake_in_a_rotation_and_every_lost_secret_is_a_card() -> None:
    found = [{**one.values} for one in cards()[ADMIN] if one.values]
    harms, lost = ({"harm": one} for one in HARMS), ({"secret": one} for one in MADE_SECRETS)
    assert found == [*harms, *lost, *({"step": one} for one in STEPS)]


def test_ten_seeds_share_a_deck_and_each_card_is_dealt_once() -> None:
    for deck in cards().values():
        dealt = [card for seed in range(30, 40) for card in hand(seed, "lane", deck)]
        assert sorted(map(str, dealt)) == sorted(map(str, deck))
    assert hand(30, "lane", deck) != hand(40, "lane", deck)


def test_slurm_is_upgraded_in_one_seed_of_ten() -> None:
    assert [sum(has_upgrade(make(seed, 90)) for seed in range(first, first + 10)) for first in (0, 50, 120)] == [
        1,
        1,
        1,
    ]


@pytest.mark.parametrize("lane", LANES)
def test_a_new_kind_in_one_lane_changes_no_step_of_the_others(monkeypatch: pytest.MonkeyPatch, lane: str) -> None:
    before = [(step.at, step.name) for step in make(7, 90).steps if step.lane != lane]
    table = tables()[lane]
    monkeypatch.setattr("tests.campaign.plan.tables", lambda: {**tables(), lane: {**table, "new": table[min(table)]}})
    assert [(step.at, step.name) for step in make(7, 90).steps if step.lane != lane] == before


@pytest.mark.parametrize("lane", sorted(BROKEN))
def test_faults_of_one_lane_follow_each_other_and_end_within_the_round_unless_they_were_dealt(lane: str) -> None:
    for seed in SEEDS:
        steps = make(seed, 90).lane(lane)
        assert all(one.at + one.lasts < other.at for one, other in pairwise(steps))
        dealt = {card.name for card in hand(seed, lane, cards()[lane])}
        assert all(one.at + one.lasts <= 90 for one in steps if one.name not in dealt)


def test_steps_are_by_time_and_numbered_and_keep_their_numbers_when_others_are_left_out() -> None:
    plan = make(3, 90)
    assert [one.number for one in plan.steps] == [*range(1, len(plan.steps) + 1)]
    assert [one.at for one in plan.steps] == sorted(one.at for one in plan.steps)
    assert plan.only({2, 5}).steps == (plan.steps[1], plan.steps[4])


def test_what_is_drawn_can_be_printed_and_read() -> None:
    for step in make(5, 120).steps:
        assert json.loads(json.dumps(dict(step.values))) == step.values
        assert step.name in str(step)


def test_every_job_is_in_a_partition_whose_nodes_suffice_and_names_a_node_that_it_may_use() -> None:
    for seed in SEEDS:
        for step in make(seed, 90).lane(JOBS):
            argv = jobs.command(step.name, step.values, "m")
            assert "{" not in "".join(argv)
            assert step.values["partition"] in {"both", *jobs.NODES}
            named = [one for one in argv if one.startswith(("--nodelist", "--exclude"))]
            assert not named or step.values["partition"] == "both"


def test_a_job_in_a_reservation_names_the_one_that_is_made_and_ended() -> None:
    kinds = {name: one for name, one in jobs.KINDS.items() if one.reservation}
    assert len(kinds) == 2
    for name, kind in kinds.items():
        values = kind.draw(Random(1))  # noqa: S311 the same each time
        made = jobs.reservation(name, values, "m7")
        assert {"reservationname=m7", f"nodes={values['node']}"} <= {*made}
        assert "--reservation=m7" in jobs.command(name, values, "m7")
        assert all(jobs.RESERVATION in words for words in kind.then.values())
    assert jobs.reservation("short", {}, "m7") == []


def test_jobs_that_are_submitted_late_do_not_lengthen_the_end() -> None:
    for step in (one for seed in SEEDS for one in make(seed, 45).lane(JOBS) if not jobs.KINDS[one.name].then):
        assert step.at + step.values["seconds"] <= max(45, step.at) + LATE


def test_the_script_of_a_job_writes_start_and_end_into_the_file_of_its_mark() -> None:
    text = jobs.script("ignores TERM", {"seconds": 3}, "m7")
    assert text.startswith("#!/bin/sh\ntrap '' TERM\n")
    assert f">> {jobs.WITNESS}/m7" in text
    assert text.endswith("say start\nsleep 3\nsay end\n")


def test_every_fault_is_in_one_lane_and_has_a_length_if_it_has_an_end() -> None:
    assert sorted(name for lane in BROKEN for name in tables()[lane]) == sorted(FAULTS)
    assert {name for name, one in FAULTS.items() if (one.end is None) != (one.lasts == (0, 0))} == set()


def test_no_action_names_what_the_site_does_not_have() -> None:
    for name, action in actions.ACTIONS.items():
        assert set(action.choices.get("nodeset", ())) <= set(jobs.NODES), name


def test_the_seeds_of_every_run_have_faults_of_each_lane_and_need_one_site() -> None:
    plans = [make(seed, SECONDS) for seed in KEPT]
    assert not any(has_upgrade(plan) or has_other_node(plan) for plan in plans)
    names = {step.name for plan in plans for step in plan.steps}
    assert names >= {
        "operator killed", "slurmctld killed", "slurmctld ended", "slurmctld unreachable", "agent killed",
        "slurmctld's disk full", "MariaDB's disk full", "kubelet stopped", "DNS gone", "API server says 500",
        "API server says 409", "another leader", "rotate the key of Slurm", "rotate the key of JWTs", "scale", "evict",
        "edit Cluster", "edit a field of the Cluster", "edit a field of a NodeSet", "harm an object of slurmctld's",
    }  # fmt: skip
