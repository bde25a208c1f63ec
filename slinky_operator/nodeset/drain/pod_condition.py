"""What a pod's object shows of its node: a condition with Slurm's reason, and when its last job must have ended.

It is written while the node is drained, to explain why the pod stays. A pod whose node accepts jobs and that never had
another state has no such condition. Texts contain times, not ages, so that they change only when something has
happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final

from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.actions import PodStatusPatch
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import DrainCondition
from slinky_operator.nodeset.slurm_nodes import registration
from slinky_operator.slurm.jobs import job_facts
from slurm_client.models import Job, Node

FOREIGN_DRAIN: Final = "ForeignDrain"
"""Reason of the condition on a pod whose node somebody else has drained."""

WORDS: Final = "with the reason: "
"""Text before Slurm's reason there."""

LONGEST_LIST: Final = 10
"""Jobs named in a condition."""

LONGEST_REASON: Final = 1_000
"""Characters of Slurm's reason in one: anybody who may drain nodes writes it."""

LONGEST_STATE: Final = 200
"""Characters of a node's state in one."""


class _Reason(StrEnum):
    DRAINED = "Drained"
    DRAINING = "Draining"
    FOREIGN_DRAIN = FOREIGN_DRAIN
    INVALID_REGISTRATION = "InvalidRegistration"
    NOT_DRAINED = "NotDrained"


def change(member: Member, state: pod_state.State) -> PodStatusPatch | None:
    """What to write on a pod, or None if it is up to date.

    Parameters
    ----------
    member
        The pod with its node.
    state
        Its state. In states without information about a drain everything stays as it is.
    """
    pod = member.pod
    told = _told(member, state)
    deadline = _deadline(state)
    if told == pod.told:
        told = None
    if deadline == pod.deadline:
        deadline = None
    return PodStatusPatch(pod, told, deadline) if told is not None or deadline is not None else None


def _told(member: Member, state: pod_state.State) -> DrainCondition | None:  # noqa: PLR0911 - one for each
    pod, node = member.pod, member.record
    if node is None:
        return None
    match state:
        case pod_state.Drained():
            return DrainCondition("True", _Reason.DRAINED.value, f"node {node.name} holds no job; {_drain(node)}")
        case pod_state.Draining() if node.is_drain and state.jobs:
            return DrainCondition(
                "False", _Reason.DRAINING.value, f"node {node.name} holds {_jobs(state.jobs)}; {_drain(node)}"
            )
        case pod_state.Misregistered():
            text = f"node {node.name} is {_state(node)}; {_drain(node)}"
            # Only this condition still shows a drain whose reason slurmctld has overwritten.
            is_lost = previous_foreign_reason(member)
            return pod.told if is_lost else DrainCondition("False", _Reason.INVALID_REGISTRATION.value, text)
        case pod_state.Ready() if state.foreign:
            return DrainCondition(
                "False", _Reason.FOREIGN_DRAIN.value, f"node {node.name} is {_state(node)}; {_drain(node)}"
            )
        case pod_state.Ready() if pod.told is not None:
            return DrainCondition("False", _Reason.NOT_DRAINED.value, f"node {node.name} takes jobs")
        case _:
            return None


def _drain(node: Node) -> str:
    since = f" since {_stamp(node.reason_changed_at)}" if node.reason_changed_at is not None else ""
    return f"drained{since} {WORDS}{node.reason[:LONGEST_REASON]}"


def _state(node: Node) -> str:
    return str(node.state)[:LONGEST_STATE]


def _jobs(jobs: Iterable[Job]) -> str:
    numbers = sorted(job.id for job in jobs)
    shown = ", ".join(map(str, numbers[:LONGEST_LIST]))
    more = len(numbers) - LONGEST_LIST
    return f"jobs {shown} and {more} more" if more > 0 else f"{'job' if len(numbers) == 1 else 'jobs'} {shown}"


def _deadline(state: pod_state.State) -> str | None:
    """When the last job ends by its limit; empty if there is none, None if it is not known."""
    match state:
        case pod_state.Draining() if state.jobs:
            end = job_facts.last(state.jobs)
            return "" if end is None else _stamp(end)
        case pod_state.Draining() | pod_state.Drained() | pod_state.Ready() | pod_state.Misregistered():
            return ""
        case _:
            return None


def _stamp(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def previous_foreign_reason(member: Member) -> str:
    """The reason of somebody else's drain that slurmctld has overwritten; empty if there was none."""
    told, node = member.pod.told, member.record
    if told is None or node is None or told.reason != FOREIGN_DRAIN or not registration.is_slurms_drain(node):
        return ""
    words = told.message.partition(WORDS)[2]
    return "" if registration.has_slurms_words(words) else words
