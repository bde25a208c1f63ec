from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client.notation.compress import compress
from slurm_client.notation.hostlist import expand

names = st.from_regex(r"(a|w-|n0|r1n)?[0-9]{1,3}(-ib)?|login|x", fullmatch=True)


@pytest.mark.parametrize(
    ("given_names", "text"),
    [
        ([], ""),
        (["w-0"], "w-0"),
        (["w-0", "w-1", "w-2"], "w-[0-2]"),
        (["w-0", "w-1", "w-7", "login"], "w-[0-1,7],login"),
        (["n08", "n09", "n10", "n11"], "n[08-11]"),
        (["n9", "n10"], "n[9-10]"),
        (["n09", "n10", "n011"], "n[09-10,011]"),
        (["a1-ib", "a2-ib"], "a1-ib,a2-ib"),
        (["r1n0", "r1n1", "r2n0"], "r1n[0-1],r2n0"),
        (["w-2", "w-1"], "w-[2,1]"),
    ],
)
def test_names_become_ranges(given_names: list[str], text: str) -> None:
    assert compress(given_names) == text


@given(st.lists(names, max_size=30))
def test_what_is_compressed_expands_to_the_same_names(given_names: list[str]) -> None:
    assert list(expand(compress(given_names))) == given_names


@given(st.lists(names, max_size=30))
def test_sorted_names_appear_once(given_names: list[str]) -> None:
    found = expand(compress(given_names, order=True))
    assert len(found) == len(set(found))
    assert set(found) == set(given_names)


@given(st.text(alphabet="wn0123456789[]-,", max_size=30))
def test_an_expanded_list_survives_being_compressed(text: str) -> None:
    expanded = expand(text)
    if not any(set("[],") & set(name) for name in expanded):
        assert expand(compress(expanded)) == expanded


@given(st.lists(st.text(max_size=8), max_size=5))
def test_any_text_is_written(given_names: list[str]) -> None:
    assert isinstance(compress(given_names), str)


def test_ten_thousand_names_are_one_word() -> None:
    assert compress(f"w-{number}" for number in range(10_000)) == "w-[0-9999]"
