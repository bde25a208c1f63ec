"""What does not print is an escape; a condition with a manifest keeps its lines."""

from __future__ import annotations

import pytest

from slinky_operator.reconcile.writes.parts import condition
from slinky_operator.runtime.printable import printable


@pytest.mark.parametrize("text", ["", "a b", "Größe 5 µs – ‘x’", "\\x1b"])
def test_what_prints_stays(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u200b\u202e", "\\u200b\\u202e"),
        ("\udc80", "\\udc80"),
        ("\0", "\\x00"),
    ],
)
def test_what_does_not_is_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_condition_keeps_the_lines_of_a_manifest() -> None:
    made = condition("Ready", "Refused", "apply this:\nkind: Cluster\x1b[2J", holds=False)
    assert made.message == "apply this:\nkind: Cluster\\x1b[2J"
