"""How an agent's answer about volumes is read, from any server."""

from __future__ import annotations

import json

import httpx
import pytest

from slinky_operator.slurm.connection.pod_reader import PodReader
from slinky_operator.slurm.connection.volume_query import LONGEST_ERROR, Looker, ask_volumes
from slinky_operator.slurm.pods.volume_room import Room, Volumes
from slurm_client.connection.intake import Intake

LOOKER = Looker("http://10.0.0.1:6880", "uid", "team")
ROOM = {"size": 100, "free": 40, "inodes": 10, "inodesFree": 4, "age": 1.5}


async def told(body: object, status: int = 200) -> Volumes:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/volumes"
        return httpx.Response(status, content=json.dumps(body).encode())

    async with PodReader(Intake(), transport=httpx.MockTransport(answer)) as reader:
        return await ask_volumes(reader, LOOKER, ("slurmctld", "MariaDB"), lambda: 7.0)


async def test_the_room_of_known_volumes_is_taken() -> None:
    found = await told({"volumes": {"slurmctld": ROOM, "other": ROOM}})
    assert found == Volumes("uid", 7.0, {"slurmctld": Room(100, 40, 10, 4)})
    assert (await told({"volumes": {"slurmctld": {**ROOM, "waits": 2}}})).rooms
    more = await told({"volumes": {"slurmctld": {**ROOM, "free": 200, "inodesFree": 11}}})
    assert more.rooms["slurmctld"] == Room(100, 100, 10, 10)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({**ROOM, "waits": 31}, "its file system does not answer"),
        ({"waits": 3}, "it is being looked at"),
        ({"error": "x" * 999}, "it cannot be looked at: " + "x" * LONGEST_ERROR),
        ({**ROOM, "size": -1}, "it is being looked at"),
        ({**ROOM, "size": 2**70}, "it is being looked at"),
        ({**ROOM, "free": "1"}, "it is being looked at"),
        ({}, "it is being looked at"),
    ],
)
async def test_what_is_not_known_is_said(said: dict[str, object], why: str) -> None:
    assert (await told({"volumes": {"slurmctld": said}})).silent == {"slurmctld": why}


@pytest.mark.parametrize("body", [{}, {"volumes": []}, {"volumes": None}])
async def test_nonsense_is_not_known(body: object) -> None:
    assert (await told(body)).why == "the agent says nothing of it"


async def test_an_agent_that_does_not_answer() -> None:
    assert "cannot be asked" in (await told({}, 404)).why
