"""What is said of a node out of service quotes Slurm, each text up to a bound."""

from __future__ import annotations

from slinky_api.conditions import Reason
from slinky_operator.nodeset.report.out_of_service import OutOfService
from tests.unit.nodeset.builders import node

LONG = "x" * 1_000_000


def said(words: str = "IDLE+DRAIN+DYNAMIC_NORM", **values: str) -> str:
    return OutOfService(Reason.FOREIGN_DRAIN, node(words, name="a-0", **values)).text


def test_state_reason_and_who_set_it_are_quoted() -> None:
    assert said(reason="disk broken", reason_set_by="root") == "a-0 (IDLE+DRAIN: disk broken, set by root)"


def test_no_text_of_slurm_is_quoted_without_end() -> None:
    assert len(said(f"IDLE+DRAIN+{LONG}", reason=LONG, reason_set_by=LONG)) < 700
