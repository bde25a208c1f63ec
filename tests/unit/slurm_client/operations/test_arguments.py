"""Arguments are checked before anything is sent: nothing is dropped, split, or interpreted as more."""

from __future__ import annotations

import enum
import inspect
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from slurm_client import SlurmClient, errors
from slurm_client.models import INFINITE, JobId, JobSpec, QosSpec, ReservationSpec
from slurm_client.notation import sbatch
from slurm_client.operations import checking
from slurm_client.operations.base import Operations
from slurm_client.testing import FakeSlurmrestd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd() as server:
        for number in range(3):
            server.add_node(f"w-{number}", cpus=4)
        yield server


@pytest.fixture
async def slurm(fake: FakeSlurmrestd) -> AsyncIterator[SlurmClient]:
    async with SlurmClient(fake.url, "token") as client:
        yield client


def array(fake: FakeSlurmrestd) -> None:
    """Array 7 with task 0 running as job 8, and tasks 2 to 7 waiting together; and a job 73."""
    fake.add_job(id=7, array_tasks="2-7%2")
    fake.add_job(id=8, nodes=["w-0"], cpus=1)
    fake.add_job(id=73, nodes=["w-1"], cpus=1, user="alice")
    for job_id, task in ((7, None), (8, 0)):
        fake.world.jobs[job_id] = replace(fake.world.jobs[job_id], array_job_id=7, array_task_id=task)


# ids


@pytest.mark.parametrize("text", ["7", "7_0", "7_31", "7+0", "7+12", "4294967279"])
def test_a_job_id_is_read_and_written_alike(text: str) -> None:
    assert str(JobId.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "07",
        " 7",
        "7 ",
        "7\n",
        "+7",
        "-7",
        "7_",
        "7_03",
        "7_[1-3]",
        "7_*",
        "7.batch",
        "7_3_1",
        "7_3+1",
        "7+",
        "x",
        "4294967295",
        "7_99999999999",
        "٧",
        "1e3",
    ],
)
async def test_a_text_that_is_no_job_id_is_refused(slurm: SlurmClient, fake: FakeSlurmrestd, text: str) -> None:
    with pytest.raises(ValueError, match="job"):
        JobId.parse(text)
    for call in (slurm.job, slurm.cancel_job, slurm.requeue_job, slurm.hold_job, slurm.job_resources):
        with pytest.raises(errors.InvalidArgument):
            await call(text)
    with pytest.raises(errors.InvalidArgument):
        await slurm.cancel_jobs([text])
    assert not fake.requests


@pytest.mark.parametrize("number", [0, -1, True, 7.0, None, b"7"])
async def test_what_is_no_number_of_a_job_is_refused(slurm: SlurmClient, fake: FakeSlurmrestd, number: Any) -> None:
    with pytest.raises(errors.InvalidArgument):
        await slurm.cancel_job(number)
    with pytest.raises(errors.InvalidArgument):
        await slurm.cancel_jobs([number])
    assert not fake.requests


class Number(enum.IntEnum):
    JOB = 73


