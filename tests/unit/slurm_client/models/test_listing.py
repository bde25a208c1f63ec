"""Listings: positions, slices, and objects by name, with the types that user code sees."""

from __future__ import annotations

from typing import assert_type

import pytest

from slurm_client import Job, Listing, Node
from slurm_client.models import JobState, JobStateEntry

NODES: Listing[Node] = Listing((Node(name="w-0"), Node(name="w-1"), Node(name="w-2")), 7)


def test_a_position_is_one_object_and_a_slice_is_a_tuple() -> None:
    assert assert_type(NODES[0], Node).name == "w-0"
    assert assert_type(NODES[-1], Node).name == "w-2"
    assert [node.name for node in assert_type(NODES[:2], tuple[Node, ...])] == ["w-0", "w-1"]


def test_a_name_is_the_object_of_that_name() -> None:
    assert assert_type(NODES["w-1"], Node) is NODES[1]
    assert assert_type(NODES.get("w-1"), Node | None) is NODES[1]
    assert NODES.get("nosuch") is None
    assert assert_type(NODES.get("nosuch", 0), Node | int) == 0
    assert "w-1" in NODES
    assert NODES[1] in NODES
    assert "nosuch" not in NODES
    with pytest.raises(KeyError, match="nosuch"):
        NODES["nosuch"]


def test_jobs_are_known_by_their_ids_as_many_may_have_one_name() -> None:
    jobs = Listing((Job(id=7, name="train"), Job(id=8, name="train")))
    assert jobs["8"] is jobs[1]
    assert "train" not in jobs
    states = Listing((JobStateEntry("7_[1-3]", JobState("PENDING")),))
    assert states["7_[1-3]"] is states[0]


def test_the_first_of_a_name_wins() -> None:
    twice = Listing((Node(name="w-0", cpus=1), Node(name="w-0", cpus=2)))
    assert twice["w-0"].cpus == 1


def test_looking_up_a_name_changes_no_listing() -> None:
    one, other = Listing((Node(name="w-0"),), 7), Listing((Node(name="w-0"),), 7)
    assert "w-0" in one
    assert one == other
    assert repr(one) == repr(other)


def test_a_listing_is_read_in_both_directions() -> None:
    assert [node.name for node in NODES] == ["w-0", "w-1", "w-2"]
    assert [node.name for node in reversed(NODES)] == ["w-2", "w-1", "w-0"]
    assert len(NODES) == 3
    assert not Listing(())
