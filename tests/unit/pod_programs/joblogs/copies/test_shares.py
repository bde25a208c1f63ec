"""Which copies a server makes at a time, and which one ends for a user who has none."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from slinky_operator.pod_programs.joblogs.copies.shares import (
    FAST,
    LONG_SECONDS,
    MAX_COPIES,
    MAX_PER_USER,
    SAFE_SECONDS,
    Shares,
)


class World:
    """Copies that never end by themselves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.said: list[str] = []
        self.shares = Shares(self.said.append, lambda: self.now)
        self.slots: dict[int, list[int]] = {}

    def begin(self, uid: int) -> bool:
        slot = self.shares.admit(uid)
        if slot is None:
            return False
        self.shares.begun(os.getpid(), uid, slot)
        self.slots.setdefault(uid, []).append(slot)
        return True

    def ended(self) -> list[tuple[int, int]]:
        """Whose copies may not go on: user, and which of the user's."""
        every = [(uid, number, slot) for uid, own in self.slots.items() for number, slot in enumerate(own)]
        return [(uid, number) for uid, number, slot in every if not self.shares.note(slot, 0)]


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.shares.close()


def test_a_user_without_a_copy_gets_the_place_of_a_slower_one_of_several(world: World) -> None:
    users = range(MAX_COPIES // MAX_PER_USER)
    for uid in (*users, *users):
        assert world.begin(uid)
    assert not world.begin(users[0])
    assert not world.begin(100), "each has its time"
    world.now += SAFE_SECONDS
    for uid in users:
        for slot in world.slots[uid]:
            world.shares.note(slot, 10 * FAST)
    world.shares.note(world.slots[3][1], FAST)
    assert world.begin(100)
    assert world.ended() == [(3, 1)]
    assert "one of uid 3, which moves" in world.said[0]
    # One that has a copy takes nobody's.
    assert not world.begin(3)
    assert not world.begin(100)


def test_copies_of_as_many_users_have_longer_and_fast_ones_stay(world: World) -> None:
    users = range(MAX_COPIES)
    for uid in users:
        assert world.begin(uid)
    world.now += SAFE_SECONDS
    assert not world.begin(100)
    world.now += LONG_SECONDS
    for uid in users:
        world.shares.note(world.slots[uid][0], int(FAST * (world.now - 1000.0)))
    assert not world.begin(100)
    world.shares.note(world.slots[5][0], 1)
    assert world.begin(100)
    assert world.ended() == [(5, 0)]


def test_processes_that_do_not_end_are_not_without_number(world: World) -> None:
    for uid in range(2 * MAX_COPIES):
        world.now += LONG_SECONDS
        assert world.begin(uid)
    world.now += LONG_SECONDS
    assert not world.begin(100)
    assert len(world.ended()) == MAX_COPIES


def test_what_has_ended_is_forgotten(world: World) -> None:
    for uid in range(MAX_COPIES):
        slot = world.shares.admit(uid)
        assert slot is not None
        child = os.fork()
        if not child:
            os._exit(0)
        world.shares.begun(child, uid, slot)
        _ = os.waitpid(child, 0)
    assert world.begin(0)
