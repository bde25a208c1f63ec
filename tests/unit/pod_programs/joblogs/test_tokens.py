"""Tokens: what they permit, and what is refused."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.pod_programs.joblogs.tokens import MAX_GROUPS, Grant, InvalidToken, UnusableKey, sign, verify

KEY, OTHER = b"k" * 32, b"o" * 32
GRANT = Grant("7", 1000, (1000, 2000), "/output/7.out", 500)


def test_a_token_permits_what_it_was_made_for() -> None:
    assert verify(sign(GRANT, KEY), KEY, now=499.9) == GRANT


def test_a_token_ends() -> None:
    with pytest.raises(InvalidToken, match="expired"):
        verify(sign(GRANT, KEY), KEY, now=500)


def test_another_key_makes_no_tokens() -> None:
    with pytest.raises(InvalidToken, match="not valid here"):
        verify(sign(GRANT, OTHER), KEY, now=0)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_token_is_none(place: int, change: int) -> None:
    whole = sign(GRANT, KEY).encode()
    place %= len(whole)
    changed = whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :]
    with pytest.raises(InvalidToken):
        verify(changed.decode("latin-1"), KEY, now=0)


@given(st.text())
def test_a_text_is_no_token(text: str) -> None:
    with pytest.raises(InvalidToken):
        verify(text, KEY, now=0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"uid": 0},
        {"uid": -1},
        {"uid": 2**32 - 1},
        {"uid": True},
        {"gids": ()},
        {"gids": (-1,)},
        {"gids": tuple(range(MAX_GROUPS + 1))},
        {"path": "7.out"},
        {"path": "/"},
        {"path": "/a\0b"},
        {"path": "/" + "x" * 4096},
    ],
)
def test_what_no_server_does_is_not_signed(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="the token"):
        sign(replace(GRANT, **wrong), KEY)  # type: ignore[arg-type]


def test_a_signed_token_of_another_shape_is_refused() -> None:
    token = sign(GRANT, KEY)
    payload = token.partition(".")[0]
    body = json.loads(base64.urlsafe_b64decode(payload + "=="))
    assert body == {"job": "7", "uid": 1000, "gids": [1000, 2000], "path": "/output/7.out", "expires": 500}


@pytest.mark.parametrize("size", [0, 31, 4097])
def test_a_key_needs_its_length(size: int) -> None:
    with pytest.raises(UnusableKey):
        sign(GRANT, b"k" * size)
    with pytest.raises(UnusableKey):
        verify("a.b", b"k" * size, now=0)
