"""Asks what runs in pods, several at a time: slurmds for steps, job log servers for the room of their volumes.

A slurmd that does not answer has shown nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from slinky_operator.nodeset.execute.context import PassContext
from slinky_operator.nodeset.model.actions import StepQuestion
from slinky_operator.nodeset.model.pods import output_room
from slinky_operator.nodeset.model.pods.output_room import RoomSeen
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.slurm_nodes import running_steps
from slinky_operator.nodeset.slurm_nodes.running_steps import StepsSeen
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.reconcile.text import cut
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.slurmd_status import NoStatus
from slinky_operator.slurm.connection.volume_query import Looker

LONGEST_WHY: Final = 200
"""Maximum characters of why a slurmd has not answered."""


async def ask_steps(context: PassContext, questions: Collection[StepQuestion]) -> dict[str, StepsSeen]:
    """Ask slurmds, and return what is known of each then, by uid of its pod."""
    slurm, now = context.reach(), context.now()

    async def one(question: StepQuestion) -> StepsSeen:
        pod = question.pod
        try:
            answer = await slurm.steps_at(pod.address)
        except NoStatus as error:
            return running_steps.unanswered(cut(str(error), LONGEST_WHY), now)
        if answer.node != pod.node_name:
            return running_steps.unanswered(f"slurmd of node {cut(answer.node, 64)} has answered", now)
        return running_steps.after(context.steps.get(pod.uid), answer, question.jobs, now)

    results = await gather_limited(one(question) for question in questions)
    found: dict[str, StepsSeen] = {}
    for question, result in zip(questions, results, strict=True):
        if isinstance(result, BaseException):
            raise result
        found[question.pod.uid] = result
    return found


async def still_idle(context: PassContext, pods: Iterable[Pod]) -> frozenset[str]:
    """Of these pods, those whose slurmds have shown no step for minutes and show none now, by uid.

    Asked after slurmctld: a node that it does not know gets no job, and no slurmd registers again by itself.
    """
    asked = [StepQuestion(pod) for pod in pods if running_steps.is_idle(context.steps.get(pod.uid), context.now())]
    return running_steps.idle(await ask_steps(context, asked), context.now())


async def ask_room(context: PassContext, pods: Collection[Pod]) -> dict[str, RoomSeen]:
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
