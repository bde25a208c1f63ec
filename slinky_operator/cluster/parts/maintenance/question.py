"""The question which reservations Slurm has; what differs from maintenance windows is changed at once, with an Event.

A reservation is found by its name, so one whose making was not answered, or whose operator died, is found the next time
and not made twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from typing_extensions import override

from slinky_api.events import EventReason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext, reference
from slinky_operator.cluster.parts.maintenance import changes
from slinky_operator.cluster.parts.maintenance.changes import ReservationChanges
from slinky_operator.cluster.parts.maintenance.windows import WantedReservation
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.kube.events import EventType
from slinky_operator.reconcile.text import cut, joined
from slurm_client import SlurmClient, errors
from slurm_client.models import ReservationResult

logger = logging.getLogger(__name__)

TIMEOUT: Final = 10.0
"""Seconds for one call."""

MOST_DELETED: Final = 16
"""Reservations that are deleted in one pass, each by a call; two for each window are the most that there are."""

LONGEST: Final = 300
"""Characters of an error of Slurm that are kept."""

LONGEST_EVENT: Final = 900
"""Characters of an Event: Kubernetes takes 1024."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """What Slurm has for the windows."""

    at: float
    """When it was asked, in monotonic seconds."""

    wanted: tuple[WantedReservation, ...]
    """What it was to have."""

    there: frozenset[str] = frozenset()
    """Names of the wanted reservations that it has."""

    refused: Mapping[str, str] = field(default_factory=dict)
    """Reservations that it did not make, change or delete, by name, and why."""

    taken: tuple[str, ...] = ()
    """Reservations of such names that are not as the operator makes them."""

    not_supported: bool = False
    """Whether its REST API makes no reservations."""

    why: str = ""
    """Why it did not answer; then nothing else is known."""


@dataclass(frozen=True, slots=True)
class ReservationsQuestion(Question[Reserved]):
    """Which reservations Slurm has for maintenance windows."""

    wanted: tuple[WantedReservation, ...]
    mark: str
    """How the names of the Cluster's reservations end."""

    now: datetime

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> Reserved:
        nothing = Reserved(context.clock(), self.wanted)
        client = context.clients.get(cluster.uid)
        if client is None:
            return replace(nothing, why="there is no connection with Slurm")
        done: list[str] = []
        try:
            answer = await self._keep(client.client, nothing, done)
        except errors.SlurmError as error:
            why = cut(str(error), LONGEST)
            logger.info("reservations of %s/%s: %s", client.namespace, client.name, why)
            answer = replace(nothing, why=why)
        if done:
            told = cut(f"reservations in Slurm: {joined(done)}", LONGEST_EVENT)
            context.recorder.event(reference(cluster), EventType.NORMAL, EventReason.RESERVATIONS_CHANGED, told)
        return replace(answer, at=context.clock())

    async def _keep(self, slurm: SlurmClient, nothing: Reserved, done: list[str]) -> Reserved:
        there = tuple(await slurm.reservations(timeout=TIMEOUT))
        found = changes.find_changes(self.wanted, there, self.mark, self.now)
        refused: dict[str, str] = {}
        not_supported = False
        try:
            await self._write(slurm, found, refused, done)
        except errors.NotSupported:
            not_supported = True
        # After what takes their places was made: in between a job could start that reaches into the window.
        for name in found.delete[:MOST_DELETED]:
            try:
                await slurm.delete_reservation(name, timeout=TIMEOUT)
                done.append(f"{name} deleted")
            except errors.NotFound:
                # It has ended, or somebody was faster.
                pass
            except errors.Unreachable:
                raise
            except errors.SlurmError as error:
                refused[name] = cut(error.message, LONGEST)
        missing = {one.name for one in found.create} if not_supported else set()
        known = {one.name for one in self.wanted} - missing - refused.keys() - {*found.taken}
        return replace(nothing, there=frozenset(known), refused=refused, taken=found.taken, not_supported=not_supported)

    async def _write(
        self, slurm: SlurmClient, found: ReservationChanges, refused: dict[str, str], done: list[str]
    ) -> None:
        if found.create:
            new = [changes.spec_of(one, self.now, new=True) for one in found.create]
            _note(await slurm.create_reservations(new, timeout=TIMEOUT), "made", refused, done)
        if found.update:
            other = [changes.spec_of(one, self.now, new=False) for one in found.update]
            changed: list[str] = []
            _note(await slurm.update_reservations(other, timeout=TIMEOUT), "changed", refused, changed)
            # That one follows its nodes is no news: in an update it does so all the time.
            done += [words for words in changed if words.removesuffix(" changed") in found.moved]

    @override
    def is_news(self, before: Reserved | None, answer: Reserved | None) -> bool:
        if before is None or answer is None:
            return True
        return replace(before, at=0.0, wanted=()) != replace(answer, at=0.0, wanted=())


def _note(results: Iterable[ReservationResult], what: str, refused: dict[str, str], done: list[str]) -> None:
    for one in results:
        if one.error is None:
            done.append(f"{one.name} {what}")
        else:
            refused[one.name] = cut(one.error.description or str(one.error), LONGEST)
