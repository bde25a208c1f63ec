"""What processes share is created once, and by the next process if the first has failed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.shared_by_workers import first_of


def test_only_the_first_makes_it_and_the_others_wait_for_that(tmp_path: Path) -> None:
    seen: list[str] = []

    def other() -> None:
        with first_of(tmp_path, "thing") as is_first:
            seen.append(f"other: {is_first}")

    with first_of(tmp_path, "thing") as is_first:
        thread = threading.Thread(target=other)
        thread.start()
        seen.append(f"one: {is_first}")
    thread.join()
    assert seen == ["one: True", "other: False"]


def test_where_the_first_fails_the_next_one_makes_it(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no space"), first_of(tmp_path, "thing"):
        raise OSError("no space")
    with first_of(tmp_path, "thing") as is_first:
        assert is_first


def test_other_things_have_turns_of_their_own(tmp_path: Path) -> None:
    with first_of(tmp_path, "cluster") as cluster, first_of(tmp_path, "operator") as operator:
        assert cluster
        assert operator
