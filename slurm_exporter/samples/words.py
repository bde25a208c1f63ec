"""States in Slurm's own words; those that are not Slurm's share one, since a hostile answer may have any text there."""

from __future__ import annotations

from typing import Final

from slurm_client.models import JobState, NodeState
from slurm_client.models.partition import PartitionState
from slurm_client.models.values import State
from slurm_exporter.samples.budget import OTHERS

BASES: Final[dict[type[State], frozenset[str]]] = {
    kind: kind.BASES | {"UNKNOWN"} for kind in (JobState, NodeState, PartitionState)
}
"""Base words by the kind of state; `UNKNOWN` is what a state without any has."""

FLAGS: Final[dict[type[State], frozenset[str]]] = {
    kind: kind.BASES | kind.FLAGS for kind in (JobState, NodeState, PartitionState)
}
"""Words that may stand beside it: a second base word among them."""


def base(state: State) -> str:
    """The base word."""
    return state.base if state.base in BASES[type(state)] else OTHERS


def flags(state: State) -> list[str]:
    """The words beside it; all that are not Slurm's count once."""
    own = state.flags & FLAGS[type(state)]
    return [*own, OTHERS] if len(own) < len(state.flags) else [*own]


def is_known(state: State) -> bool:
    """Whether all words are Slurm's own: then they are short, and few."""
    return state.base in BASES[type(state)] and state.flags <= FLAGS[type(state)]
