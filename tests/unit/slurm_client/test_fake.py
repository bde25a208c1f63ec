"""The fake's answers have the shape of the data parsers; the conformance suite shows that they mean the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from slurm_client import wire
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.server import PARSERS_OF_RELEASE
from tests.unit.slurm_client.spec import complaints_about_answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HEADERS = {"X-SLURM-USER-TOKEN": "token"}
SERIES = ("24.11", max(PARSERS_OF_RELEASE))
CASES = [(f"{series}.5", version) for series in SERIES for version in PARSERS_OF_RELEASE[series]]


@pytest.fixture(params=CASES, ids=["-".join(case) for case in CASES])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[tuple[FakeSlurmrestd, str]]:
    release, version = request.param
    async with FakeSlurmrestd(release=release) as fake:
        fake.add_node("w-0", cpus=2)
        fake.add_node("w-1", state="DOWN+DRAIN", reason="r")
        fake.add_job(nodes=["w-0"])
        fake.add_job(state="FAILED")
        fake.world.add_license("matlab", 3)
        yield fake, version


async def get(fake: FakeSlurmrestd, version: str, path: str) -> Any:
    async with httpx.AsyncClient(trust_env=False, headers=HEADERS) as http:
        response = await http.get(f"{fake.url}/slurm/{version}{path}")
    assert response.status_code == 200, response.text
    return response.json()


async def test_every_answer_fits_the_specification(server: tuple[FakeSlurmrestd, str]) -> None:
    fake, version = server
    for endpoint in wire.endpoints(version):
        if endpoint.service != "slurm" or endpoint.method != "GET":
            continue
        if endpoint.operation in {"get_reservation", "get_job_requeue"}:
            continue
        if endpoint.operation == "get_jobs_state":
            continue  # the specification is wrong about it: real answers are {job_id: text, state: words}
        path = endpoint.path.format(node_name="w-0", job_id=1, partition_name="all")
        body = await get(fake, version, path)
        if endpoint.operation == "get_conf":
            body["slurm_conf"] = {}
        complaints = complaints_about_answer(version, endpoint.operation, body)
        # The specification is silent about null; the real one writes it for a job that waits.
        complaints = [each for each in complaints if not each.endswith(".job_resources: None is no object")]
        assert not complaints, endpoint.operation


async def test_records_have_all_the_keys_of_the_parser(server: tuple[FakeSlurmrestd, str]) -> None:
    fake, version = server
    for path, key, model in (
        ("/nodes/", "nodes", "Node"),
        ("/jobs/", "jobs", "JobInfo"),
        ("/partitions/", "partitions", "PartitionInfo"),
    ):
        body = await get(fake, version, path)
        assert set(body[key][0]) == wire.fields(version, model)


async def test_pretty_answers_are_the_same() -> None:
    async with FakeSlurmrestd() as plain, FakeSlurmrestd(pretty=True) as pretty:
        for fake in (plain, pretty):
            fake.world._clock = lambda: 1_800_000_000.0
            fake.add_node("w-0")
        assert await get(plain, "v0.0.45", "/nodes/") == await get(pretty, "v0.0.45", "/nodes/")
