"""
Checks what callers hand over, at the one place where all calls pass: by the types that each call declares.

A value of another type is refused before anything is sent, with an error that names the field. Nothing is converted,
dropped or split: text is no list of texts, a number of seconds is no duration, ``True`` is no number. What Slurm
accepts beyond types is left to Slurm, but for names that would mean more than one object: see
:data:`~slurm_client.operations.arguments.NodeName`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import reprlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import (
    Annotated,
    Any,
    SupportsIndex,
    TypeAlias,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from slurm_client import errors, models
from slurm_client.models import Infinite
from slurm_client.models.values import INFINITE, Delay, OrZero
from slurm_client.notation import hostlist
from slurm_client.operations import arguments
from slurm_client.operations.arguments import Hosts, NodeName, Rule

__all__ = ["checked"]

Check: TypeAlias = Callable[[str, Any], Any]
"""Takes a field and its value; returns the value, with what can be read only once read, or raises InvalidArgument."""

_NAMES: dict[str, Any] = {
    **{name: getattr(models, name) for name in models.__all__},
    "Iterable": Iterable,
    "Mapping": Mapping,
    "Sequence": Sequence,
    **{name: getattr(arguments, name) for name in arguments.__all__},
    "Delay": Delay,
    "datetime": datetime,
    "timedelta": timedelta,
    "Any": Any,
}
"""What the modules of operations and models import for type checkers only."""

_SHOWN = (str, bytes, int, float, list, tuple, set, frozenset, dict, timedelta, datetime)
"""Types whose values are repeated in an error, cut to a few words."""

_SPECS = (
    models.JobSpec,
    models.ReservationSpec,
    models.AccountSpec,
    models.AssociationKey,
    models.AssociationLimits,
    models.AssociationSpec,
    models.QosLimits,
    models.QosSpec,
    models.UserSpec,
)


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """
    Return an asynchronous method or generator whose arguments are checked against its annotations.

    Raises
    ------
    InvalidArgument
        When a method is awaited, or a generator called, with a value of another type; then nothing has been sent.
    """
    signature = inspect.signature(function)

    def bind(*args: Any, **kwargs: Any) -> inspect.BoundArguments:
        bound = signature.bind(*args, **kwargs)
        checks = _checks_of(function)
        for name, value in bound.arguments.items():
            check = checks.get(name)
            if check is not None:
                try:
                    bound.arguments[name] = check(name, value)
                except errors.InvalidArgument as error:
                    raise errors.InvalidArgument(f"{function.__name__}: {error.message}", field=error.field) from None
        return bound

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        bound = bind(*args, **kwargs)
        return await function(*bound.args, **bound.kwargs)

    @functools.wraps(function)
    def generate(*args: Any, **kwargs: Any) -> Any:
        bound = bind(*args, **kwargs)
        return function(*bound.args, **bound.kwargs)

    return generate if inspect.isasyncgenfunction(function) else call


@functools.cache
def _checks_of(function: Callable[..., Any]) -> Mapping[str, Check]:
    """Return the check of each annotated parameter; made at the first call."""
    annotations = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    return _checks(types.SimpleNamespace(__annotations__=annotations), vars(inspect.getmodule(function)))


def _checks(annotated: Any, module: Mapping[str, Any]) -> Mapping[str, Check]:
    hints = get_type_hints(annotated, dict(module), _NAMES, include_extras=True)
    return {name: _check_for(hint) for name, hint in hints.items()}


def _check_for(hint: Any) -> Check:  # noqa: PLR0911 - one line for each kind of type
    """Return the check for a type."""
    if hint is Any:
        return lambda _, value: value
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(parts[1])
    if origin is Unpack:
        return _keywords(parts[0])
    if origin in (Union, types.UnionType):
        return _any_of(parts)
    if origin is Mapping:
        return _mapping(*parts)
    if origin in (Iterable, Sequence):
        return _list(parts[0], origin)
    if hint in _SPECS:
        return _spec(hint)
    if is_typeddict(hint):
        return _wishes(hint)
    if hint in _PLAIN or isinstance(hint, type):
        return _plain(hint)
    raise TypeError(f"no check for {hint!r}")


def _refused(field: str, value: Any, wanted: str, advice: str = "") -> errors.InvalidArgument:
    # The text of anything else may be of any length, and say nothing.
    shown = reprlib.repr(value) if isinstance(value, _SHOWN) else "a value"
    return errors.InvalidArgument(
        f"{field} is {shown} ({type(value).__name__}), not {wanted}{advice}; nothing was sent", field=field
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_PLAIN: Mapping[Any, tuple[str, Callable[[Any], bool]]] = {
    type(None): ("None", lambda value: value is None),
    str: ("a text", lambda value: isinstance(value, str)),
    bool: ("True or False", lambda value: isinstance(value, bool)),
    int: ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    SupportsIndex: (
        "a whole number",
        lambda value: isinstance(value, SupportsIndex) and not isinstance(value, bool),
    ),
    float: ("a number", _is_number),
    Infinite: ("INFINITE", lambda value: value is INFINITE),
    datetime: (
        "a datetime with a time zone",
        lambda value: isinstance(value, datetime) and value.utcoffset() is not None,
    ),
    timedelta: (
        "a timedelta above zero",
        lambda value: isinstance(value, timedelta) and value > timedelta(),
    ),
}


def _plain(kind: Any) -> Check:
    wanted, allows = _PLAIN.get(kind, (f"a {kind.__name__}", lambda value: isinstance(value, kind)))

    def check(field: str, value: Any) -> Any:
        if not allows(value):
            raise _refused(field, value, wanted)
        return value

    return check


def _annotated(rule: Rule | Hosts | OrZero) -> Check:
    if isinstance(rule, OrZero):
        return _delay(rule)
    return _ruled(rule) if isinstance(rule, Rule) else _hosts(rule)


def _delay(rule: OrZero) -> Check:
    def check(field: str, value: Any) -> Any:
        if not isinstance(value, timedelta) or value < timedelta():
            raise _refused(field, value, rule.wanted)
        return value

    return check


def _ruled(rule: Rule) -> Check:
    def check(field: str, value: Any) -> Any:
        if not isinstance(value, str) or not rule.allows(value):
            raise _refused(field, value, rule.wanted)
        return value

    return check


def _hosts(rule: Hosts) -> Check:
    one, is_name = _check_for(NodeName), get_args(NodeName)[1].allows

    def check(field: str, value: Any) -> Any:
        if isinstance(value, str):
            return expanded(field, value)
        if isinstance(value, bytes) or not isinstance(value, Iterable):
            raise _refused(field, value, rule.wanted)
        names: list[str] = []
        for index, each in enumerate(value):
            if isinstance(each, str) and is_name(each):
                # Nearly all of thousands are names; reading one as a hostlist takes many times as long.
                names.append(each)
                continue
            place = f"{field}[{index}]"
            names += expanded(place, each) if isinstance(each, str) else [one(place, each)]
        return names

    def expanded(field: str, text: str) -> list[str]:
        if hostlist.size(text) > hostlist.LIMIT:
            raise _refused(field, text, f"a hostlist of at most {hostlist.LIMIT} nodes")
        # What is no hostlist is returned as it is, and then is no name; so is an empty text, and a blank in between.
        return [one(field, name) for name in (hostlist.expand(text) if text == text.strip() else ()) or (text,)]

    return check


def _list(item: Any, kind: Any) -> Check:
    check_item, wanted = _check_for(item), f"a list of {_named(item)}"

    def check(field: str, value: Any) -> Any:
        if isinstance(value, str | bytes) or not isinstance(value, kind):
            raise _refused(field, value, wanted, f": write [{value!r:.40}]" if isinstance(value, str) else "")
        # An iterator can be read only once.
        return [check_item(f"{field}[{index}]", each) for index, each in enumerate(value)]

    return check


def _mapping(key: Any, value: Any) -> Check:
    check_key, check_value = _check_for(key), _check_for(value)

    def check(field: str, given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise _refused(field, given, "a mapping")
        return {
            check_key(f"a key of {field}", each): check_value(f"{field}[{each!r:.40}]", held)
            for each, held in given.items()
        }

    return check


def _spec(kind: type[Any]) -> Check:
    # Made at the first use: a spec may name others.
    of_fields = functools.cache(lambda: _checks(kind, vars(inspect.getmodule(kind))))

    def check(field: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise _refused(field, value, f"a {kind.__name__}")
        checks = of_fields()
        for each in dataclasses.fields(value):
            checks[each.name](f"{field}.{each.name}", getattr(value, each.name))
        return value

    return check


def _wishes(kind: Any) -> Check:
    """Return the check of a mapping that a TypedDict describes."""
    checks = _checks(kind, vars(sys.modules[kind.__module__]))

    def check(field: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _refused(field, value, "a mapping")
        unknown = next((name for name in value if name not in checks), None)
        if unknown is not None:
            raise errors.InvalidArgument(
                f"{field} has {unknown!r:.40}; there are {', '.join(checks)}; nothing was sent", field=field
            )
        return {name: checks[name](f"{field}.{name}", each) for name, each in value.items()}

    return check


def _keywords(kind: Any) -> Check:
    """Return the check of what a call takes as ``**keywords``, which a TypedDict describes."""
    checks = _checks(kind, vars(sys.modules[kind.__module__]))

    def check(_: str, value: Any) -> Any:
        unknown = next((name for name in value if name not in checks), None)
        if unknown is not None:
            raise TypeError(f"unexpected keyword argument {unknown!r}; there are {', '.join(checks)}")
        return {name: checks[name](name, each) for name, each in value.items()}

    return check


def _any_of(kinds: Sequence[Any]) -> Check:
    checks = [_check_for(kind) for kind in kinds]
    # None stands for "not given": it goes without saying.
    wanted = " or ".join(_named(kind) for kind in kinds if kind is not type(None))

    def check(field: str, value: Any) -> Any:
        inside: errors.InvalidArgument | None = None
        for each in checks:
            try:
                return each(field, value)
            except errors.InvalidArgument as error:
                if error.field != field:
                    inside = error
        raise inside or _refused(field, value, wanted)

    return check


def _named(hint: Any) -> str:
    """Return a type in words."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return str(parts[1].wanted)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_named, parts))
    if origin in (Iterable, Sequence):
        return f"a list of {_named(parts[0])}"
    if origin is Mapping:
        return "a mapping"
    return _PLAIN[hint][0] if hint in _PLAIN else f"a {hint.__name__}"
