"""Ends the jobs that delay a drain for longer than the spec allows: cancels or requeues them.

Which jobs those are is decided by `deadline`, from a fresh answer; here it is only done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.nodeset.spec import Drain, OnTimeout
from slinky_operator.nodeset.drain import deadline, forgotten_ends, slurmd_questions
from slinky_operator.nodeset.drain.deadline import Overdue
from slinky_operator.nodeset.execute.context import PassContext
from slinky_operator.nodeset.execute.queries import pod_queries, slurm_queries
from slinky_operator.nodeset.model.actions import CancelForgotten, StepQuestion
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.ports import Slurm, SlurmCalls
from slinky_operator.nodeset.slurm_nodes.recorded_ends import RecordedEnds
from slinky_operator.reconcile.text import named
from slurm_client import errors
from slurm_client.models import Job

_SAID: Final = {
    OnTimeout.WAIT: "nothing is done",
    OnTimeout.REQUEUE: "their jobs are requeued",
    OnTimeout.CANCEL: "their jobs are cancelled",
    OnTimeout.FORCE: "their pods are deleted with the jobs",
}


def said(spec: Drain) -> str:
    """What is done after the deadline, for an Event."""
    timeout = f"{spec.timeout.total_seconds():.0f} s" if spec.timeout is not None else "forever"
    return f"drained for longer than spec.drain.timeout ({timeout}), so {_SAID[spec.on_timeout]}"


def note(one: Overdue, held: Iterable[Job]) -> str:
    """A node with its jobs and the start of its drain, for an Event."""
    numbers = named([str(job.id) for job in held]) or "none known"
    return f"{one.pod.node_name} (jobs {numbers}, since {one.since.strftime('%Y-%m-%dT%H:%M:%SZ')})"


async def still_overdue(slurm: Slurm, acting: Sequence[Overdue]) -> list[Overdue]:
    """Without the jobs that have ended, or have started again, since a list that took long; raises `SlurmError`."""
    listed = {job.id: job for one in acting for job in one.ends}
    same = {job.id for job in await slurm_queries.same_runs(slurm, listed.values())}
    left = [replace(one, ends=tuple(job for job in one.ends if job.id in same)) for one in acting]
    return [one for one in left if one.acts]


async def end_jobs(slurm: SlurmCalls, on_timeout: OnTimeout, acting: Sequence[Overdue]) -> list[str]:
    """Cancel or requeue the jobs of overdue nodes, and return the reasons of those that could not be.

    Raises
    ------
    SlurmError
        The write to Slurm failed; earlier ones hold.
    """
    jobs = {job.id: job for one in acting for job in one.ends}
    if on_timeout is OnTimeout.CANCEL:
        return await _each(jobs, "cancelled", slurm.cancel_job)
    try:
        return await _each(jobs, "requeued", slurm.requeue_job)
    except errors.NotSupported:
        # Before v0.0.45. Nothing has been sent.
        return await _down(slurm, acting)


async def cancel_forgotten(context: PassContext, action: CancelForgotten) -> None:
    """Cancel jobs that slurmctld shows although they have ended, if slurmdbd or each of their slurmds still says so.

    Raises
    ------
    SlurmError
        slurmctld could not be asked, or did not cancel a job.
    """
    slurm, numbers = context.reach(), {job.id for job in action.jobs}
    recorded = await slurm_queries.recorded_ends(slurm, action.jobs, RecordedEnds(), context.now())
    asked = context.clock()
    shown = [job for job in await slurm.fresh_jobs() if job.id in numbers]
    if context.clock() - asked > slurm_queries.LONG:
        shown = await slurm_queries.same_runs(slurm, shown)
    over = forgotten_ends.over(shown, recorded, await _gone(context, action.pods, shown), context.now())
    if not over:
        return
    context.warn(Reason.JOB_END_FORGOTTEN, f"cancelled in slurmctld: {forgotten_ends.told(over)}")
    context.unseen = context.outcome.acted = True
    jobs = {job.id: job for job in shown if job.id in over}
    context.outcome.refusals += await _each(jobs, "cancelled", slurm.client.cancel_job)


async def _gone(context: PassContext, pods: Sequence[Pod], shown: Sequence[Job]) -> dict[int, datetime]:
    """Ask the slurmds of jobs again, after slurmctld has shown that these are the same runs."""
    known = slurmd_questions.gone_from(pods, context.steps, shown, context.now())
    asked: dict[str, set[int]] = {}
    for job in shown:
        for node in job.nodes if job.id in known else ():
            asked.setdefault(node, set()).add(job.id)
    questions = [StepQuestion(pod, frozenset(asked[pod.node_name])) for pod in pods if pod.node_name in asked]
    found = await pod_queries.ask_steps(context, questions)
    return slurmd_questions.gone_from(pods, found, shown, context.now())


async def _down(slurm: SlurmCalls, acting: Sequence[Overdue]) -> list[str]:
    names = [one.pod.node_name for one in acting if deadline.may_be_downed(one)]
    if names:
        # Without a reason: that of the operator's drain stays, and with it its start time.
        await slurm.update_nodes(names, state="DOWN")
    return [
        f"node {one.pod.node_name}: this Slurm puts jobs back into the queue by marking their node DOWN, "
        f"which would end others there: {named([str(job.id) for job in one.stuck]) or 'some that are ending'}"
        for one in acting
        if not deadline.may_be_downed(one)
    ]


async def _each(jobs: Mapping[int, Job], what: str, call: Callable[[Job], Awaitable[None]]) -> list[str]:
    """Make the call for each job, concurrently; returns what Slurm rejected.

    The job is passed, not its id: of an array, that may be the id of all tasks, on other nodes too.
    """
    numbers = sorted(jobs)
    results = await asyncio.gather(*(call(jobs[number]) for number in numbers), return_exceptions=True)
    refused: list[str] = []
    failures: list[BaseException] = []
    for number, result in zip(numbers, results, strict=True):
        match result:
            case None | errors.NotFound():
                # Slurm no longer knows it: it has ended.
                pass
            case errors.Conflict() | errors.InvalidRequest() | errors.InvalidTransition() | errors.PermissionDenied():
                refused.append(f"job {number} cannot be {what}: {result.message}")
            case errors.NotSupported() if not result.available_in:
                # Slurm's own error (ESLURM_DISABLED), and not a call that this data parser lacks.
                refused.append(f"job {number} cannot be {what}: {result.message}")
            case _:
                failures.append(result)
    if failures:
        raise failures[0]
    return refused
