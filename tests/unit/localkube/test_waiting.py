"""Waiting for what a command shows: how often it is looked at."""

from __future__ import annotations

import pytest

from hack.localkube import kubectl
from hack.localkube.errors import LocalKubeError
from hack.localkube.kubectl import wait_for


class Clock:
    """Monotonic seconds that only looks and pauses use up."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 3))
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(kubectl, "time", found)
    return found


def looks(clock: Clock, takes: float, timeout: float) -> list[float]:
    """The pauses between looks that take some seconds each, at what never comes."""

    def ready() -> bool:
        clock.now += takes
        return False

    with pytest.raises(LocalKubeError, match="pods: not within"):
        wait_for("pods", ready, timeout)
    return clock.pauses


def test_what_comes_soon_is_seen_soon_and_later_pauses_are_longer(clock: Clock) -> None:
    pauses = looks(clock, 0.0, 60)
    assert pauses[:3] == [0.1, 0.1, 0.1]
    assert pauses[-1] == kubectl.LONGEST_PAUSE


def test_half_of_the_time_at_most_is_spent_looking(clock: Clock) -> None:
    assert looks(clock, 2.0, 9) == [2.0, 2.0, 2.0]


def test_a_look_that_hung_is_followed_by_a_pause_of_seconds(clock: Clock) -> None:
    assert looks(clock, 60.0, 100) == [kubectl.LONGEST_LOOK] * 2
