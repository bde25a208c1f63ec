"""Requests by method and path: what they are taken for, what is repeated, and that they fail as all calls do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from slurm_client import JobSpec, SlurmClient, errors
from slurm_client.testing import FakeSlurmrestd
from slurm_client.wire import CHANGES_NOTHING
from tests.unit.slurm_client.clients import SOON, client


async def test_the_json_object_of_any_path_is_returned(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        answer = await slurm.request("GET", "/slurm/{version}/node/w-0")
        assert answer.status == 200
        assert answer.body["nodes"][0]["name"] == "w-0"
        assert fake.requests[-1].path == "/slurm/v0.0.45/node/w-0"
        listing = await slurm.request("GET", "/slurm/v0.0.42/nodes/", query={"update_time": None, "flags": "DETAIL"})
        assert listing.last_update is not None
        assert fake.requests[-1].query == {"flags": "DETAIL"}
        unchanged = await slurm.request("GET", "/slurm/v0.0.42/nodes/", query={"update_time": listing.last_update + 9})
        assert unchanged.not_modified
        assert unchanged.body == {}


async def test_a_path_with_its_own_parser_needs_no_negotiation(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.request("GET", "/slurm/v0.0.43/diag/")
        assert [each.path for each in fake.requests] == ["/slurm/v0.0.43/diag/"]
        assert slurm.api_version is None


async def test_a_body_is_sent_and_booleans_are_written_as_slurmrestd_reads_them(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.request("POST", "/slurm/{version}/node/w-1", body={"comment": "spare"}, query={"a": True, "b": 2})
        assert fake.nodes["w-1"].comment == "spare"
        assert fake.requests[-1].query == {"a": "true", "b": "2"}


async def test_errors_are_those_of_all_calls(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        with pytest.raises(errors.NotFound):
            await slurm.request("POST", "/slurm/{version}/node/nosuch", body={"comment": "x"})
        with pytest.raises(errors.NotSupported, match="no such path") as unknown:
            await slurm.request("GET", "/slurm/v0.0.39/nodes/")
        assert str(unknown.value).endswith(f"[GET {fake.url}/slurm/v0.0.39/nodes/ -> 404]")
        fake.faults.add("/nodes/", body="<html>", content_type="text/html")
        with pytest.raises(errors.DecodeError):
            await slurm.request("GET", "/slurm/{version}/nodes/")
        fake.faults.hang()
        with pytest.raises(errors.Timeout):
            await slurm.request("GET", "/slurm/{version}/nodes/", timeout=0.1)


async def test_an_upgraded_server_is_asked_with_its_own_parser(fake: FakeSlurmrestd) -> None:
    fake.upgrade("24.11.5")
    async with client(fake) as slurm:
        await slurm.request("GET", "/slurm/{version}/nodes/")
        fake.upgrade("26.05.5")
        fake.versions = ("v0.0.45",)
        await slurm.request("GET", "/slurm/{version}/nodes/")
        assert fake.requests[-1].path == "/slurm/v0.0.45/nodes/"


@pytest.mark.parametrize(
    ("method", "path", "options", "sent"),
    [
        ("GET", "/slurm/{version}/nodes/", {}, 3),
        ("GET", "/slurm/v0.0.42/nodes", {}, 3),
        ("GET", "/slurm/{version}/job/7", {}, 3),
        ("GET", "/slurm/{version}/job/7/requeue", {}, 1),
        ("GET", "/slurm/{version}/job/7%2Frequeue", {}, 1),
        ("GET", "/slurm/{version}/reconfigure/", {}, 1),
        ("GET", "/slurm/v0.0.99/nodes/", {}, 1),
        ("GET", "/slurm/{version}/nosuch/", {}, 1),
        ("GET", "/openapi/v3", {}, 1),
        ("GET", "/openapi/v3", {"repeatable": True}, 3),
        ("DELETE", "/slurm/{version}/node/w-0", {}, 1),
        ("POST", "/slurm/{version}/node/w-0", {"body": {"comment": "x"}}, 1),
        ("POST", "/slurm/{version}/node/w-0", {"body": {"comment": "x"}, "repeatable": True}, 3),
    ],
)
async def test_only_known_reads_are_repeated_and_what_the_caller_says_may_be(
    method: str, path: str, options: dict[str, Any], sent: int
) -> None:
    seen: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        raise httpx.ReadError("gone", request=request)

    async with SlurmClient(
        "http://slurm", "t", transport=httpx.MockTransport(respond), api_version="v0.0.45", retry=SOON
    ) as slurm:
        slurm._session._negotiation.version = "v0.0.45"
        with pytest.raises(errors.Unreachable):
            await slurm.request(method, path, **options)
    assert len(seen) == sent
    # What the caller says may be repeated is a write still.
    changes_nothing = sent == 3 and "repeatable" not in options
    assert {request.extensions[CHANGES_NOTHING] for request in seen} == {changes_nothing}


@pytest.mark.parametrize(
    "path",
    [
        "", "nodes", "slurm/v0.0.45/nodes/", "//evil/slurm", "/slurm//nodes/", "/slurm/../x", "/slurm/./x",
        "/slurm/%2e%2E/x", "/slurm/nodes/?a=1", "/slurm/nodes#a", "/slurm/a b", "/slurm/a\n", "/slurm/%zz", "/slurm/ü",
        "/slurm/{other}/x", "/slurm/a\\b", "http://evil/slurm",
    ],
)  # fmt: skip
async def test_what_could_become_another_path_is_refused(fake: FakeSlurmrestd, path: str) -> None:
    async with client(fake) as slurm:
        with pytest.raises(errors.InvalidArgument) as refused:
            await slurm.request("GET", path)
        assert refused.value.field == "path"
        assert not fake.requests


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"method": "PATCH"}, "method"),
        ({"method": "get"}, "method"),
        ({"query": "a=1"}, "query"),
        ({"query": {"a": ["b"]}}, "query['a']"),
        ({"query": {1: "b"}}, "a key of query"),
        ({"body": "{}"}, "body"),
        ({"body": {"at": datetime.now(UTC)}}, "body"),
        ({"body": {"at": float("nan")}}, "body"),
        ({"repeatable": "yes"}, "repeatable"),
    ],
)
async def test_arguments_of_another_type_are_refused(fake: FakeSlurmrestd, options: dict[str, Any], field: str) -> None:
    async with client(fake) as slurm:
        arguments: dict[str, Any] = {"method": "POST", "path": "/slurm/v0.0.45/nodes/"} | options
        with pytest.raises(errors.InvalidArgument) as refused:
            await slurm.request(**arguments)
        assert refused.value.field == field
        assert not fake.requests


async def test_a_wish_that_is_not_json_is_refused_by_its_name(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        with pytest.raises(errors.InvalidArgument, match="datetime is not JSON serializable; nothing was sent"):
            await slurm.submit_job(JobSpec(script="#!/bin/sh", other={"begin_time": datetime.now(UTC)}))
        assert not fake.calls("post_job_submit")
