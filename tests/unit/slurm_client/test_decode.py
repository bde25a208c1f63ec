from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client import wire
from slurm_client.decode import jobs, nodes, partitions, read, resources, service
from slurm_client.decode.names import Nameless
from slurm_client.models import INFINITE, JobState, Node, NodeState, PartitionPriority, PendingRpcs, ShareTres
from slurm_client.testing.answers.encode import records
from tests.unit.slurm_client.strategies import objects as random_objects
from tests.unit.slurm_client.strategies import values

NEWEST = wire.PARSERS[-1]

names = st.text(min_size=1, max_size=8)


@given(values)
def test_no_value_makes_a_reader_raise(value: Any) -> None:
    for reader in (
        read.text,
        read.words,
        read.number,
        read.decimal,
        read.count,
        read.flag,
        read.limit,
        read.timestamp,
        read.minutes,
        read.seconds,
    ):
        reader(value)


@given(random_objects(wire.fields(NEWEST, "Node"), name=names))
def test_any_node_with_a_name_is_read(raw: dict[str, Any]) -> None:
    node = nodes.node(raw)
    assert node.name == raw["name"]
    hash(node)
    str(node.state)


@given(random_objects(wire.fields(NEWEST, "JobInfo"), job_id=st.integers(0, 2**32)))
def test_any_job_with_an_id_is_read(raw: dict[str, Any]) -> None:
    job = jobs.job(raw)
    assert job.id == raw["job_id"]
    hash(job)


@given(random_objects(wire.fields(NEWEST, "PartitionInfo"), name=names))
def test_any_partition_with_a_name_is_read(raw: dict[str, Any]) -> None:
    assert partitions.partition(raw).name == raw["name"]


@given(random_objects(wire.fields(NEWEST, "StatsMsg")), random_objects(wire.fields(NEWEST, "ControllerPing")))
def test_any_counters_and_any_ping_are_read(statistics: dict[str, Any], ping: dict[str, Any]) -> None:
    service.diag(statistics)
    service.ping(ping)


@given(
    random_objects(wire.fields(NEWEST, "ReservationInfo"), name=names),
    random_objects(wire.fields(NEWEST, "License"), LicenseName=names),
    random_objects(wire.fields(NEWEST, "NodeResourceLayout"), node=names),
)
def test_any_other_object_with_a_name_is_read(
    reservation: dict[str, Any], license_: dict[str, Any], layout: dict[str, Any]
) -> None:
    resources.reservation(reservation)
    resources.license_(license_)
    resources.node_resources(layout)


@pytest.mark.parametrize("raw", [{}, {"name": None}, {"name": ""}, {"name": []}])
def test_a_node_without_a_name_is_not_passed_over(raw: dict[str, Any]) -> None:
    with pytest.raises(Nameless):
        nodes.node(raw)


def test_unset_infinite_and_zero_are_three_things() -> None:
    unset = {"set": False, "infinite": False, "number": 0}
    infinite = {"set": False, "infinite": True, "number": 0}
    zero = {"set": True, "infinite": False, "number": 0}
    assert [read.limit(value) for value in (unset, infinite, zero)] == [None, INFINITE, 0]
    assert [read.number(value) for value in (unset, infinite, zero)] == [None, None, 0]
    assert [read.timestamp(value) for value in (unset, infinite, zero)] == [None, None, None]
    assert read.minutes({"set": True, "infinite": False, "number": 5}) == timedelta(minutes=5)
    assert read.timestamp(1_795_230_670) == datetime(2026, 11, 21, 3, 11, 10, tzinfo=UTC)


def test_lists_may_be_texts_and_texts_may_be_lists() -> None:
    assert read.words("a, b,") == read.words(["a", "b"]) == ("a", "b")
    assert read.words(None) == read.words([None, 3, {}]) == ()
    assert read.text(["a", "b"]) == "a,b"
    assert read.text({"set": True, "infinite": False, "number": 7}) == "7"


def test_an_unknown_base_word_is_kept_and_known_flags_are_not_taken_for_one() -> None:
    assert NodeState.from_words(["HIBERNATING", "DRAIN"]) == NodeState("HIBERNATING", frozenset({"DRAIN"}))
    assert NodeState.from_words(["DRAIN"]) == NodeState("UNKNOWN", frozenset({"DRAIN"}))
    assert NodeState.from_words(["DRAIN", "NEW_FLAG", "IDLE"]).base == "IDLE"
    assert "NEW_FLAG" in NodeState.from_words(["DRAIN", "NEW_FLAG", "IDLE"])
    assert NodeState.from_words([]) == NodeState()


@pytest.mark.parametrize(
    ("words", "finished", "holds"),
    [
        (["PENDING"], False, False),
        (["PENDING", "COMPLETING"], False, True),
        (["RUNNING"], False, True),
        (["RUNNING", "CONFIGURING"], False, True),
        (["SUSPENDED"], False, True),
        (["COMPLETED"], True, False),
        (["COMPLETED", "COMPLETING"], False, True),
        (["CANCELLED", "STAGE_OUT"], False, True),
        (["SOMETHING_NEW"], False, True),
    ],
)
def test_a_job_holds_its_nodes_until_nothing_of_it_is_left(words: list[str], finished: bool, holds: bool) -> None:
    state = JobState.from_words(words)
    assert (state.is_finished, state.holds_nodes) == (finished, holds)


@pytest.mark.parametrize(
    ("words", "drained"),
    [
        (["IDLE", "DRAIN"], True),
        (["DOWN", "DRAIN"], True),
        (["IDLE"], False),
        (["ALLOCATED", "DRAIN"], False),
        (["MIXED", "DRAIN"], False),
        (["IDLE", "DRAIN", "COMPLETING"], False),
        (["DRAIN", "MIXED", "IDLE"], False),
    ],
)
def test_drained_is_drain_and_no_work_left(words: list[str], drained: bool) -> None:
    assert nodes.node({"name": "n", "state": words}).is_drained is drained


