"""Passes of the operator over a world: each plans, and everything that it asks for happens at once.

What happens is in `effects`, what there is in `state`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any

from slinky_operator.cluster.actions import Action, Ask, Disconnect, ReadKeys, asks
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.parts.job_counts.question import JobsQuestion
from slinky_operator.cluster.plan import Environment, Plan, plan
from slinky_operator.cluster.question import A, Question
from slinky_operator.slurm.connection.contact import Contact, ContactState, Trouble
from tests.support import conditions
from tests.unit.cluster.world.effects import take_effect
from tests.unit.cluster.world.objects import WALL
from tests.unit.cluster.world.state import State

ENVIRONMENT = Environment(
    Images(
        {
            "slurmctld": "slurmctld:1",
            "slurmrestd": "slurmrestd:1",
            "agent": "agent:1",
            "slurmd": "slurmd:1",
            "sssd": "sssd:1",
        }
    )
)

SILENT = (Disconnect,)
"""Actions after which there may be nothing left to do."""


def subject(action: Action) -> Any:
    """The question that an action asks, or the action itself."""
    return action.question if isinstance(action, Ask) else action


@dataclass
class World(State):
    """A world that lives."""

    log: list[Action] = field(default_factory=list)
    """What was done since the last `settle` began."""

    def add(self, *node_sets: dict[str, Any]) -> None:
        for one in node_sets:
            self.node_sets[one["metadata"]["name"]] = one

    def trouble(self, trouble: Trouble, why: str = "because") -> None:
        """Let Slurm be out of reach."""
        assert self.slurm is not None
        contact = Contact(ContactState.UNREACHABLE, WALL, why, trouble)
        self.slurm = replace(self.slurm, contact=contact)

    # Passes

    def plan(self) -> Plan:
        made = plan(self.snapshot(), ENVIRONMENT, self.now, self.wall)
        asked = [one for one in made.actions if isinstance(one, ReadKeys)]
        if not asked or self.read_before:
            return made
        # The controller looks again at once, in the same pass.
        self.happen(asked[0])
        return plan(self.snapshot(), ENVIRONMENT, self.now, self.wall)

    def step(self) -> Plan:
        """One pass: plan, and let it all happen."""
        made = self.plan()
        self.memory.keys.known, self.memory.keys.troubled = made.keys.known, made.keys.troubled
        self.memory.rollout.runs = made.runs or self.memory.rollout.runs
        self.memory.keys.seen = made.keys.secrets.seen or self.memory.keys.seen
        self.memory.keys.staged = made.keys.secrets.staged or self.memory.keys.staged
        for action in made.actions:
            self.log.append(action)
            self.happen(action)
        if made.status is not None:
            self.raw = {**self.raw, "status": made.status.to_dict()}
            conditions.check(self.raw["status"])
        self.now += 0.5
        return made

    def settle(self, passes: int = 30) -> list[Action]:
        """Pass after pass until one has nothing to do; returns all that was done."""
        self.log = []
        for _ in range(passes):
            before = copy.deepcopy(self.raw.get("status"))
            made = self.step()
            busy = [one for one in made.actions if not isinstance(one, SILENT) and not asks(one, JobsQuestion)]
            if not busy and before == self.raw.get("status"):
                return self.log
        raise AssertionError(f"no end after {passes} passes: {self.log[-5:]}")

    def happen(self, action: Action) -> None:
        take_effect(self, action)

    # What tests look at

    def answer(self, kind: type[Question[A]], about: str = "") -> A:
        """The last answer to a question."""
        found = self.memory.answers.of(kind, about)
        assert found is not None
        return found

    def condition(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = next(one for one in self.raw["status"]["conditions"] if one["type"] == kind)
        return found
