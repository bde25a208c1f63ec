from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client.notation.hostlist import LIMIT, expand, shorten, size


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("w-0", ("w-0",)),
        ("w-[0-2]", ("w-0", "w-1", "w-2")),
        ("w-[0-1,7],login", ("w-0", "w-1", "w-7", "login")),
        ("n[08-11]", ("n08", "n09", "n10", "n11")),
        ("r[1-2]n[0-1]", ("r1n0", "r1n1", "r2n0", "r2n1")),
        ("a[1-2]-ib", ("a1-ib", "a2-ib")),
    ],
)
def test_names_are_expanded_in_order(text: str, names: tuple[str, ...]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("w-[0-2]," * 4, "w-[0-2]," * 4),
        ("w-0000," * 9 + "w-1", "w-0000,w-0000,w-0000 and 7 more"),
        ("w-[0-2,07,11-13,21-23,31-33],login", "w-[0-2,07,11-13] and 7 more"),
        ("login,w-[0-2,07,11-13,21-23,31-33]", "login,w-[0-2,07] and 9 more"),
        ("r[0-9,10-19,20-29]n[0-9,10-19,20-29]", "900 nodes"),
        ("w-[0-9,10-19,20-29,30-39,x]-login", "w-[0-9,10-19,20-29,30-39,x]-log…"),
        ("w-[" + "0," * 40, "w-[0,0,0,0,0,0,0,0,0,0,0,0,0,0,…"),
    ],
)
def test_a_long_list_is_cut_at_whole_ranges_and_says_so(text: str, shown: str) -> None:
    assert shorten(text, 32) == shown
    assert len(shown) <= 32


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.integers(32, 120))
def test_what_is_left_of_a_list_is_the_beginning_of_it(numbers: list[int], longest: int) -> None:
    text = f"login,w-[{','.join(map(str, numbers))}],other"
    shown = shorten(text, longest)
    kept, _, more = shown.partition(" and ")
    names = expand(kept)
    assert len(shown) <= longest
    assert expand(text)[: len(names)] == names
    assert len(names) + int(more.removesuffix(" more") or 0) == size(text)


@pytest.mark.parametrize("text", ["w-[", "w-]", "w-[]", "w-[3-1]", "w-[a-b]", "w-[0-99999999999]", "w-[[0-1]]"])
def test_what_is_no_host_list_is_one_name(text: str) -> None:
    assert expand(text) == (text,)


def test_a_product_beyond_the_limit_is_not_expanded() -> None:
    text = "a[0-9999][0-9999][0-9999]"
    assert expand(text) == (text,)
    assert len(expand(f"a[1-{LIMIT}]")) == LIMIT


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300 + f"[1-{LIMIT}]",
        "a[0-1]" * 17,
        "a," * (2 * LIMIT + 1),
        "[0-999999999999999999]" * 40_000,
        "[" * 100_000,
    ],
    ids=["long names", "many brackets", "many names", "a product", "open brackets"],
)
def test_what_would_be_too_much_is_one_name(text: str) -> None:
    tracemalloc.start()
    try:
        assert (expand(text), size(text)) == ((text,), 1)
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()


@given(st.text(alphabet="abn0123456789[]-,. ", max_size=40))
def test_any_text_is_expanded_without_an_error_to_as_many_names_as_were_counted(text: str) -> None:
    names = expand(text)
    assert all(isinstance(name, str) for name in names)
    assert len(names) == size(text) or names == (text,)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=20, unique=True))
def test_single_numbers_and_ranges_say_the_same(numbers: list[int]) -> None:
    listed = ",".join(str(number) for number in numbers)
    assert expand(f"node[{listed}]") == tuple(f"node{number}" for number in numbers)