def test_values_that_always_move_do_not_make_nodes_different() -> None:
    raw = records()["node"]
    moved = json.loads(json.dumps(raw)) | {"cpu_load": 4711, "last_busy": 1_800_000_000, "free_mem": 1}
    assert nodes.node(raw) == nodes.node(moved)
    assert nodes.node(raw) != nodes.node(raw | {"comment": "changed"})
    assert nodes.node(raw | {"cpu_load": 328}).cpu_load == 3.28


def test_pings_of_old_parsers_are_understood() -> None:
    up = service.ping({"hostname": "a", "pinged": "UP", "mode": "primary", "latency": 5})
    down = service.ping({"hostname": "b", "pinged": "DOWN", "mode": "backup1"})
    assert (up.responding, up.primary, up.latency_us) == (True, True, 5)
    assert (down.responding, down.primary) == (False, False)
    assert service.ping({"hostname": "c"}).primary is None


@pytest.mark.parametrize(
    ("state", "usable"),
    [
        ("IDLE", True),
        ("MIXED+PLANNED", True),
        ("ALLOCATED", True),
        ("IDLE+POWERED_DOWN", True),
        ("IDLE+POWERING_UP", True),
        ("IDLE+REBOOT_REQUESTED", True),
        ("IDLE+DRAIN", False),
        ("IDLE+FAIL", False),
        ("DOWN", False),
        ("DOWN+REBOOT_ISSUED", False),
        ("IDLE+NOT_RESPONDING", False),
        ("IDLE+RESERVED", False),
        ("IDLE+RESERVED+MAINTENANCE", False),
        ("IDLE+POWER_DOWN", False),
        ("IDLE+POWERING_DOWN", False),
        ("IDLE+INVALID_REG", False),
        ("FUTURE", False),
        ("NEWER", False),
    ],
)
def test_a_node_is_usable_where_slurmctld_starts_jobs(state: str, usable: bool) -> None:
    assert Node(name="w-0", state=NodeState.from_words(state.split("+"))).is_usable is usable


@given(random_objects(wire.fields(NEWEST, "AssocSharesObjWrap"), name=names))
def test_any_share_with_a_name_is_read(raw: dict[str, Any]) -> None:
    (share,) = resources.shares({"shares": [raw]})
    assert share.name == raw["name"]
    hash(share)


def test_the_usage_of_an_association_is_split_by_tres() -> None:
    value = {"set": True, "infinite": False, "number": 60}
    raw = {
        "name": "alice",
        "tres": {
            "usage": [{"name": "cpu", "value": 7.5}, {"name": "gres/gpu", "value": 2.0}],
            "run_seconds": [{"name": "cpu", "value": value}, None, {"value": value}],
            "group_minutes": [{"name": "cpu", "value": value | {"infinite": True}}, {"name": "mem", "value": value}],
        },
    }
    (share,) = resources.shares({"shares": [raw]})
    assert share.tres == (
        ShareTres("cpu", usage=7.5, run_seconds=60, group_minutes=INFINITE),
        ShareTres("gres/gpu", usage=2.0),
        ShareTres("mem", group_minutes=60),
    )


def test_calls_that_wait_are_joined_with_whom_they_are_for() -> None:
    diag = service.diag(
        {
            "pending_rpcs": [
                {"type_id": 1001, "message_type": "REQUEST_PING", "count": 3},
                {"type_id": 6011, "message_type": "REQUEST_TERMINATE_JOB", "count": 1},
                "nonsense",
            ],
            "pending_rpcs_by_hostlist": [
                {"type_id": 1001, "message_type": "REQUEST_PING", "count": ["w-[0-3]", "x-0,y-1"]},
                {"type_id": 1001, "message_type": "REQUEST_PING", "count": "z-[0,2]"},
                {"type_id": 4, "message_type": "REQUEST_KILL", "count": ["k-0"]},
            ],
        }
    )
    assert diag.pending_rpcs == (
        PendingRpcs("REQUEST_PING", 1001, 3, ("w-[0-3]", "x-0,y-1", "z-[0,2]")),
        PendingRpcs("REQUEST_TERMINATE_JOB", 6011, 1),
        PendingRpcs("REQUEST_KILL", 4, 1, ("k-0",)),
    )


def test_the_priority_of_a_job_in_each_of_its_partitions_is_read() -> None:
    raw = {"job_id": 1, "priority_by_partition": [{"partition": "a", "priority": 7}, {"partition": "b"}, 5]}
    assert jobs.job(raw).priority_by_partition == (PartitionPriority("a", 7), PartitionPriority("b", 0))
    assert jobs.job({"job_id": 1}).priority_by_partition == ()


def test_paths_are_expanded_whatever_the_parser_calls_them() -> None:
    old = jobs.job({"job_id": 1, "standard_output": "/tmp/1.out"})
    new = jobs.job({"job_id": 1, "standard_output": "/tmp/%j.out", "stdout_expanded": "/tmp/1.out"})
    same = jobs.job({"job_id": 1, "standard_error": "", "stderr_expanded": ""})
    assert old.standard_output_expanded == new.standard_output_expanded == "/tmp/1.out"
    assert new.standard_output == "/tmp/%j.out"
    assert same.standard_error_expanded == ""


def test_when_slurm_looked_at_a_job_last_does_not_make_it_another() -> None:
    first, later = (jobs.job({"job_id": 1, "last_sched_evaluation": when}) for when in (1_800_000_000, 1_800_000_060))
    assert first == later
    assert first.last_sched_evaluation != later.last_sched_evaluation
