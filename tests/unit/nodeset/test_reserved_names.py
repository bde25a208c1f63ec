"""Two NodeSets that want one name at the same moment."""

from __future__ import annotations

from slinky_operator.nodeset.reserved_names import HELD_FOR, ReservedNames


def test_the_first_has_it_for_a_while() -> None:
    now = 100.0
    names = ReservedNames(lambda: now)

    assert names.take("cluster", "node", "a")
    assert not names.take("cluster", "node", "b")
    assert names.take("cluster", "node", "a")
    assert names.take("cluster", "other", "b")
    assert names.take("elsewhere", "node", "b")
    now += HELD_FOR + 1
    assert names.take("cluster", "node", "b")
    assert not names.take("cluster", "node", "a")


def test_a_nodeset_that_is_gone_holds_nothing() -> None:
    names = ReservedNames(lambda: 0.0)

    assert names.take("cluster", "a-0", "first")
    names.release("first")
    assert names.take("cluster", "a-0", "its successor")
