"""A finding counts when it comes again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.campaign.plan import Plan
from tests.campaign.player import Player
from tests.campaign.verdict import KILLED, MET_NOTHING, Finding

PLAN = Plan(7, 1, ())


def found(*kinds: str) -> list[Finding]:
    return [Finding(what, "m", "as seen") for what in kinds]


@pytest.mark.parametrize(
    ("rounds", "confirmed", "played"),
    [
        ([[]], [], 1),
        ([[MET_NOTHING]], [], 1),
        ([[KILLED], []], [], 2),
        ([[KILLED], [MET_NOTHING, "orphan"]], [], 2),
        ([[KILLED, "orphan"], [KILLED, "cost"]], [KILLED], 2),
        ([["not settled", MET_NOTHING], ["not settled", MET_NOTHING]], ["not settled"], 2),
    ],
)
def test_what_was_wrong_both_times_counts(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    rounds: list[list[str]], confirmed: list[str], played: int,
) -> None:  # fmt: skip
    left: Iterator[list[str]] = iter(rounds)
    asked = list[Plan]()

    def play(_: Player, plan: Plan) -> list[Finding]:
        asked.append(plan)
        return found(*next(left))

    monkeypatch.setattr(Player, "play", play)
    assert [one.what for one in Player("e2e", None, None, 1).confirmed(PLAN)] == confirmed
    assert asked == [PLAN] * played
    assert ("did not come again" in "".join(capfd.readouterr())) is (played == 2 and not confirmed)
