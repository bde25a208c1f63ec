"""Random JSON for the tests of the decoders: values of every type, and objects that look almost right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterable

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["IDLE", "DRAIN", "RUNNING", "w-[0-3]", "UNLIMITED", "12", "1e9", "-3", "nan", ""]),
)
numbers = st.fixed_dictionaries({}, optional={"set": scalars, "infinite": scalars, "number": scalars, "other": scalars})
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(scalars, numbers),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
    max_leaves=8,
)


def objects(keys: Iterable[str], **certain: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with some of these keys, of any type, and with the certain ones."""
    some = st.dictionaries(st.sampled_from(sorted(keys)), values, max_size=12)
    return st.tuples(some, st.fixed_dictionaries(certain)).map(lambda both: both[0] | both[1])
