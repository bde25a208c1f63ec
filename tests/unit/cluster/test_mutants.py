"""The golden trace is effective: each broken rule of the rollout changes a story."""

from __future__ import annotations

import pytest

from tests.unit.cluster.mutants.table import MUTANTS
from tests.unit.cluster.stories import golden
from tests.unit.cluster.stories.table import TABLE

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("name", MUTANTS)
def test_a_story_tells_of_the_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant, story = MUTANTS[name]
    (chapter,) = (chapter for chapter, stories in TABLE.items() if story in stories)
    # What objects are compared with comes from the rules as they are.
    _ = golden.references()
    mutant(monkeypatch)
    assert golden.tell(chapter, story) != golden.stored(chapter)[story]
