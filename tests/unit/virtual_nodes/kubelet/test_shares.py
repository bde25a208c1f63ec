"""Places that many share: what one holder takes, it takes from nobody else for long."""

from __future__ import annotations

from functools import partial

import pytest

from slinky_operator.virtual_nodes.kubelet.shares import NoPlace, Shares


def test_a_holder_has_its_share_and_no_more() -> None:
    shares = Shares(each=2, total=10)
    first = shares.take("a", lambda: None)
    shares.take("a", lambda: None)
    with pytest.raises(NoPlace, match="2 of 2"):
        shares.take("a", lambda: None)
    shares.leave(first)
    shares.take("a", lambda: None)
    assert len(shares) == 2


def test_where_all_are_taken_the_newest_of_the_holder_with_most_gives_way() -> None:
    shares, ended = Shares(each=10, total=4), list[int]()
    for number in range(4):
        shares.take("many", partial(ended.append, number))
    shares.take("new", lambda: None)
    assert ended == [3]
    assert len(shares) == 4


def test_nobody_gives_way_to_one_who_would_have_as_much() -> None:
    shares = Shares(each=10, total=4)
    for holder in ("a", "a", "b", "b"):
        shares.take(holder, lambda: None)
    with pytest.raises(NoPlace, match="4 of 4"):
        shares.take("b", lambda: None)
    shares.take("c", lambda: None)


def test_a_place_that_is_left_twice_counts_once() -> None:
    shares = Shares(each=2, total=2)
    place = shares.take("a", lambda: None)
    shares.leave(place)
    shares.leave(place)
    assert not len(shares)
