"""JSON that is nested too deeply for every decoder is read as far as it can be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.kube.calls.depth import DEEPEST, decoded, readable, shallow

TREES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a"\\{}[]é\n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='a"\\{}[]', max_size=3), inner),
)


def deep(levels: int, *, beside: str = "1") -> bytes:
    return (
        ('{"a":[' * levels + '"}]\\""' + "]}" * levels)
        .join(['{"before":[1,"{"],"deep":', f',"after":{beside}}}'])
        .encode()
    )


def levels_of(value: Any) -> int:
    count = 0
    while isinstance(value, (dict, list)) and value:
        value = next(reversed(value.values())) if isinstance(value, dict) else value[-1]
        count += 1
    return count


@given(TREES)
def test_what_is_not_deep_is_read_as_it_is(tree: Any) -> None:
    text = json.dumps({"tree": tree}).encode()
    assert decoded(text) == {"tree": tree}
    assert readable(text) is text
    assert shallow(text) is text


@pytest.mark.parametrize("levels", [DEEPEST, 500, 5_000, 100_000])
def test_what_is_deep_is_left_out_and_all_else_is_read(levels: int) -> None:
    found = decoded(deep(levels))
    assert (found["before"], found["after"]) == ([1, "{"], 1)
    assert levels_of(found["deep"]) < (2 * DEEPEST if levels == DEEPEST else DEEPEST + 1)
    assert json.loads(readable(deep(levels)))["after"] == 1


@pytest.mark.parametrize("text", [b"", b"{", b'{"a":1', b"[" * 5_000, b"nothing"])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    assert readable(text) in {text, shallow(text)}
    with pytest.raises(ValueError, match=r"line \d"):
        decoded(text)
