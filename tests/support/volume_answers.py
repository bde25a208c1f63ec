"""What the operator makes of the answers of a real job log server about its volume."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Final

from slinky_operator.nodeset.model.pods import output_room
from slinky_operator.nodeset.model.pods.output_room import RoomSeen
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.slurm.connection.pod_reader import PodReader
from slinky_operator.slurm.connection.volume_query import Looker, ask_volumes
from slinky_operator.slurm.pods.volume_room import JOB_OUTPUT
from slurm_client.connection.intake import Intake
from tests.support import job_logs
from tests.support.job_logs import Node

POD: Final = Pod("n1", "n1", "uid", output_claim="")


def asked(node: Node, before: RoomSeen | None) -> RoomSeen:
    """What the operator knows after it has asked the server."""

    async def ask() -> RoomSeen:
        async with PodReader(Intake()) as reader:
            answer = await ask_volumes(reader, Looker(node.url, "uid", "team"), (JOB_OUTPUT,), time.monotonic)
        return output_room.seen(POD, answer, before, frozenset(), datetime.now(UTC))

    return asyncio.run(ask())


def told(node: Node, before: RoomSeen | None, *, is_low: bool) -> RoomSeen:
    """What the operator knows once the server has seen it; an answer stays valid for some seconds."""
    found = [asked(node, before)]

    def is_told() -> bool:
        found.append(asked(node, found[-1]))
        return found[-1].room is not None and found[-1].is_low == is_low

    job_logs.wait_for(is_told, lambda: str(found[-1]))
    return found[-1]
