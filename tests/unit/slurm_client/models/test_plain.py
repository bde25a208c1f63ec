"""Every model as JSON has it."""

from __future__ import annotations

import dataclasses
import json
import typing
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_client import INFINITE, Infinite, Listing, Report, models, to_dict
from slurm_client.models import ExitCode, Job, JobId, JobSpec, JobState, Node, NodeState, Partition
from slurm_client.models.values import Delay
from slurm_client.watch import Event

MODELS = sorted(
    (
        found
        for name in models.__all__
        if isinstance(found := getattr(models, name), type)
        and dataclasses.is_dataclass(found)
        and not issubclass(found, models.State | JobId | Listing)
    ),
    key=lambda model: model.__name__,
)

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=5), inner, max_size=2)),
    max_leaves=3,
)
times = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def values(hint: Any) -> st.SearchStrategy[Any]:  # noqa: C901, PLR0911 - one line for each kind of type
    """Return values of the type of a field."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return json_values
    if hint is datetime:
        return times
    if hint in (Infinite, str, int, float, bool, type(None), timedelta):
        return st.floats(allow_nan=False, allow_infinity=False) if hint is float else st.from_type(hint)
    if origin in (typing.Union, type(int | str)):
        return st.one_of(*map(values, parts))
    if origin is tuple and parts[-1] is not Ellipsis:
        return st.tuples(*map(values, parts))
    if origin is frozenset:
        return st.frozensets(values(parts[0]), max_size=2)
    if origin is not None and issubclass(origin, typing.Mapping):
        return st.dictionaries(values(parts[0]), values(parts[1]), max_size=2)
    if origin is not None:
        return st.lists(values(parts[0]), max_size=2).map(tuple)
    if issubclass(hint, models.State):
        return st.builds(hint.from_words, st.lists(st.sampled_from([*hint.BASES, "DRAIN", "NEWER"]), max_size=3))
    if hint is JobId:
        return st.builds(JobId, st.integers(1, 9), st.none())
    return instances(hint)


def instances(model: type[Any]) -> st.SearchStrategy[Any]:
    """Return instances of a model with some of its fields set."""
    known = vars(models) | {
        "Delay": Delay,
        "Report": Report,
        "datetime": datetime,
        "timedelta": timedelta,
        "Sequence": typing.Sequence,
        "Mapping": typing.Mapping,
    }
    hints = typing.get_type_hints(model, localns=known)
    fields = [field for field in dataclasses.fields(model) if field.init]
    needed = {
        field.name: values(hints[field.name])
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    rest = {field.name: values(hints[field.name]) for field in fields if field.name not in needed}
    return st.fixed_dictionaries(needed, optional=rest).map(lambda given: model(**given))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_json_takes_every_model_with_all_its_fields(model: type[Any], data: st.DataObject) -> None:
    plain = to_dict(data.draw(instances(model)))
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert set(plain) == {field.name for field in dataclasses.fields(model) if not field.name.startswith("_")}


def test_a_job_says_what_it_is_in_words_and_numbers() -> None:
    noon = datetime(2026, 1, 31, 13, tzinfo=timezone(timedelta(hours=1)))
    plain = to_dict(
        Job(
            id=7,
            state=JobState.from_words(["RUNNING", "CONFIGURING"]),
            start_time=noon,
            time_limit=timedelta(minutes=90),
            priority=INFINITE,
            exit_code=ExitCode(("SUCCESS",), 0),
            flags=frozenset({"B", "A"}),
            nodes=("w-0", "w-1"),
        )
    )
    assert plain["state"] == ["RUNNING", "CONFIGURING"]
    assert plain["start_time"] == "2026-01-31T13:00:00+01:00"
    assert plain["time_limit"] == 5400
    assert plain["priority"] == "INFINITE"
    assert plain["exit_code"] == {"status": ["SUCCESS"], "return_code": 0, "signal": None, "signal_name": ""}
    assert plain["flags"] == ["A", "B"]
    assert plain["nodes"] == ["w-0", "w-1"]
    assert plain["end_time"] is None


def test_listings_and_events_are_taken_too() -> None:
    listing = Listing((Node(name="w-0", state=NodeState("IDLE", frozenset({"DRAIN"}))),), 7, (Report("careful"),))
    plain = to_dict(listing)
    assert set(plain) == {"items", "last_update", "warnings"}
    assert plain["items"][0]["state"] == ["IDLE", "DRAIN"]
    assert plain["warnings"][0]["description"] == "careful"
    assert to_dict(Event("w-0", None, listing[0]))["new"] == plain["items"][0]
    json.dumps(plain)


@pytest.mark.parametrize("value", [3, "text", None, Job, [Partition(name="a")]])
def test_what_is_no_model_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="is no model"):
        to_dict(value)


def test_what_a_caller_put_in_and_json_lacks_is_refused() -> None:
    with pytest.raises(TypeError, match="is no model"):
        to_dict(JobSpec(other={"key": object()}))
