"""A rotation in all orders of steps, refusals, kills, starts and lost writes: no daemon is ever separated."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from tests.unit.cluster.parts.keys.key_model import CONTROLLER, MINE, OURS, SLURMDS, STAGED, Model, key_set
from tests.unit.cluster.parts.keys.test_key_steps import AB, BA, until_done

pytestmark = pytest.mark.thorough

EVENTS: dict[str, Callable[[Model], None]] = {
    "add": lambda one: one.write(*AB),
    "switch": lambda one: one.write(*BA),
    "skip": lambda one: one.write("a", "C"),
    "back": Model.put_back,
    "text": lambda one: setattr(one, "wants_reload", True),
    "bad text": lambda one: setattr(one, "refused_text", not one.refused_text),
    "kill": Model.kill,
    "wait": Model.wait,
    "late node": lambda one: one.away.symmetric_difference_update({SLURMDS[1]}),
    "lose copy": lambda one: setattr(one, "loses", "KeepKeys"),
    "lose answers": lambda one: setattr(one, "loses", "KeySetQuestion"),
    "lose reload": lambda one: setattr(one, "loses", "Reload"),
    "lose touch": lambda one: setattr(one, "loses", "TouchPod"),
}

STARTS: dict[str, Callable[[Model], None]] = {
    "a slurmd starts": lambda one: one.start(SLURMDS[0]),
    "slurmctld starts": lambda one: one.start(CONTROLLER),
    "stage is lost": lambda one: setattr(one, "loses", "stage"),
}
"""What may happen as well where pods mount the staged Secret."""

EVERYTHING = {**EVENTS, **STARTS}

FIRST = ("add", "lose copy", "skip", "stage is lost")
"""Events that change what others do after them; after any other first one, all is as it was."""

DEEPEST = int(os.environ.get("KEY_EVENTS", "3"))
"""How many events follow each other in all orders after those. `make test-full` asks for one more, which takes a minute
of a processor for each; longer orders are played at random in any case."""


def walked(order: tuple[str, ...], late: float, mounts: str) -> Model:
    model = Model(mounts, late=late)
    for event in order:
        goes_on(model, event)
    return model


def goes_on(model: Model, event: str) -> None:
    if event == "late node" and SLURMDS[1] in model.away:
        # What it has mounted meanwhile is the kubelet's; it has heard of nothing.
        model.passes(1)
    EVERYTHING[event](model)
    model.passes(2, 4)


def finishes(model: Model) -> None:
    """Whatever has happened, the set that is accepted gets to all daemons, and then the switch does."""
    model.away, model.refused_text, model.loses = set(), False, ""
    for names in (AB, BA):
        if model.accepted == key_set(*BA):
            break
        model.put_back()
        until_done(model)
        if model.accepted != key_set(*names):
            model.write(*names)
            until_done(model)
    model.put_back()
    until_done(model)
    assert {*model.loaded.values()} == {key_set(*BA)}


@pytest.mark.parametrize(
    ("mounts", "first", "depth"),
    [
        *((STAGED, one, DEEPEST if one in FIRST else 3) for one in sorted(EVERYTHING)),
        *((MINE, one, 3) for one in sorted(EVENTS)),
    ],
)
def test_every_order_of_some_events_keeps_all_daemons_together(mounts: str, first: str, depth: int) -> None:
    """Orders that come to the same go on once; three events where the first one changes little."""
    begun = Model(mounts, late=100.0)
    goes_on(begun, first)
    level: list[tuple[tuple[str, ...], Model]] = [((first,), begun)]
    met = set[str]()
    for length in range(2, depth + 1):
        later = []
        for order, model in level:
            for event in sorted(EVERYTHING if mounts == STAGED else EVENTS):
                other = model.fork()
                goes_on(other, event)
                assert not other.separated, (*order, event)
                state = other.fingerprint() if length < depth else ""
                if state and state not in met:
                    met.add(state)
                    later.append(((*order, event), other))
        level = later


def test_what_comes_to_the_same_is_told_apart_from_what_does_not() -> None:
    model = Model()
    state = model.fingerprint()
    other = model.fork()
    assert other.fingerprint() == state
    other.write(*AB)
    other.kill()
    assert other.fingerprint() != state
    # The first one is as it was.
    assert model.fingerprint() == state


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("mounts", [STAGED, MINE, OURS])
def test_long_random_orders_keep_all_daemons_together_and_can_be_finished(seed: int, mounts: str) -> None:
    chance = random.Random(seed)  # noqa: S311 - a replayable walk
    events = sorted(EVENTS if mounts == MINE else EVERYTHING)
    order = tuple(chance.choice(events) for _ in range(14))
    model = walked(order, late=chance.choice([1.0, 40.0, 110.0]), mounts=mounts)
    assert not model.separated, order
    finishes(model)
    assert not model.separated, order
