"""The state of a pass keeps one finding of each type, and knows none of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from slinky_operator.cluster.pass_state import PassState
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import ENVIRONMENT


@dataclass(frozen=True, slots=True)
class Weather:
    """A finding."""

    degrees: int = 20
    rain: bool = False


class Storm(Weather):
    """A finding of another type."""


def state() -> PassState:
    world = settled()
    return PassState(world.snapshot(), ENVIRONMENT.images, world.now, world.wall)


def test_nothing_is_known_until_a_step_notes_it() -> None:
    assert state().found(Weather) == Weather()


def test_a_finding_takes_the_place_of_the_earlier_one_of_its_type() -> None:
    seen = state()
    seen.note(Weather(25))
    seen.note(replace(seen.found(Weather), rain=True))
    assert seen.found(Weather) == Weather(25, rain=True)


def test_types_are_kept_apart_and_so_are_passes() -> None:
    seen = state()
    seen.note(Storm(5))
    assert (seen.found(Weather).degrees, seen.found(Storm).degrees) == (20, 5)
    assert state().found(Storm).degrees == 20


def test_what_is_due_without_a_time_is_not_due() -> None:
    seen = state()
    seen.wake_up(None)
    seen.wake_up(3.0)
    assert seen.due == [3.0]