class Index:
    """A whole number like those of numpy."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __index__(self) -> int:
        return self._number


@pytest.mark.parametrize("number", [Number.JOB, Index(73)], ids=["enumeration", "index"])
async def test_a_whole_number_of_another_type_names_a_job(
    slurm: SlurmClient, fake: FakeSlurmrestd, number: Any
) -> None:
    array(fake)
    task: Any = Index(3)
    made = JobId(number, task)
    assert (made, str(made)) == (JobId(73, 3), "73_3")
    assert type(made.id) is int
    assert (await slurm.job(number)).id == 73
    await slurm.cancel_jobs([number])
    assert [job.id for job in fake.world.jobs.values() if job.is_finished] == [73]


async def test_a_task_is_ended_and_not_the_job_of_a_similar_number(slurm: SlurmClient, fake: FakeSlurmrestd) -> None:
    array(fake)
    await slurm.cancel_jobs(["7_0"])
    assert [job.id for job in fake.world.jobs.values() if job.is_finished] == [8]


async def test_tasks_that_wait_together_are_ended_without_those_that_run(
    slurm: SlurmClient, fake: FakeSlurmrestd
) -> None:
    array(fake)
    waiting = await slurm.job(7)
    await slurm.cancel_job(waiting)
    (sent,) = [request for request in fake.requests if request.method == "DELETE"]
    assert sent.body == {"jobs": ["7_[2-7]"]}
    with pytest.raises(errors.InvalidTransition):
        await slurm.requeue_job(waiting)
    with pytest.raises(errors.InvalidArgument):
        await slurm.cancel_job(replace(waiting, array_tasks="2-7,9,..."))


async def test_a_number_means_the_record_of_that_number(slurm: SlurmClient, fake: FakeSlurmrestd) -> None:
    array(fake)
    assert [job.id for job in await slurm.job_parts(7)] == [7, 8]
    assert (await slurm.job(7)).array_tasks == "2-7%2"
    assert (await slurm.job(8)).array_task_id == 0
    assert (await slurm.job("7_0")).id == 8
    waiting = await slurm.job("7_3")
    assert (waiting.is_pending, waiting.array_task_id, waiting.alone) == (True, 3, "7_3")
    with pytest.raises(errors.NotFound):
        await slurm.job("7_1")
    with pytest.raises(errors.NotFound):
        await slurm.job("7+1")


async def test_a_watch_files_no_other_task_under_the_number_of_an_array(
    slurm: SlurmClient, fake: FakeSlurmrestd
) -> None:
    # Job 8 comes first in the answer about job 7.
    fake.add_job(id=8, nodes=["w-0"], cpus=1, array_job_id=7, array_task_id=0)
    fake.add_job(id=7, array_job_id=7, array_tasks="1-3")
    found = await slurm.job_watch.refresh("7", "8")
    assert {key: job and job.id for key, job in found.items()} == {"7": 7, "8": 8}


async def test_one_task_or_component_is_changed_by_the_number_of_its_record(
    slurm: SlurmClient, fake: FakeSlurmrestd
) -> None:
    array(fake)
    fake.add_job(id=20, nodes=["w-2"], cpus=1, het_job_id=20, het_job_offset=0)
    fake.add_job(id=22, nodes=["w-2"], cpus=1, het_job_id=20, het_job_offset=1)
    await slurm.update_job("7_0", JobSpec(comment="task"))
    await slurm.update_job("20+1", JobSpec(comment="component"))
    assert {job.id: job.comment for job in fake.world.jobs.values() if job.comment} == {8: "task", 22: "component"}
    with pytest.raises(errors.InvalidRequest, match="waits together with others"):
        await slurm.update_job("7_3", JobSpec(comment="x"))
    with pytest.raises(errors.NotFound):
        await slurm.update_job("7_1", JobSpec(comment="x"))


async def test_a_task_with_a_record_of_its_own_is_not_taken_for_one_that_waits(
    slurm: SlurmClient, fake: FakeSlurmrestd
) -> None:
    # Slurm has cut the list: task 3 might be in it.
    fake.add_job(id=7, array_job_id=7, array_tasks="5-9,11,...")
    fake.add_job(id=9, nodes=["w-0"], cpus=1, array_job_id=7, array_task_id=3)
    found = await slurm.job("7_3")
    assert (found.id, found.array_task_id) == (9, 3)
    await slurm.update_job("7_3", JobSpec(comment="task"))
    assert {job.id: job.comment for job in fake.world.jobs.values() if job.comment} == {9: "task"}
    waiting = await slurm.job("7_12")
    assert (waiting.id, waiting.array_task_id) == (7, 12)


# calls about many


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"job_ids": [], "user": "alice"},
        {"job_ids": iter(()), "states": ["PENDING"]},
        {"job_ids": [], "nodes": []},
        {"nodes": []},
        {"nodes": [], "partition": "all"},
        {"nodes": ["ALL"]},
        {"nodes": "w-0"},
        {"job_ids": "73"},
        {"user": ""},
        {"user": "", "partition": "all"},
        {"partition": "all", "account": " "},
        {"user": "alice", "name": ""},
        {"states": []},
        {"states": ["RUNING"]},
        {"states": ["PENDING", "COMPLETING"]},
        {"user": "alice", "states": "PENDING"},
        {"user": "alice", "signal": ""},
        {"user": "alice", "signal": "FROB"},
        {"user": 1000},
    ],
)
async def test_jobs_are_never_ended_for_want_of_a_filter(
    slurm: SlurmClient, fake: FakeSlurmrestd, given: dict[str, Any]
) -> None:
    array(fake)
    with pytest.raises(errors.InvalidArgument):
        await slurm.cancel_jobs(**given)
    assert not fake.requests


async def test_no_jobs_to_end_are_none_that_were_ended(slurm: SlurmClient, fake: FakeSlurmrestd) -> None:
    array(fake)
    assert await slurm.cancel_jobs([]) == ()
    assert await slurm.cancel_jobs((JobId(7) for _ in ()), signal="TERM") == ()
    assert not fake.requests


async def test_nodes_are_named_by_hostlists_too(slurm: SlurmClient, fake: FakeSlurmrestd) -> None:
    for names in ("w-[0-1],w-2", ["w-[0-1]", "w-2"], ["w-0", "w-1", "w-2"], iter(["w-[0-2]"])):
        await slurm.drain_nodes(names, "test")
        assert fake.requests[-1].body["name"] == ["w-0", "w-1", "w-2"]
    fake.add_node("w-10")
    await slurm.undrain_nodes("w-1")
    assert fake.requests[-1].path.endswith("/node/w-1")
    for one in (slurm.node, slurm.delete_node):
        with pytest.raises(errors.InvalidArgument):
            await one("w-[0-1]")


@pytest.mark.parametrize("signal", ["", "0", "FROB", "65", "-9", "SIG", 9])
async def test_an_unknown_signal_is_never_sent(slurm: SlurmClient, fake: FakeSlurmrestd, signal: Any) -> None:
    job = fake.add_job(nodes=["w-0"])
    with pytest.raises(errors.InvalidArgument) as refused:
        await slurm.cancel_job(job.id, signal=signal)
    assert refused.value.field == "signal"
    assert not fake.requests


@pytest.mark.parametrize("name", ["ALL", "all", "", ".", "..", "a,ALL", "w-[0-3", " w-1", "a b", "a/b", "a\x00"])
async def test_no_node_is_named_by_what_means_many(slurm: SlurmClient, fake: FakeSlurmrestd, name: str) -> None:
    for call in (slurm.undrain_nodes, slurm.resume_nodes, slurm.delete_nodes, slurm.jobs_on_nodes):
        with pytest.raises(errors.InvalidArgument) as refused:
            await call(["w-0", name])
        assert refused.value.field == "names[1]"
    for one in (slurm.node, slurm.delete_node):
        with pytest.raises(errors.InvalidArgument):
            await one(name)
    assert not fake.requests


async def test_nodes_are_deleted_and_declared_dead_only_by_names_of_nodes(
    slurm: SlurmClient, fake: FakeSlurmrestd
) -> None:
    with pytest.raises(errors.NotFound):
        await slurm.delete_node("w")
    for names in (["w-0", "w"], [*(f"w-{number}" for number in range(12)), "w"]):
        with pytest.raises(errors.NotFound):
            await slurm.down_nodes(names, "x")
    assert {request.method for request in fake.requests} == {"GET"}
    await slurm.down_nodes(fake.nodes, "fans")
    assert all(node.is_down for node in fake.nodes.values())


@pytest.mark.parametrize("state", ["DOWN", "down", "FAIL", "POWER_DOWN_FORCE", "REBOOT_ASAP", ["DRAIN", "DOWN"]])
async def test_a_state_that_ends_jobs_is_given_only_to_names_of_nodes(
    slurm: SlurmClient, fake: FakeSlurmrestd, state: str | list[str]
) -> None:
    for names in (["w-0", "w"], [*(f"w-{number}" for number in range(12)), "w"]):
        with pytest.raises(errors.NotFound, match="nothing was changed"):
            await slurm.update_nodes(names, state=state)
    assert {request.method for request in fake.requests} == {"GET"}


async def test_many_nodes_are_deleted_only_by_names_of_nodes(slurm: SlurmClient, fake: FakeSlurmrestd) -> None:
    names = [*(f"gone-{number}" for number in range(12)), "w", "w-1"]
    with pytest.raises(errors.NotFound, match="no node gone-0"):
        await slurm.delete_nodes(names)
    assert len(fake.calls("get_nodes")) == 1
    assert not fake.calls("get_node")
    (sent,) = fake.calls("delete_node")
    assert sent.path.endswith("/w-1")
    assert set(fake.nodes) == {"w-0", "w-2"}


async def test_nodes_that_were_just_read_are_not_asked_for(slurm: SlurmClient, fake: FakeSlurmrestd) -> None:
    await slurm.delete_nodes(["w-0", "w-1"], are_nodes=True)
    assert not fake.calls("get_node")
    assert len(fake.calls("delete_node")) == 1
    assert set(fake.nodes) == {"w-2"}


async def test_few_nodes_are_deleted_only_by_names_of_nodes(slurm: SlurmClient, fake: FakeSlurmrestd) -> None:
    with pytest.raises(errors.NotFound, match="no node w"):
        await slurm.delete_nodes(["w"])
    assert {request.method for request in fake.requests} == {"GET"}
    with pytest.raises(errors.NotFound, match="no node w"):
        await slurm.delete_nodes(["w-0", "w", "w-1"])
    (sent,) = [request for request in fake.requests if request.method == "DELETE"]
    assert "w-0" in sent.path
    assert "w-1" in sent.path
    assert set(fake.nodes) == {"w-2"}


@pytest.mark.parametrize("name", ["", " ", "a,b", "a/b"])
async def test_nothing_is_deleted_by_an_empty_name(slurm: SlurmClient, fake: FakeSlurmrestd, name: str) -> None:
    for call in (slurm.delete_partition, slurm.delete_reservation, slurm.update_partition, slurm.partition):
        with pytest.raises(errors.InvalidArgument):
            await call(name)
    assert not fake.requests


# create and change


async def test_what_is_unknown_is_not_created_by_a_change(slurm: SlurmClient, fake: FakeSlurmrestd) -> None:
    with pytest.raises(errors.NotFound):
        await slurm.update_reservation(ReservationSpec(name="typo", duration=timedelta(hours=1)))
    with pytest.raises(errors.InvalidArgument):
        await slurm.update_reservation(ReservationSpec(duration=timedelta(hours=1)))
    with pytest.raises(errors.NotFound):
        await slurm.update_partition("typo", state="DOWN")
    assert not [request for request in fake.requests if request.method == "POST"]


async def test_what_is_there_is_not_changed_by_a_creation(slurm: SlurmClient) -> None:
    spec = ReservationSpec(name="r", start_time=datetime.now(UTC), duration=timedelta(hours=1), users=["root"])
    assert await slurm.create_reservation(spec) == "r"
    with pytest.raises(errors.Conflict):
        await slurm.create_reservation(spec)
    await slurm.create_partition("p2", nodes="w-0")
    with pytest.raises(errors.Conflict):
        await slurm.create_partition("p2")


@pytest.mark.parametrize(("wish", "value"), [("state", "UPP"), ("state", "up"), ("flags", ["HIDEN"])])
async def test_a_partition_is_not_written_without_what_is_misspelled(
    slurm: SlurmClient, fake: FakeSlurmrestd, wish: str, value: Any
) -> None:
    wishes: Any = {wish: value}
    for call in (slurm.create_partition("p2", **wishes), slurm.create_partitions({"p2": wishes})):
        with pytest.raises(errors.InvalidArgument, match="nothing was sent"):
            await call
    assert not [request for request in fake.requests if request.method == "POST"]


async def test_partitions_are_given_by_name_with_wishes_that_there_are(slurm: SlurmClient) -> None:
    for given, field in (
        ([], "partitions"),
        ({"p2": 1}, "partitions['p2']"),
        ({"p2": {"nods": "w-0"}}, "partitions['p2']"),
        ({"p2": {"min_nodes": "1"}}, "partitions['p2'].min_nodes"),
        ({"": {}}, "a key of partitions"),
    ):
        wishes: Any = given
        with pytest.raises(errors.InvalidArgument) as refused:
            await slurm.update_partitions(wishes)
        assert refused.value.field == field
    assert await slurm.create_partitions({}) == ()


async def test_no_grace_is_a_length_of_time_and_a_negative_one_is_none(
    slurm: SlurmClient, fake: FakeSlurmrestd
) -> None:
    await slurm.create_partition("p2", grace_time=timedelta())
    assert fake.partitions["p2"].grace_time == timedelta()
    await slurm.db.create_qos(QosSpec(name="q", grace_time=timedelta(seconds=9)))
    await slurm.db.update_qos(QosSpec(name="q", grace_time=timedelta()))
    assert (await slurm.db.qos("q")).grace_time == timedelta()
    made = await slurm.submit_job(
        sbatch.parse("#!/bin/sh\n#SBATCH --delay-boot=0 --switches=2@0 --signal=USR1@0\n").spec
    )
    assert made.id
    with pytest.raises(errors.InvalidArgument, match="zero or more"):
        await slurm.db.update_qos(QosSpec(name="q", grace_time=timedelta(seconds=-1)))
    with pytest.raises(errors.InvalidArgument, match="above zero"):
        await slurm.submit_job(spec(time_limit=timedelta()))


# types


def spec(**values: Any) -> JobSpec:
    return JobSpec(script="#!/bin/sh\n", **values)


def reservation(**values: Any) -> ReservationSpec:
    return ReservationSpec(**values)


@pytest.mark.parametrize(
    ("call", "field", "wanted"),
    [
        (lambda slurm: slurm.drain_nodes(3, "x"), "names", "a hostlist or a list of such"),
        (lambda slurm: slurm.drain_nodes("", "x"), "names", "the name of one node"),
        (lambda slurm: slurm.drain_nodes("w-[0", "x"), "names", "the name of one node"),
        (lambda slurm: slurm.drain_nodes("w-0,all", "x"), "names", "the name of one node"),
        (lambda slurm: slurm.drain_nodes(["w-[0-99999]"], "x"), "names[0]", "at most 65536 nodes"),
        (lambda slurm: slurm.drain_nodes(["w-0"], None), "reason", "a text"),
        (lambda slurm: slurm.drain_nodes(["w-0"], "x", timeout="5"), "timeout", "a number"),
        (lambda slurm: slurm.drain_nodes([b"w-0"], "x"), "names[0]", "the name of one node"),
        (lambda slurm: slurm.update_nodes(["w-0"], weight="3"), "weight", "a whole number"),
        (lambda slurm: slurm.update_nodes(["w-0"], weight=True), "weight", "a whole number"),
        (lambda slurm: slurm.update_nodes(["w-0"], features="gpu"), "features", "a list of a text"),
        (lambda slurm: slurm.update_nodes(["w-0"], state=["DRAIN", 3]), "state[1]", "a text"),
        (lambda slurm: slurm.update_nodes(["w-0"], state=[]), "state", ""),
        (lambda slurm: slurm.submit_job(spec(time_limit=300)), "spec.time_limit", "a timedelta above zero or INFINITE"),
        (lambda slurm: slurm.submit_job(spec(time_limit="5:00")), "spec.time_limit", "a timedelta"),
        (lambda slurm: slurm.submit_job(spec(time_limit=timedelta())), "spec.time_limit", "above zero"),
        (lambda slurm: slurm.submit_job(spec(begin_time=datetime(2026, 1, 1))), "spec.begin_time", "a time zone"),  # noqa: DTZ001
        (lambda slurm: slurm.submit_job(spec(tasks="4")), "spec.tasks", "a whole number"),
        (lambda slurm: slurm.submit_job(spec(nodes=2)), "spec.nodes", "a text"),
        (lambda slurm: slurm.submit_job(spec(hold=1)), "spec.hold", "True or False"),
        (lambda slurm: slurm.submit_job(spec(required_nodes="w-0")), "spec.required_nodes", "a list of a text"),
        (lambda slurm: slurm.submit_job(spec(environment=["A=1"])), "spec.environment", "a mapping"),
        (lambda slurm: slurm.submit_job(spec(environment={"A": 1})), "spec.environment['A']", "a text"),
        (lambda slurm: slurm.submit_job({"script": "x"}), "spec", "a JobSpec"),
        (lambda slurm: slurm.update_job(1, spec(array=3)), "spec.array", "a text"),
        (lambda slurm: slurm.create_reservation(ReservationSpec(users="alice")), "spec.users", "a list of a text"),
        (lambda slurm: slurm.create_reservation(reservation(duration=60)), "spec.duration", "a timedelta"),
        (lambda slurm: slurm.nodes("now"), "update_time", "a whole number"),
        (lambda slurm: slurm.shares(users="alice"), "users", "a list of a text"),
        (lambda slurm: slurm.requeue_job(1, hold="yes"), "hold", "True or False"),
        (lambda slurm: slurm.create_node(""), "conf", "a text that is not empty"),
    ],
)
async def test_a_value_of_another_type_is_refused_with_its_field(
    slurm: SlurmClient,
    fake: FakeSlurmrestd,
    call: Callable[[SlurmClient], Awaitable[object]],
    field: str,
    wanted: str,
) -> None:
    with pytest.raises(errors.InvalidArgument) as refused:
        await call(slurm)
    assert refused.value.field == field
    assert field in refused.value.message
    assert wanted in refused.value.message
    assert len(refused.value.message) < 300
    assert not fake.requests


async def test_good_values_pass_unchanged(slurm: SlurmClient, fake: FakeSlurmrestd) -> None:
    await slurm.drain_nodes((name for name in ("w-0", "w-1")), "x")
    await slurm.drain_nodes(fake.nodes, "y", timeout=5)
    assert {node.reason for node in fake.nodes.values()} == {"y"}
    await slurm.undrain_nodes({"w-0", "w-1", "w-2"})
    made = await slurm.submit_job(
        spec(time_limit=INFINITE, environment={"A": "1"}, begin_time=datetime.now(UTC), other={"x11": ["NONE"]})
    )
    await slurm.cancel_jobs(iter([JobId(made.id)]), user="root", states=("running", "PENDING"), signal="sigterm")
    await slurm.cancel_job(await slurm.job(str(made.id)), signal="15")


def public_calls() -> list[Any]:
    return [
        function
        for name, function in inspect.getmembers(SlurmClient, inspect.iscoroutinefunction)
        if not name.startswith("_") and issubclass(SlurmClient, Operations)
    ]


@pytest.mark.parametrize("function", public_calls(), ids=lambda function: function.__name__)
def test_each_parameter_of_each_call_has_a_check(function: Any) -> None:
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]
    assert list(checking._checks_of(function.__wrapped__)) == parameters
