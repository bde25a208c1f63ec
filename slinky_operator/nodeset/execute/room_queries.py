"""Asks job log servers how much room their volumes have, several at a time."""

from __future__ import annotations

from collections.abc import Collection

from slinky_operator.nodeset.execute.context import PassContext
from slinky_operator.nodeset.model.pods import output_room
from slinky_operator.nodeset.model.pods.output_room import RoomSeen
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.slurm import naming
from slinky_operator.slurm.volumes.query import Looker


async def ask(context: PassContext, pods: Collection[Pod]) -> dict[str, RoomSeen]:
    """Ask the servers of these pods, and return what is known of each volume then."""
    was_named = output_room.named_in(context.nodeset.status)

    async def one(pod: Pod) -> RoomSeen:
        host = f"[{pod.address}]" if ":" in pod.address else pod.address
        looker = Looker(f"http://{host}:{naming.JOB_LOGS_PORT}", pod.uid, context.nodeset.namespace)
        answer = await context.ask_volumes(looker)
        before = context.rooms.get(output_room.volume_of(pod))
        return output_room.seen(pod, answer, before, was_named, context.now())

    results = await gather_limited(one(pod) for pod in pods)
    found: dict[str, RoomSeen] = {}
    for pod, result in zip(pods, results, strict=True):
        if isinstance(result, BaseException):
            raise result
        found[output_room.volume_of(pod)] = result
    return found
