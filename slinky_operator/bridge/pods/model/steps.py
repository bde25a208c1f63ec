"""What is done for a group of pods: steps, and what pods show; a pass takes so many at most. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_operator.bridge.pods.model.devices import Allocate, Given
from slinky_operator.bridge.pods.model.lift import says, shown, written_at
from slinky_operator.bridge.pods.model.snapshot import GroupJob, Member, Snapshot
from slinky_operator.kube.objects import Object

AGAIN_S: Final = 30.0
"""Seconds until the next look for what no event tells of."""

ASK_S: Final = 5.0
"""Seconds until the next look for Kubernetes Nodes of which nothing is known."""

GAP_S: Final = 120.0
"""Seconds for which a job of a group is kept without a pod that lives, and for which one that runs waits for pods."""

OWNER_S: Final = 6.0
"""Seconds until an owner without a pod that lives is asked again whether its work is over; then twice as long."""

GATHERING_S: Final = 15.0
"""Seconds for which pods of a group that is not complete show nothing: its controller is making them."""

QUICK_S: Final = 3.0
"""Seconds for which pods whose job waits show nothing: most that start at once are never shown as queued."""

REWRITE_S: Final = 30.0
"""Seconds from one message of a pod to another with the same reason."""

LONG_RUN_S: Final = 600.0
"""A job that ran for so many seconds is followed by the next one at once."""

FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 300.0
"""Seconds between a short job and the next one of its group: the first, doubled each time, and the most."""

DEVICES_S: Final = 5.0
"""Seconds until the next look for devices that another claim has, or that are not known."""

SOON_S: Final = 0.2
"""Seconds until a pass goes on that has written to many pods."""

MOST_PODS: Final = 1024
"""Pods of a group."""

MOST_TOLD: Final = 16
"""Pods of a group that show each news of its job; of a larger one the first does, and the others name it."""

CHUNK: Final = 100
"""Pods that a pass writes to: other groups have their turn in between."""

_WARNINGS: Final = frozenset(
    {"Refused", "GroupIncomplete", "JobNotOurs", "NotPlacedBySlurm", "JobLost", "JobEnded", "NodeGone"}
)
"""Reasons that need somebody, or that somebody should know."""


_NO_DEVICES: Final = Given()


@dataclass(frozen=True, slots=True)
class Create:
    """Make a SlurmJob."""

    body: Object


@dataclass(frozen=True, slots=True)
class End:
    """Say that the work of a job has ended."""

    job: GroupJob
    ended: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete a SlurmJob that has not run: nobody waits for it."""

    job: GroupJob


@dataclass(frozen=True, slots=True)
class Lift:
    """Give a pod its Node, and remove the gate."""

    member: Member
    job: GroupJob
    slot: int
    node: str
    given: Given = _NO_DEVICES


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell a pod that runs when Slurm will end it: its limit was changed, or it is preempted and has a grace time."""

    member: Member
    deadline: str


@dataclass(frozen=True, slots=True)
class Evict:
    """End a pod that Slurm runs no more.

    Parameters
    ----------
    since
        When Slurm's job has ended; None if that is not known.
    is_unbound
        Whether it goes because it has no Node, and never will: then it must still have none.
    """

    member: Member
    why: str
    since: datetime | None = None
    is_unbound: bool = False


@dataclass(frozen=True, slots=True)
class Tell:
    """Show in a pod what Slurm does with it."""

    member: Member
    reason: str
    message: str
    holds: bool = False

    @property
    def is_warning(self) -> bool:
        """Whether it needs somebody."""
        return self.reason in _WARNINGS


Step = Create | End | DeleteJob | Allocate | Lift | Announce | Evict | Tell


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done, in this order, and when it is looked again.

    Parameters
    ----------
    steps
        What is done.
    wake
        Seconds until the next look; None to wait for an event.
    """

    steps: tuple[Step, ...] = ()
    wake: float | None = None


@dataclass(slots=True)
class Draft:
    """Steps that are being put together, and what pods are to show, by their uids."""

    steps: list[Step] = field(default_factory=list)
    tells: dict[str, Tell] = field(default_factory=dict)
    wake: float | None = None

    def again(self, seconds: float) -> None:
        """Look again after some seconds, if not before."""
        self.wake = seconds if self.wake is None else min(self.wake, seconds)

    def tell(self, snapshot: Snapshot, members: Iterable[Member], reason: str, text: str) -> None:
        """Let pods show something; of a large group the first shows it, and the others name that one."""
        told = tuple(members)
        spokesman = told[0].name if told else ""
        is_large = len(snapshot.living) > MOST_TOLD
        for one in told:
            is_brief = is_large and one.name != spokesman
            words = f"as pod {spokesman} of its group, which shows more" if is_brief else text
            self.tells[one.uid] = Tell(one, reason, words)


def cut_short(snapshot: Snapshot, draft: Draft) -> Plan:
    """As much as one pass does, with what pods show that do not show it yet."""
    touched = {step.member.uid for step in draft.steps if isinstance(step, Lift)}
    tells = [
        one
        for uid, one in draft.tells.items()
        if uid not in touched and not says(one.member.obj, holds=one.holds, reason=one.reason, message=one.message)
    ]
    due: list[Tell] = []
    for one in tells:
        rest = _rest(snapshot, one)
        if rest > 0:
            draft.again(rest)
        else:
            due.append(one)
    steps = [*draft.steps, *due]
    if len(steps) > CHUNK:
        return Plan(tuple(steps[:CHUNK]), SOON_S)
    return Plan(tuple(steps), draft.wake)


def _rest(snapshot: Snapshot, tell: Tell) -> float:
    """Seconds until a pod may show another message for the same reason, or for one that waiting brings."""
    stored, at = shown(tell.member.obj), written_at(tell.member.obj)
    is_news = stored.get("reason") != tell.reason and (tell.holds or tell.is_warning)
    if at is None or is_news:
        return 0.0
    return max(0.0, REWRITE_S - (snapshot.now - at) / timedelta(seconds=1))
