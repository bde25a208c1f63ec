"""INFINITE beside numbers and lengths of time: greater than all, equal to itself alone."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, assert_type

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client import INFINITE, Infinite, Job

if TYPE_CHECKING:
    from collections.abc import Callable

limits = st.one_of(st.integers(), st.floats(allow_nan=False), st.timedeltas())


@given(limits)
def test_no_limit_is_greater_than_every_limit(limit: float | timedelta) -> None:
    assert limit < INFINITE
    assert limit <= INFINITE
    assert limit != INFINITE
    assert limit < INFINITE
    assert limit <= INFINITE
    assert not limit > INFINITE
    assert not limit >= INFINITE


def test_no_limit_is_equal_to_itself() -> None:
    same: Infinite = INFINITE
    assert same == INFINITE
    assert same <= INFINITE
    assert same >= INFINITE
    assert not same < INFINITE
    assert not same > INFINITE


@given(st.lists(st.one_of(st.integers(), st.just(INFINITE)), min_size=1))
def test_limits_are_sorted_with_no_limit_last(limits: list[int | Infinite]) -> None:
    ordered = sorted(limits)
    endless = limits.count(INFINITE)
    assert ordered[len(limits) - endless :] == [INFINITE] * endless
    assert (max(limits) is INFINITE) == (endless > 0)


@pytest.mark.parametrize(
    "compare",
    [
        lambda: INFINITE < None,  # type: ignore[operator]
        lambda: INFINITE >= "1",  # type: ignore[operator]
        lambda: max(INFINITE, None),  # type: ignore[call-overload]
    ],
)
def test_what_is_not_set_cannot_be_compared(compare: Callable[[], bool]) -> None:
    with pytest.raises(TypeError):
        compare()


def test_limits_of_models_are_compared_as_they_are_typed() -> None:
    job = Job(id=1, time_limit=INFINITE)
    assert job.time_limit is not None
    assert_type(job.time_limit > timedelta(hours=1), bool)
    assert job.time_limit > timedelta(hours=1)
    assert timedelta(hours=1) < job.time_limit
