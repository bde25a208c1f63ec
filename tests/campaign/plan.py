"""What happens in a round, and when: drawn from a seed, so that the same seed is the same plan.

Each lane draws from numbers of its own: a new kind of fault changes no job of any seed. Steps of one lane follow each
other; those of different lanes overlap. Among what is drawn by weight are the cards that the seed was dealt
(:mod:`tests.campaign.deck`). What a step does is left to :mod:`tests.campaign.lanes` and :mod:`tests.campaign.faults`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol

from typing_extensions import override

from tests.campaign.deck import Card, hand
from tests.campaign.faults.answers import ANSWERS
from tests.campaign.faults.claims import FULL_DISKS
from tests.campaign.faults.machines import MACHINES, NODE_GONE, NODE_REPLACED
from tests.campaign.faults.network import UNREACHABLE
from tests.campaign.faults.processes import PROCESSES
from tests.campaign.lanes.actions import ACTIONS
from tests.campaign.lanes.jobs import KINDS, JobKind
from tests.campaign.lanes.pods import POD_KINDS
from tests.campaign.lanes.upkeep import EACH, UPGRADE, UPKEEP

JOBS, PLACED, ACTION, ADMIN, PODS, HOSTS, WIRE, DISKS = LANES = (
    "jobs", "pods", "actions", "upkeep", "faults of pods", "faults of machines", "faults of answers",
    "faults of disks",
)  # fmt: skip
BROKEN: Final = frozenset({PODS, HOSTS, WIRE, DISKS})
"""Lanes of faults."""

PAUSES: Final[Mapping[str, tuple[float, float]]] = {
    JOBS: (1.0, 5.0),
    ACTION: (4.0, 12.0),
    PODS: (5.0, 18.0),
    HOSTS: (15.0, 40.0),
    PLACED: (6.0, 20.0),
    ADMIN: (15.0, 45.0),
    WIRE: (10.0, 35.0),
    DISKS: (20.0, 60.0),
}
"""Seconds between the end of a step and the beginning of the next one of its lane: least and most."""

LASTING: Final = 10.0
"""Seconds that a fault lasts, more or less: so many more steps of its lane a round has no room for."""

LATE: Final = 15.0
"""Seconds after the last step in which jobs end that are submitted late: others would only lengthen the end."""


class Kind(Protocol):
    """What a step can be: how often compared with others of its lane, and what is drawn for one."""

    @property
    def weight(self) -> int: ...

    def draw(self, random: Random) -> dict[str, Any]:
        """Values that JSON knows; `lasts`, in seconds, where it has an end."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done to the world.

    Attributes
    ----------
    number
        Its name in this plan; a plan with fewer steps keeps it.
    lane
        One of `LANES`.
    at
        Seconds after the beginning of the round.
    name
        Kind of it, in the table of its lane.
    values
        What was drawn for it.
    """

    number: int
    lane: str
    at: float
    name: str
    values: Mapping[str, Any]

    @property
    def lasts(self) -> float:
        """Seconds until it is undone; 0 for what is done at once."""
        return float(self.values.get("lasts", 0))

    @override
    def __str__(self) -> str:
        drawn = " ".join(f"{key}={json.dumps(value)}" for key, value in self.values.items())
        return f"{self.number:3} {self.at:6.1f} s  {self.name} {drawn}".rstrip()


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps of a round, by time.

    Attributes
    ----------
    seed, seconds
        What it was drawn from: the number, and the length of the round.
    steps
        All, or what is left of them.
    """

    seed: int
    seconds: float
    steps: tuple[Step, ...]

    def only(self, numbers: Collection[int]) -> Plan:
        """The same plan with these steps alone."""
        return Plan(self.seed, self.seconds, tuple(one for one in self.steps if one.number in numbers))

    def lane(self, name: str) -> list[Step]:
        """Its steps of one lane, by time."""
        return [one for one in self.steps if one.lane == name]


def tables() -> dict[str, Mapping[str, Kind]]:
    """What each lane draws from."""
    return {
        JOBS: KINDS,
        ACTION: ACTIONS,
        PODS: {**PROCESSES, **UNREACHABLE},
        HOSTS: MACHINES,
        PLACED: POD_KINDS,
        ADMIN: UPKEEP,
        WIRE: ANSWERS,
        DISKS: FULL_DISKS,
    }


def make(seed: int, seconds: float) -> Plan:
    """Draw a plan."""
    drawn = sorted(
        (one for lane, table in tables().items() for one in _lane(seed, seconds, lane, table)),
        key=lambda one: (one.at, LANES.index(one.lane)),
    )
    numbered = (Step(number, one.lane, one.at, one.name, one.values) for number, one in enumerate(drawn, start=1))
    return Plan(seed, seconds, tuple(numbered))


def has_upgrade(plan: Plan) -> bool:
    """Whether Slurm is upgraded in it."""
    return any(step.name == UPGRADE for step in plan.steps)


def has_other_node(plan: Plan) -> bool:
    """Whether a Node is lost for good in it: Nodes have other names afterwards."""
    return any(step.name in {NODE_GONE, NODE_REPLACED} for step in plan.steps)


def cards() -> dict[str, tuple[Card, ...]]:
    """The deck of each lane."""
    return {
        lane: tuple(Card(name, values) for name in sorted(table) for values in EACH.get(name, ({},)))
        for lane, table in tables().items()
    }


def _lane(seed: int, seconds: float, lane: str, table: Mapping[str, Kind]) -> Iterator[Step]:
    random = Random(f"{seed}/{lane}")  # noqa: S311 to be drawn again is what it is for
    names = sorted(table)
    dealt = hand(seed, lane, cards()[lane])
    least, most = PAUSES[lane]
    usual = (least + most) / 2 + LASTING * (lane in BROKEN)
    at = random.uniform(0, least)
    while dealt or at < seconds:
        # As likely early as late.
        is_dealt = bool(dealt) and random.random() * max((seconds - at) / usual, 1) < len(dealt)
        if is_dealt:
            card = dealt.pop()
        else:
            (name,) = random.choices(names, [table[name].weight for name in names])
            card = Card(name)
        kind = table[card.name]
        values = {**kind.draw(random), **card.values}
        if isinstance(kind, JobKind) and not kind.then:
            values["seconds"] = min(values["seconds"], max(5, int(seconds + LATE - at)))
        step = Step(0, lane, round(at, 1), card.name, values)
        if not is_dealt and step.at + step.lasts > seconds:
            if not dealt:
                return
            continue
        yield step
        # A job that waits for its end would be no stream: only faults are undone before the next.
        at += step.lasts * (lane in BROKEN) + random.uniform(least, most)
