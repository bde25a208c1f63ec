"""What is known of claims, and what a Cluster shows of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from slinky_api.conditions import Reason
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import Part, Problem
from slinky_operator.cluster.pass_state import PassState


@dataclass(frozen=True, slots=True)
class Claims:
    """What is known of claims."""

    asked: Snapshot | None = None
    """With the settings of claims that the spec asks for."""

    refused: tuple[str, ...] = ()
    """Settings that cannot be carried out, and why."""

    growing: tuple[str, ...] = ()
    """Claims whose volumes are still to grow."""


class ClaimsPart(Part):
    """Claims that StatefulSets have made."""

    name = "claims"

    @override
    def problems(self, state: PassState) -> Iterator[Problem]:
        return (Problem(Reason.CLAIM_REFUSED, words, in_summary=True) for words in state.found(Claims).refused)

    @override
    def ongoing(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        growing = state.found(Claims).growing
        if growing:
            yield Reason.CLAIM_GROWING, "; ".join(growing)


CLAIMS: Final = ClaimsPart()
