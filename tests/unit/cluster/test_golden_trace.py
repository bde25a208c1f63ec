"""The Cluster controller does and says in each story what it did when the trace was written, word for word.

After a change of behaviour that is meant, `make golden` writes the trace again, and its diff is reviewed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.cluster.stories import golden
from tests.unit.cluster.stories.table import TABLE

MOST_BYTES = 700_000
"""Of the whole trace: more could not be reviewed."""


def cases() -> Iterator[Any]:
    for chapter, stories in TABLE.items():
        for name in stories:
            marks = [pytest.mark.thorough] if chapter == "specs" or name.startswith("seed") else []
            yield pytest.param(chapter, name, id=f"{chapter}: {name}", marks=marks)


@pytest.mark.parametrize(("chapter", "name"), list(cases()))
def test_a_story_is_told_as_before(chapter: str, name: str) -> None:
    before, after = golden.stored(chapter).get(name, ""), golden.tell(chapter, name)
    if before != after:
        shown = "\n".join(golden.first_difference(before, after))
        pytest.fail(f"{golden.file_of(chapter).name}, {name} (`make golden` writes it again):\n{shown}", pytrace=False)


def test_the_trace_has_these_stories_alone_and_can_be_reviewed() -> None:
    assert {*golden.FOLDER.iterdir()} == {golden.file_of(chapter) for chapter in TABLE}
    for chapter, stories in TABLE.items():
        assert [*golden.stored(chapter)] == [*stories]
    assert sum(path.stat().st_size for path in golden.FOLDER.iterdir()) < MOST_BYTES


def test_the_first_pass_that_differs_is_shown() -> None:
    before = "- 1 at 0 s\n create a\n- 2 at 1 s\n create b\n- 3 at 2 s\n remove a\n"
    after = before.replace("create b", "create c").replace("remove a", "remove b")
    assert list(golden.first_difference(before, after)) == ["  - 2 at 1 s", "-  create b", "+  create c"]
