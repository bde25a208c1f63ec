"""Key sets of auth/slurm: which one may replace another while daemons run."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from slinky_operator.cluster.parts.keys.sets.key_sets import early_default, extends

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAST, LATER = NOW.timestamp() - 1, NOW.timestamp() + 1


def key(name: str, value: str = "c2VjcmV0", **more: Any) -> dict[str, Any]:
    return {"alg": "HS256", "kty": "oct", "kid": name, "k": value, **more}


def key_set(*keys: Any) -> bytes:
    return json.dumps({"keys": keys}).encode()


@pytest.mark.parametrize(
    ("old", "new", "may"),
    [
        ([key("a")], [key("a"), key("b")], True),
        ([key("a", use="default")], [key("b"), key("a", use="default")], True),
        ([key("a", use="default"), key("b")], [key("b", use="default"), key("a")], True),
        ([key("a"), key("b")], [key("b"), key("a")], True),
        # The default is one that nobody has yet: by its mark, or by its place.
        ([key("a", use="default")], [key("b", use="default"), key("a")], False),
        ([key("a")], [key("a"), key("b", use="Default")], False),
        ([key("a")], [key("b"), key("a")], False),
        ([key("a")], [key("b")], False),
        ([key("a")], [key("a", "other"), key("b")], False),
        ([key("a", exp=PAST), key("b")], [key("b")], True),
        ([key("a", exp=LATER), key("b")], [key("b")], False),
        ([key("a", exp="soon"), key("b")], [key("b")], False),
        ([], [key("a")], False),
        ([key("a")], [], False),
        (["a"], ["a"], False),
    ],
)
def test_every_key_that_daemons_may_use_stays(old: list[Any], new: list[Any], may: bool) -> None:
    assert extends(key_set(*old), key_set(*new), NOW) is may


def test_a_default_that_nobody_has_yet_is_named() -> None:
    assert early_default(key_set(key("a")), key_set(key("a"), key("b", use="default"))) == "b"
    assert early_default(key_set(key("a")), key_set(key("b"), key("a"))) == "b"
    assert early_default(key_set(key("a")), key_set(key("a"), key("b"))) == ""
    assert early_default(b"", key_set(key("a"))) == ""


@pytest.mark.parametrize("text", [b"", b"\xff", b"[]", b'{"keys": 1}', b"[" * 100_000])
def test_what_is_no_key_set_follows_nothing(text: bytes) -> None:
    assert not extends(text, key_set(key("a")), NOW)
    assert not extends(key_set(key("a")), text, NOW)
