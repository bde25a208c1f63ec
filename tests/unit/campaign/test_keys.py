"""Steps of a rotation are those of the documentation, and mistakes are mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.campaign.lanes.keys import ADD, DROP_EARLY, LASTS, MOST, REPLACE, STEPS, SWITCH, UNREADABLE, kid_of, next_set

NOW = 1000.0
NEW = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="
ONE = json.dumps({"keys": [{"kid": "a", "kty": "oct", "alg": "HS256", "k": "eA=="}]})


def after(text: str, *steps: str) -> list[dict[str, Any]]:
    for number, step in enumerate(steps):
        text = next_set(text, step, f"{number}{NEW}", NOW)
    keys: list[dict[str, Any]] = json.loads(text)["keys"]
    return keys


def default(keys: list[dict[str, Any]]) -> str:
    (found,) = [one["kid"] for one in keys if one.get("use") == "default"]
    return str(found)


def test_a_key_is_added_and_the_earlier_one_stays_the_default() -> None:
    keys = after(ONE, ADD)
    assert [one["kid"] for one in keys] == ["a", kid_of(f"0{NEW}")]
    assert default(keys) == "a"


def test_the_default_is_switched_to_a_key_that_was_there_and_the_earlier_one_expires_later() -> None:
    keys = after(ONE, ADD, SWITCH)
    assert default(keys) == kid_of(f"0{NEW}")
    assert {one["kid"]: one.get("exp") for one in keys} == {"a": NOW + LASTS, kid_of(f"0{NEW}"): None}
    assert {one["kid"] for one in after(ONE, ADD, SWITCH, ADD, SWITCH)} == {"a", *(kid_of(f"{n}{NEW}") for n in (0, 2))}


def test_a_set_of_one_key_cannot_be_switched_and_no_set_grows_without_end() -> None:
    assert after(ONE, SWITCH) == json.loads(ONE)["keys"]
    assert len(after(ONE, *[ADD] * 20)) == MOST


def test_mistakes_take_the_default_away_or_make_a_set_that_nobody_reads() -> None:
    assert default(after(ONE, ADD)) not in {one["kid"] for one in after(ONE, ADD, DROP_EARLY)}
    assert [one["kid"] for one in after(ONE, REPLACE)] == [kid_of(f"0{NEW}")]
    with pytest.raises(ValueError, match="line 1"):
        json.loads(next_set(ONE, UNREADABLE, NEW, NOW))


@pytest.mark.parametrize("step", [one for one in STEPS if one != UNREADABLE])
def test_every_key_has_what_daemons_ask_for(step: str) -> None:
    for one in after(ONE, ADD, step, step):
        assert {"kid", "kty", "alg", "k"} <= set(one)
