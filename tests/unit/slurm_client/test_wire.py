"""The decoders' and encoders' assumptions about the data parsers, against the parsers' own specifications."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

import slurm_client
from hack.client.wire.__main__ import SOURCES, main
from hack.client.wire.slim import KEPT_OF_SLURMDBD, KEPT_OPERATIONS
from hack.images.names import SLURM_SUITES
from slurm_client import errors, wire
from slurm_client.decode import job_details, resources, service
from slurm_client.decode import nodes as decode_nodes
from slurm_client.decode import partitions as decode_partitions
from slurm_client.encode import jobs, nodes, reservations
from slurm_client.encode.values import fitted
from slurm_client.models import INFINITE, JobSpec, JobState, NodeState, PartitionState, ReservationSpec
from slurm_client.testing.server import PARSERS_OF_RELEASE
from slurm_client.wire.endpoint import READS, WRITES
from tests.unit.slurm_client.recorder import Recorder
from tests.unit.slurm_client.spec import complaints_about_request

if TYPE_CHECKING:
    from collections.abc import Callable


NOT_IN_OLD_PARSERS = {
    "Node": {
        "topology": "v0.0.43",
        "cert_flags": "v0.0.43",
        "gpu_spec": "v0.0.41",
        "res_cores_per_gpu": "v0.0.41",
        "suspend_time": "v0.0.45",
        "tls_cert_last_renewal": "v0.0.43",
    },
    "JobInfo": {
        "required_switches": "v0.0.42",
        "minimum_switches": "",
        "priority_by_partition": "v0.0.42",
        "segment_size": "v0.0.43",
        "licenses_allocated": "v0.0.43",
        "stdin_expanded": "v0.0.43",
        "stdout_expanded": "v0.0.43",
        "stderr_expanded": "v0.0.43",
        "submit_line": "v0.0.44",
        "step_id": "v0.0.44",
        "container_type": "v0.0.45",
        "memory_update_delay": "v0.0.45",
        "memory_update_margin": "v0.0.45",
    },
    "PartitionInfo": {"flags": "v0.0.45", "preempt_mode": "v0.0.45"},
    "ReservationInfo": {},
    "License": {"Nodes": "v0.0.44"},
    "NodeResourceLayout": {},
    "StatsMsg": {
        "bf_cycle_max": "v0.0.41",
        "bf_table_size_sum": "v0.0.41",
        "pending_rpcs": "v0.0.41",
        "pending_rpcs_by_hostlist": "v0.0.41",
        "schedule_cycle_depth": "v0.0.41",
        "schedule_cycle_sum": "v0.0.41",
    },
    "ControllerPing": {"mode": "", "pinged": ""},
}
"""Keys a decoder asks for although not every parser has them: the first that has."""


@pytest.mark.parametrize(
    ("model", "decode", "certain"),
    [
        ("Node", decode_nodes.node, {"name": "n"}),
        ("JobInfo", job_details.detailed_job, {"job_id": 1}),
        ("PartitionInfo", decode_partitions.partition, {"name": "p"}),
        ("ReservationInfo", resources.reservation, {"name": "r"}),
        ("License", resources.license_, {"LicenseName": "l"}),
        ("NodeResourceLayout", resources.node_resources, {"node": "n"}),
        ("StatsMsg", service.diag, {}),
        ("ControllerPing", service.ping, {}),
    ],
)
def test_decoders_ask_for_keys_that_parsers_have(
    model: str, decode: Callable[[Any], Any], certain: dict[str, Any]
) -> None:
    raw = Recorder(certain)
    decode(raw)
    assert raw.asked
    for version in wire.PARSERS:
        known = wire.fields(version, model)
        if not known:
            continue
        missing = {key for key in raw.asked - known if version >= NOT_IN_OLD_PARSERS[model].get(key, version)}
        missing -= {key for key, since in NOT_IN_OLD_PARSERS[model].items() if not since}
        assert not missing, f"{version} has no {sorted(missing)} in {model}"


def words(version: str, *places: str) -> set[str]:
    known = import_module(f"slurm_client.wire.{version.replace('.', '_')}.models").WORDS
    return {word for place in places for word in known.get(place, ())}


@pytest.mark.parametrize("version", wire.PARSERS)
def test_all_state_words_of_the_parsers_are_known(version: str) -> None:
    node = words(version, "NodeStateItem", "NodeStatesItem")
    job = words(version, "JobInfoJobStateItem", "JobStateItem")
    partition = words(version, "PartitionInfoPartitionStateItem", "PartitionStatesItem")
    assert node
    assert job
    assert partition
    assert node <= NodeState.BASES | NodeState.FLAGS
    assert job <= JobState.BASES | JobState.FLAGS
    assert partition <= PartitionState.BASES


def test_every_data_parser_has_a_specification_and_a_release() -> None:
    assert tuple(sorted(SOURCES)) == wire.PARSERS
    assert {*wire.PARSERS} == {parser for parsers in PARSERS_OF_RELEASE.values() for parser in parsers}


def test_each_parser_is_spoken_with_a_real_slurm_of_the_test_images() -> None:
    assert {*wire.PARSERS} == {parser for series in SLURM_SUITES for parser in PARSERS_OF_RELEASE[series]}


def test_the_generated_modules_are_what_the_specifications_give() -> None:
    assert main(["check"]) == 0


def test_operations_that_only_some_parsers_have_are_refused_with_their_names() -> None:
    assert wire.endpoint("v0.0.45", "get_conf").path == "/conf"
    with pytest.raises(errors.NotSupported) as refused:
        wire.endpoint("v0.0.44", "get_conf")
    assert refused.value.available_in == tuple(parser for parser in wire.PARSERS if parser > "v0.0.44")


def test_every_operation_is_known_to_change_something_or_nothing() -> None:
    served = {each.operation for version in wire.PARSERS for each in wire.endpoints(version)}
    assert READS | WRITES == served == KEPT_OPERATIONS | KEPT_OF_SLURMDBD
    assert not READS & WRITES


def test_what_an_operation_does_decides_and_not_its_method() -> None:
    writes = {each.operation for each in wire.endpoints("v0.0.45") if each.writes}
    assert writes == WRITES
    assert {"get_reconfigure", "get_job_requeue"} <= writes
    assert all(each.writes for each in wire.endpoints("v0.0.45") if each.method != "GET")
    assert wire.Endpoint("get_something_new", "GET", "/something/new").writes


EVERYTHING = JobSpec(
    script="#!/bin/sh\ntrue\n",
    name="n",
    partition="p",
    account="a",
    qos="q",
    reservation="r",
    nodes="1-2",
    tasks=2,
    tasks_per_node=1,
    cpus_per_task=1,
    memory_per_node_mib=512,
    memory_per_cpu_mib=256,
    tres_per_node="gres/gpu:1",
    constraints="c",
    required_nodes=["w-0"],
    excluded_nodes=["w-1"],
    licenses="l",
    time_limit=timedelta(seconds=61),
    begin_time=datetime(2030, 1, 1, tzinfo=UTC),
    dependency="afterok:1",
    array="0-3",
    priority=7,
    nice=1,
    hold=True,
    requeue=False,
    environment={"A": "1"},
    working_directory="/tmp",
    arguments=["x"],
    standard_input="/dev/null",
    standard_output="/dev/null",
    standard_error="/dev/null",
    comment="c",
    admin_comment="a",
    extra="e",
    wckey="w",
)


@pytest.mark.parametrize("version", wire.PARSERS)
def test_every_wish_about_a_job_is_written_as_every_parser_wants_it(version: str) -> None:
    body = jobs.submission(EVERYTHING)
    assert not complaints_about_request(version, "post_job_submit", body)
    assert body["job"]["time_limit"]["number"] == 2
    assert not complaints_about_request(version, "post_job", jobs.job(JobSpec(hold=False, time_limit=INFINITE)))


@pytest.mark.parametrize("version", wire.PARSERS)
def test_every_change_of_a_node_is_written_as_every_parser_wants_it(version: str) -> None:
    body = nodes.node_update(
        state=["DRAIN"],
        reason="r",
        comment="c",
        extra="e",
        features=["f"],
        active_features=["f"],
        gres="g",
        weight=3,
        address="a",
        hostname="h",
    )
    assert not complaints_about_request(version, "post_node", body)
    assert fitted(version, "UpdateNodeMsg", body) == body


@pytest.mark.parametrize("version", wire.parsers_with("post_reservation"))
def test_every_wish_about_a_reservation_is_written_as_the_parser_wants_it(version: str) -> None:
    spec = ReservationSpec(
        name="r",
        partition="p",
        nodes=["w-0"],
        node_count=1,
        start_time=datetime(2030, 1, 1, tzinfo=UTC),
        end_time=datetime(2030, 1, 2, tzinfo=UTC),
        duration=timedelta(hours=1),
        users=["u"],
        accounts=["a"],
        groups=["g"],
        flags=["MAINT"],
        features="f",
        licenses=["l"],
        comment="c",
    )
    assert not complaints_about_request(version, "post_reservation", reservations.reservation(spec))


def test_everything_the_package_offers_is_there() -> None:
    assert all(getattr(slurm_client, name) is not None for name in slurm_client.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = slurm_client.nonsense


def test_importing_the_library_loads_nothing_heavy() -> None:
    code = (
        "import sys, slurm_client; slurm_client.SlurmClient, slurm_client.MintedToken; "
        "print(sorted({'httpx', 'jwt', 'aiohttp', 'pydantic', 'cryptography', 'attrs'} & set(sys.modules)), "
        "[name for name in sys.modules if name.startswith('slurm_client.wire.v')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[] []"


@pytest.mark.parametrize("version", wire.PARSERS)
def test_objects_of_the_same_name_are_the_same_in_both_halves(version: str) -> None:
    """A name alone finds the keys of an object."""
    folder = f"slurm_client.wire.{version.replace('.', '_')}"
    slurmctld, slurmdbd = (import_module(f"{folder}.{name}") for name in ("models", "slurmdb_models"))
    common = {name for name in vars(slurmctld) if hasattr(getattr(slurmctld, name), "__total__")} & set(vars(slurmdbd))
    assert common
    for name in common:
        assert getattr(slurmctld, name).__annotations__.keys() == getattr(slurmdbd, name).__annotations__.keys(), name


def test_paths_name_the_service() -> None:
    jobs_of = [wire.endpoint("v0.0.45", name).url("v0.0.45", {}) for name in ("get_jobs", "db_get_jobs")]
    assert jobs_of == ["/slurm/v0.0.45/jobs/", "/slurmdb/v0.0.45/jobs/"]
