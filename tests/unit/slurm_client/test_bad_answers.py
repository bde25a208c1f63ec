"""Invalid answers: cut, empty, of a proxy, or nonsense."""

from __future__ import annotations

import time

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_client import SlurmClient, errors
from slurm_client.models import JobSpec
from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.clients import SOON, client


async def test_a_server_that_dies_in_the_middle_of_an_answer(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.connect()
        fake.faults.add("/nodes/", truncate=0.5)
        assert len(await slurm.nodes()) == 3
        fake.faults.add("/nodes/", truncate=0.5, times=None)
        with pytest.raises(errors.Unreachable):
            await slurm.nodes()


async def test_a_cut_body_is_not_a_short_list(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        fake.faults.add("/nodes/", cut=0.9)
        with pytest.raises(errors.Truncated):
            await slurm.nodes()


@pytest.mark.parametrize("body", ["{}", '{"nodes": {}}', '{"nodes": 3}', '{"errors": null}', "", "null", "[]", "ok"])
async def test_a_good_answer_without_the_list_is_no_empty_cluster(fake: FakeSlurmrestd, body: str) -> None:
    fake.faults.add("/nodes/", body=body)
    async with client(fake) as slurm:
        with pytest.raises(errors.DecodeError):
            await slurm.nodes()


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("default backend - 404", "text/plain"),
        ("<html><title>404 Not Found</title></html>", "text/html"),
        ("", "text/plain"),
        ('{"kind": "Status", "reason": "NotFound", "code": 404}', "application/json"),
        ('{"errors": []}', "application/json"),
    ],
)
async def test_a_404_of_a_proxy_is_not_the_absence_of_a_node(
    fake: FakeSlurmrestd, body: str, content_type: str
) -> None:
    async with client(fake) as slurm:
        await slurm.connect()
        fake.faults.add("/(node|job|partition)/", status=404, body=body, content_type=content_type, times=None)
        for call in (slurm.node("w-0"), slurm.job(1), slurm.partition("all"), slurm.delete_node("w-0")):
            with pytest.raises(errors.ServerError):
                await call


async def test_an_error_with_status_200_is_an_error(fake: FakeSlurmrestd) -> None:
    fake.faults.add("/nodes/", body={"nodes": [], "errors": [{"error_number": 1800, "description": "away"}]})
    async with client(fake) as slurm:
        with pytest.raises(errors.ControllerDown):
            await slurm.nodes()


async def test_nodes_changed_while_partitions_are_not_is_a_500_that_means_changed() -> None:
    async with FakeSlurmrestd(release="24.11.5") as fake, client(fake) as slurm:
        fake.add_node("w-0")
        fake.world.partitions_changed = 0
        before = int(time.time()) - 1
        fake.update_node("w-0", comment="new")
        listing = await slurm.nodes(before)
        assert listing is not None
        assert listing[0].comment == "new"


@pytest.mark.parametrize("name", ["", "a,b", "a/b", "w-[0-3]", "a b", "a?x=1", "a\n"])
async def test_a_name_that_would_become_something_else_in_the_url_is_refused(fake: FakeSlurmrestd, name: str) -> None:
    async with client(fake) as slurm:
        with pytest.raises(errors.InvalidRequest):
            await slurm.node(name)
        with pytest.raises(errors.InvalidRequest):
            await slurm.delete_node(name)


async def test_nothing_is_sent_for_no_names(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.drain_nodes([], "reason")
        assert await slurm.jobs_on_nodes([]) == ()
        assert not fake.requests


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    body=st.one_of(
        st.binary(max_size=60),
        st.sampled_from(
            [
                b'{"nodes":null}',
                b'{"nodes":[{"name":"n","state":null}],"errors":null}',
                b'{"nodes":[{"name":"n","cpus":1e400,"weight":' + b"9" * 400 + b"}]}",
                b'{"jobs":[{"job_id":-1}],"pings":3,"statistics":[],"partitions":{}}',
                b'{"errors":[{"error_number":"x"}]}',
                b'{"errors":{"a":1}}',
                b'{"warnings":[1,null,"w"],"nodes":[]}',
                b"\xff\xfe{",
            ]
        ),
    ),
    status=st.sampled_from([200, 204, 206, 301, 304, 400, 401, 403, 404, 405, 409, 422, 500, 502, 503, 504, 511, 599]),
    content_type=st.sampled_from(["application/json", "text/plain", "text/html; charset=x", ""]),
)
async def test_whatever_is_answered_only_our_errors_come_out(body: bytes, status: int, content_type: str) -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, content=body, headers={"content-type": content_type} if content_type else {})

    slurm = SlurmClient(
        "http://slurm", "token", transport=httpx.MockTransport(answer), api_version="v0.0.45", retry=SOON
    )
    slurm._session._negotiation.version = "v0.0.45"
    async with slurm:
        for call in (
            slurm.ping(),
            slurm.nodes(),
            slurm.nodes(1),
            slurm.node("n"),
            slurm.update_nodes(["a", "b"], state="DRAIN"),
            slurm.delete_node("n"),
            slurm.jobs(1),
            slurm.job(1),
            slurm.job_states(),
            slurm.cancel_job(1),
            slurm.cancel_jobs([1]),
            slurm.submit_job(JobSpec(script="x")),
            slurm.update_job(1, JobSpec(hold=True)),
            slurm.requeue_job(1),
            slurm.job_resources(1),
            slurm.partitions(),
            slurm.partition("p"),
            slurm.reservations(),
            slurm.diag(),
            slurm.conf(),
            slurm.licenses(),
            slurm.shares(),
            slurm.reconfigure(),
        ):
            try:
                await call
            except errors.SlurmError as error:
                assert not type(error).__name__.startswith("_")  # noqa: PT017 - an answer may be good, too
                str(error)
