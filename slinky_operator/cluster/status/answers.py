"""What the parts of a Cluster answer at the end of a pass, each asked once, in the order of the list of parts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slinky_api.conditions import ClusterCondition, Reason
from slinky_operator.cluster.part import ON_ITS_WAY, Part, Problem, Shown
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.reconcile.pod_trouble import DaemonTrouble


@dataclass(frozen=True, slots=True)
class Answers:
    """What the parts answer."""

    shown: Mapping[ClusterCondition, Shown]
    because: Mapping[ClusterCondition, Sequence[str]]
    """What explains conditions, before their messages."""

    problems: Sequence[Problem]
    """Those of conditions too."""

    blockers: Sequence[tuple[Reason, str]]
    """Why Slurm cannot serve: of the first part that has an answer."""

    ongoing: Sequence[tuple[Reason, str]]
    stuck: Sequence[DaemonTrouble]
    remark: str
    fields: Mapping[str, Any]


def ask(parts: Sequence[Part], state: PassState) -> Answers:
    """Ask all parts."""
    shown: dict[ClusterCondition, Shown] = {}
    because: dict[ClusterCondition, Sequence[str]] = {}
    problems: list[Problem] = []
    fields: dict[str, Any] = {}
    for part in parts:
        problems += part.problems(state)
        fields |= part.fields(state)
        found = part.shown(state)
        if part.condition is not None and found is not None:
            shown[part.condition] = found
            because[part.condition] = tuple(part.because(state))
            problems += _of_condition(part, part.condition, found)
    return Answers(
        shown,
        because,
        problems,
        next(filter(None, (tuple(part.blockers(state)) for part in parts)), ()),
        tuple(one for part in parts for one in part.ongoing(state)),
        tuple(one for part in parts for one in part.stuck(state)),
        next(filter(None, (part.remark(state) for part in parts)), ""),
        fields,
    )


def _of_condition(part: Part, kind: ClusterCondition, found: Shown) -> Iterable[Problem]:
    """What a part, without which Slurm serves, needs help with."""
    status, reason, message = found
    if part.degrades and status == "False" and reason not in ON_ITS_WAY:
        yield Problem(reason, f"{kind}: {message}")
