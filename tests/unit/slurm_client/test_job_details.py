"""The details of a job: which jobs have them, what each data parser says of them, and what they cost."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client import JobSpec, SyncSlurmClient, wire
from slurm_client.connection import answers
from slurm_client.connection.answers import ListOf
from slurm_client.decode import jobs
from slurm_client.decode.job_details import detailed_job, detailed_job_in_slices
from slurm_client.errors import Request
from slurm_client.models import Job, JobDetails, JobNode, JobResources, JobSocket
from slurm_client.testing import FakeSlurmrestd, World
from slurm_client.testing.answers import encode
from slurm_client.testing.threaded import running
from tests.unit.slurm_client.clients import client
from tests.unit.slurm_client.strategies import objects

if TYPE_CHECKING:
    from collections.abc import Mapping

RESOURCES = JobResources(
    node_list="w-[0-1]",
    node_count=2,
    cpus=6,
    nodes=(
        JobNode(
            name="w-0",
            cpus=4,
            cpus_in_use=1,
            memory_mib=2048,
            memory_in_use_mib=512,
            sockets=(JobSocket(index=0, cores=(0, 3), cores_in_use=(3,)), JobSocket(index=1, cores=(1,))),
        ),
        JobNode(name="w-1", cpus=2, memory_mib=1024, sockets=(JobSocket(index=0, cores=(0,)),)),
    ),
    whole_nodes=True,
    threads_per_core=2,
    select_type=frozenset({"MEMORY"}),
    node_select_type=frozenset({"ONE_ROW"}),
)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ALL = JobDetails(
    sluid="s28DM7Y1C40K00",
    association_id=7,
    allocating_node="login-0",
    resources=RESOURCES,
    billable_tres=2.5,
    job_size=("1", "3-5"),
    cores_per_socket=8,
    sockets_per_node=2,
    sockets_per_board=1,
    threads_per_core=2,
    tasks_per_board=4,
    tasks_per_core=1,
    tasks_per_socket=3,
    tasks_per_tres=5,
    core_spec=2,
    cpus_per_tres="gres/gpu:4",
    memory_per_tres="gres/gpu:1024",
    tres_bind="gres/gpu:closest",
    tres_freq="gpu:medium",
    cpu_frequency_minimum=1_200_000,
    cpu_frequency_maximum="highm1",
    cpu_frequency_governor="ondemand",
    memory_update_margin=20,
    memory_update_delay=timedelta(minutes=10),
    batch_features="big",
    cluster_features="fast",
    mail_types=frozenset({"END", "TIME=90%"}),
    mail_user="alice@example.org",
    profile=frozenset({"TASK", "ENERGY"}),
    delay_boot=timedelta(minutes=3),
    reboot=True,
    ran_before_suspension=timedelta(hours=1),
    resize_time=NOON,
    preemptable_time=NOON + timedelta(minutes=1),
    failed_node="w-9",
    network="sn_all",
    burst_buffer="#BB",
    burst_buffer_state="staged",
    mcs_label="alice",
    selinux_context="context",
    container_type="runc",
    cron="0 * * * *",
    het_job_ids="7-9",
    federation_origin="a",
    federation_siblings_active=("a", "b"),
    federation_siblings_viable=("b",),
)
KEYS_OF_SOME_PARSERS = {
    "sluid": "step_id",
    "container_type": "container_type",
    "memory_update_margin": "memory_update_margin",
    "memory_update_delay": "memory_update_delay",
}
"""Fields whose key not all parsers have."""


def expected(version: str, details: JobDetails = ALL) -> JobDetails:
    """Return what a parser can say of details."""
    unknown = JobDetails()
    lacking = {
        field: getattr(unknown, field)
        for field, key in KEYS_OF_SOME_PARSERS.items()
        if key not in wire.fields(version, "JobInfo")
    }
    found = details.resources
    if version == "v0.0.40" and found is not None:
        nodes = tuple(replace(node, cpus=None) for node in found.nodes)
        lacking["resources"] = JobResources(
            node_list=found.node_list, node_count=found.node_count, cpus=found.cpus, nodes=nodes
        )
    return replace(details, **lacking)


def test_all_of_them_are_asked_about() -> None:
    unknown = JobDetails()
    assert [each.name for each in fields(ALL) if getattr(ALL, each.name) == getattr(unknown, each.name)] == [
        "thread_spec"  # beside cores there are no threads
    ]


@pytest.mark.parametrize("version", wire.PARSERS)
def test_each_parser_says_what_it_knows(version: str) -> None:
    world = World()
    job = world.add_job(details=ALL)
    assert detailed_job(encode.job(job, version)).details == expected(version)


@pytest.mark.parametrize("version", wire.PARSERS)
def test_nothing_asked_for_is_nothing(version: str) -> None:
    world = World()
    job = world.add_job(user="alice")
    found = detailed_job(encode.job(job, version)).details
    said = JobDetails(mail_user="alice", profile=frozenset({"NOT_SET"}), allocating_node="localhost", sluid=found.sluid)
    assert found == said
    assert bool(found.sluid) == ("step_id" in wire.fields(version, "JobInfo"))


def marked(value: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


@pytest.mark.parametrize(
    ("raw", "field", "value"),
    [
        ({"core_spec": 0, "thread_spec": 32766}, "core_spec", None),
        ({"core_spec": 0, "thread_spec": 0}, "core_spec", 0),
        ({"core_spec": 0, "thread_spec": 2}, "thread_spec", 2),
        ({"core_spec": 0, "thread_spec": 2}, "core_spec", None),
        ({"core_spec": 3, "thread_spec": 0}, "thread_spec", None),
        ({"tasks_per_core": {"set": False, "infinite": True, "number": 0}}, "tasks_per_core", None),
        ({"cpu_frequency_minimum": {"set": False, "infinite": False, "number": 0}}, "cpu_frequency_minimum", None),
        ({"cpu_frequency_minimum": marked(2147483652)}, "cpu_frequency_minimum", "highm1"),
        ({"cpu_frequency_governor": marked(2155872256)}, "cpu_frequency_governor", "userspace"),
        ({"cpu_frequency_governor": 0x80000000 | 0x06000000}, "cpu_frequency_governor", "ondemand,performance"),
        ({"job_resources": None}, "resources", None),
        ({"job_resources": {}}, "resources", None),
        ({"job_resources": {"nodes": ""}}, "resources", None),
    ],
)  # fmt: skip
def test_what_slurm_writes_is_what_it_means(raw: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(detailed_job({"job_id": 1, **raw}).details, field) == value


@given(objects(wire.fields(wire.PARSERS[-1], "JobInfo"), job_id=st.integers(0, 2**32)))
def test_any_job_with_an_id_is_read(raw: dict[str, Any]) -> None:
    job = detailed_job(raw)
    hash(job.details)
    assert job == jobs.job(raw)


def keyed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Mapping[str, Any]]:
    names = ["nodes", "allocation", "allocated_nodes", "sockets", "cores", "cpus", "memory", "index", "status", "list"]
    return st.dictionaries(st.sampled_from(names), inner, max_size=4)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=4), lambda inner: st.lists(inner, max_size=3) | keyed(inner)
    )
)
def test_any_resources_are_read(value: Any) -> None:
    hash(detailed_job({"job_id": 1, "job_resources": value}).details)


def test_a_job_on_many_nodes_is_read_in_slices() -> None:
    node = {"name": "w", "sockets": [{"index": 0, "cores": [{"index": 0, "status": ["ALLOCATED"]}]}]}
    raw = {"job_id": 1, "job_resources": {"nodes": {"list": "w", "allocation": [node] * 10_000}}}
    assert sum(1 for _ in detailed_job_in_slices(raw)) > 100


async def test_a_job_that_is_asked_for_has_them(fake: FakeSlurmrestd) -> None:
    own = fake.add_job(nodes=["w-0"], details=ALL)
    async with client(fake) as slurm:
        job = await slurm.job(own.id)
        assert job.details == ALL
        assert [each.details for each in await slurm.job_parts(own.id)] == [ALL]
        assert not hasattr(await slurm.job(own.id, details=False), "details")


async def test_a_list_has_them_if_it_is_asked(fake: FakeSlurmrestd) -> None:
    own = fake.add_job(nodes=["w-0"], details=ALL)
    async with client(fake) as slurm:
        plain = (await slurm.jobs())[0]
        with pytest.raises(AttributeError, match=rf"job {own.id} was listed without details: .* jobs\(details=True\)"):
            _ = plain.details
        listing = await slurm.jobs(details=True)
        assert listing[0].details == ALL
        assert listing[0] == plain
        assert hash(listing[0]) == hash(plain)
        assert repr(listing[0]) == repr(plain)


async def test_what_is_kept_for_long_has_none(fake: FakeSlurmrestd) -> None:
    own = fake.add_job(nodes=["w-0"], details=ALL)
    async with client(fake) as slurm, slurm.watch_jobs() as reader:
        assert not hasattr((await reader.initial())[str(own.id)], "details")
        assert not hasattr((await slurm.job_watch.refresh(str(own.id)))[str(own.id)], "details")
        assert not hasattr((await slurm.all_jobs())[0], "details")


async def test_they_go_with_what_is_made_of_a_job(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        submitted = await slurm.submit_job(JobSpec(script="#!/bin/sh\n", hold=True, array="0-1", mail_user="alice"))
        tasks = await slurm.job_tasks(submitted.id)
        assert [task.details.mail_user for task in tasks] == ["alice", "alice"]
        job = await slurm.job(f"{submitted.id}_1")
        for copied in (copy.copy(job), pickle.loads(pickle.dumps(job)), replace(job, name="other")):  # noqa: S301
            assert copied.details == job.details


def test_the_blocking_client_has_them() -> None:
    with running() as fake:
        fake.add_node("w-0")
        own = fake.add_job(nodes=["w-0"], details=ALL)
        with SyncSlurmClient(fake.url, "token") as slurm:
            assert slurm.job(own.id).details == ALL
            assert slurm.jobs(details=True)[0].details == ALL


async def test_a_submission_is_seen_in_them(fake: FakeSlurmrestd) -> None:
    spec = JobSpec(
        script="#!/bin/sh\n",
        hold=True,
        mail_user="alice@example.org",
        mail_type=["END"],
        tasks_per_socket=2,
        threads_per_core=1,
        delay_boot=timedelta(seconds=90),
        profile=["TASK"],
        tres_freq="gpu:low",
    )
    async with client(fake) as slurm:
        details = (await slurm.job((await slurm.submit_job(spec)).id)).details
    assert (details.mail_user, details.mail_types) == ("alice@example.org", frozenset({"END"}))
    assert (details.tasks_per_socket, details.threads_per_core, details.tasks_per_core) == (2, 1, None)
    assert (details.delay_boot, details.profile, details.tres_freq) == (
        timedelta(seconds=90),
        frozenset({"TASK"}),
        "gpu:low",
    )
    assert details.resources is None


async def test_they_count_in_what_an_answer_takes() -> None:
    body = b'{"jobs": [{"job_id": 7}]}'
    plain = await answers.read(body, 200, Request("GET", "/"), ListOf("jobs", jobs.job))
    detailed = await answers.read(body, 200, Request("GET", "/"), ListOf("jobs", detailed_job))
    assert detailed.weight > plain.weight


def test_no_field_is_in_both() -> None:
    assert {each.name for each in fields(JobDetails)} & {each.name for each in fields(Job)} == set()
