"""Edits are drawn from every field of the schemas, but for those whose effect is that jobs end."""

from __future__ import annotations

import json
from random import Random

import pytest

from tests.campaign.lanes.edits import NOT_EDITED, TASTES, draw, fields, schema_of

KINDS = ("clusters", "nodesets")


@pytest.mark.parametrize("kind", KINDS)
def test_many_edits_touch_most_fields_with_every_taste(kind: str) -> None:
    random = Random(1)  # noqa: S311 the same each time
    drawn = [draw(random, kind) for _ in range(3000)]
    assert {one["taste"] for one in drawn} == {*TASTES}
    assert len({one["field"] for one in drawn}) > 0.9 * len(fields(kind))
    for one in drawn:
        assert set(one["spec"]) == {one["field"].split(".")[0]}
        json.dumps(one["spec"])


def test_every_field_that_is_not_edited_is_one() -> None:
    for key in NOT_EDITED:
        kind, *path = key.split()
        schema = schema_of(kind)
        for step in path:
            schema = schema["properties"][step]
        assert not any(field[: len(path)] == tuple(path) for field in fields(kind))
