"""What slurmrestd wrote, kept with each model by clients that ask for it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from typing import Any

import httpx
import pytest

from slurm_client import JobSpec, Node, SlurmClient, models
from slurm_client.connection.answers import ListOf, read
from slurm_client.decode import nodes
from slurm_client.errors import Request
from slurm_client.models import Entry
from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.clients import client

ANSWERS: dict[str, Any] = {
    "/nodes/": {"nodes": [{"name": "w-0", "newer": {"a": [1, "ü", "😀"]}}, {"name": "w-1"}], "last_update": 7},
    "/node/w-1": {"nodes": [{"name": "w-1", "cpus": 4, "newer": None}]},
    "/jobs/": {"jobs": [{"job_id": 7, "newer": 1}]},
    "/jobs/state/": {"jobs": [{"job_id": "7", "state": ["RUNNING"], "newer": 1}]},
    "/partitions/": {"partitions": [{"name": "all", "newer": 1}]},
    "/reservations/": {"reservations": [{"name": "maint", "newer": 1}]},
    "/licenses/": {"licenses": [{"LicenseName": "matlab", "newer": 1}]},
    "/shares": {"shares": {"shares": [{"name": "root", "newer": 1}, {"name": "alice"}]}},
    "/diag/": {"statistics": {"jobs_running": 3, "newer": 1}},
    "/ping/": {"pings": [{"hostname": "ctld", "newer": 1}]},
    "/job/submit": {"job_id": 8, "newer": 1},
}


def respond(request: httpx.Request) -> httpx.Response:
    if request.method == "DELETE":
        return httpx.Response(200, json={"status": [{"job_id": "7", "newer": 1}]})
    return httpx.Response(200, json=ANSWERS[request.url.path.removeprefix("/slurm/v0.0.45")])


def asking(*, keep_raw: bool) -> SlurmClient:
    return SlurmClient(
        "http://slurm", "t", transport=httpx.MockTransport(respond), api_version="v0.0.45", keep_raw=keep_raw
    )


async def everything(slurm: SlurmClient) -> dict[str, tuple[Any, Any]]:
    """Return each model that calls give, with the entry it was read from."""
    nodes, shares = ANSWERS["/nodes/"]["nodes"], ANSWERS["/shares"]["shares"]["shares"]
    return {
        "nodes": ((await slurm.nodes())[0], nodes[0]),
        "last of nodes": ((await slurm.nodes())[1], nodes[1]),
        "node": (await slurm.node("w-1"), ANSWERS["/node/w-1"]["nodes"][0]),
        "jobs": ((await slurm.jobs())[0], ANSWERS["/jobs/"]["jobs"][0]),
        "job_states": ((await slurm.job_states())[0], ANSWERS["/jobs/state/"]["jobs"][0]),
        "partitions": ((await slurm.partitions())[0], ANSWERS["/partitions/"]["partitions"][0]),
        "reservations": ((await slurm.reservations())[0], ANSWERS["/reservations/"]["reservations"][0]),
        "licenses": ((await slurm.licenses())[0], ANSWERS["/licenses/"]["licenses"][0]),
        "shares": ((await slurm.shares())[1], shares[1]),
        "diag": (await slurm.diag(), ANSWERS["/diag/"]["statistics"]),
        "ping": ((await slurm.ping())[0], ANSWERS["/ping/"]["pings"][0]),
        "submit_job": (await slurm.submit_job(JobSpec(script="x")), ANSWERS["/job/submit"]),
        "cancel_jobs": ((await slurm.cancel_jobs([7]))[0], {"job_id": "7", "newer": 1}),
    }


async def test_each_model_has_the_entry_that_it_was_read_from() -> None:
    async with asking(keep_raw=True) as slurm:
        for call, (model, entry) in (await everything(slurm)).items():
            assert model.raw == entry, call


async def test_nothing_is_kept_unless_it_is_asked_for() -> None:
    async with asking(keep_raw=False) as slurm:
        for call, (model, _) in (await everything(slurm)).items():
            assert not hasattr(model, "raw"), call
        with pytest.raises(AttributeError, match="raw of a Node is kept only by a client made with keep_raw=True"):
            _ = (await slurm.node("w-1")).raw


def test_every_model_that_is_read_can_have_it() -> None:
    found = [getattr(models, name) for name in models.__all__]
    not_read = (models.State, models.JobId, models.Listing, models.FinishedJob, models.SubmissionRequest)
    given = [
        model
        for model in found
        if dataclasses.is_dataclass(model)
        and isinstance(model, type)
        and not issubclass(model, not_read)
        and not model.__name__.endswith("Spec")
    ]
    fields = " ".join(str(field.type) for model in given for field in dataclasses.fields(model))
    parts = {model for model in given if re.search(rf"\b{model.__name__}\b", fields)}
    assert len(given) - len(parts) > 10
    assert [model for model in given if model not in parts and not issubclass(model, Entry)] == []


async def test_an_entry_that_comes_again_unchanged_has_it_still(fake: FakeSlurmrestd) -> None:
    async with client(fake, keep_raw=True) as slurm:
        first = await slurm.nodes()
        fake.update_node("w-1", comment="new")
        again = await slurm.nodes()
        assert again["w-0"] is first["w-0"]
        assert again["w-0"].raw["name"] == "w-0"
        assert again["w-1"].raw["comment"] == "new"


async def test_it_is_no_part_of_what_a_model_says() -> None:
    async with asking(keep_raw=True) as keeping, asking(keep_raw=False) as slurm:
        kept, other = await keeping.node("w-1"), await slurm.node("w-1")
        assert kept == other
        assert hash(kept) == hash(other)
        assert repr(kept) == repr(other)
        for copied in (copy.copy(kept), pickle.loads(pickle.dumps(kept)), dataclasses.replace(kept)):  # noqa: S301
            assert copied == kept
            assert not hasattr(copied, "raw")


async def test_the_text_of_an_entry_that_recurs_is_kept_once() -> None:
    wanted = ListOf("nodes", nodes.node, recurs=True)
    answer = await read(b'{"nodes": [{"name": "w-0"}]}', 200, Request("GET", "/"), wanted, keep_raw=True)
    assert answer.items is not None
    assert answer.recurring is not None
    assert answer.items[0]._written is answer.recurring.texts[0]


def test_a_model_made_by_hand_has_none() -> None:
    assert not hasattr(Node(name="w-0"), "raw")
