"""
Checks what callers hand over, at the one place where all calls pass: by the types that each call declares.

A value of another type is refused before anything is sent, with an error that names the field. Nothing is converted,
dropped or split: text is no list of texts, a number of seconds is no duration, ``True`` is no number. What Slurm
accepts beyond types is left to Slurm, but for names that would mean more than one object: see :data:`NodeName`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import re
import reprlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, SupportsIndex, TypeAlias, Union, Unpack, get_args, get_origin, get_type_hints
from urllib.parse import unquote

from slurm_client import errors, models
from slurm_client.models import INFINITE, Infinite, Job, JobId, JobState
from slurm_client.notation import hostlist

__all__ = [
    "BaseState",
    "HttpMethod",
    "JobRef",
    "Listed",
    "Name",
    "NodeName",
    "NodeNames",
    "Signal",
    "Text",
    "UrlPath",
    "checked",
]

Check: TypeAlias = Callable[[str, Any], Any]
"""Takes a field and its value; returns the value, with what can be read only once read, or raises InvalidArgument."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a text must be beside a text."""

    wanted: str
    allows: Callable[[str], bool]


_NOT_IN_NAMES = re.compile(r"[/?#,\[\]\s\x00-\x1f\x7f]")


def _names_one(text: str) -> bool:
    return bool(text) and text not in {".", ".."} and _NOT_IN_NAMES.search(text) is None


def _names_one_node(text: str) -> bool:
    return _names_one(text) and text.upper() != "ALL"


NodeName: TypeAlias = Annotated[str, _Rule("the name of one node", _names_one_node)]
"""Name of one node. Slurm takes ``ALL`` for every node, whatever is done to it; lists have commas and brackets."""


@dataclass(frozen=True, slots=True)
class _Hosts:
    """A hostlist, or a list of such; its check returns the names."""

    wanted: str = "a hostlist or a list of such"


NodeNames: TypeAlias = Annotated[str | Iterable[str], _Hosts()]
"""Names of nodes: a hostlist (``w-[0-3],w-7``), or a list of names and hostlists. Each name is a :data:`NodeName`."""

Name: TypeAlias = Annotated[str, _Rule("one name", _names_one)]
"""Name of one partition, reservation, user or account; an empty one would mean any."""

Text: TypeAlias = Annotated[str, _Rule("a text that is not empty", lambda text: bool(text.strip()))]
"""A text that must say something."""

Listed: TypeAlias = Annotated[
    str, _Rule("a text that is not empty and has no comma", lambda text: bool(text.strip()) and "," not in text)
]
"""A text that is sent as one of a list with commas."""

_SIGNAL = re.compile(
    "(SIG)?(HUP|INT|QUIT|ABRT|KILL|ALRM|TERM|USR1|USR2|URG|CONT|STOP|TSTP|TTIN|TTOU)|[1-9]|[1-5][0-9]|6[0-4]"
)

Signal: TypeAlias = Annotated[
    str, _Rule("a signal such as TERM, SIGUSR1 or 15", lambda text: _SIGNAL.fullmatch(text.upper()) is not None)
]
"""A signal that Slurm knows: for any other, slurmrestd reports an error *and* cancels the job (24.11 and 26.05)."""

BaseState: TypeAlias = Annotated[
    str, _Rule(f"one of {', '.join(sorted(JobState.BASES))}", lambda text: text.upper() in JobState.BASES)
]
"""
A base state of jobs.

For a word that it does not know, slurmrestd reports an error, drops the filter and ends the jobs that are left: all of
them, where there is no other filter (24.11 and 26.05).
"""

JobRef: TypeAlias = Job | JobId | SupportsIndex | str
"""A job: as it was read, or by its id: a whole number of any type, or as text ``7``, ``7_3`` or ``7+1``."""

HttpMethod: TypeAlias = Annotated[str, _Rule("GET, POST or DELETE", {"GET", "POST", "DELETE"}.__contains__)]
"""A method that slurmrestd serves."""

_PATH = re.compile(r"(/(\{version\}|[-A-Za-z0-9._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+)+/?")


def _is_path(text: str) -> bool:
    # Servers on the way may take such parts out: what arrives is another path.
    return _PATH.fullmatch(text) is not None and {".", ".."}.isdisjoint(unquote(text).split("/"))


UrlPath: TypeAlias = Annotated[
    str, _Rule("a path such as /slurm/{version}/nodes/, quoted and without a query", _is_path)
]
"""A path on a server, which cannot become another one on the way."""

_NAMES: dict[str, Any] = {
    **{name: getattr(models, name) for name in models.__all__},
    "Iterable": Iterable,
    "Mapping": Mapping,
    "Sequence": Sequence,
    "datetime": datetime,
    "timedelta": timedelta,
    "Any": Any,
    "BaseState": BaseState,
    "HttpMethod": HttpMethod,
    "JobRef": JobRef,
    "Listed": Listed,
    "Name": Name,
    "NodeName": NodeName,
    "NodeNames": NodeNames,
    "Signal": Signal,
    "Text": Text,
    "UrlPath": UrlPath,
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
        return _ruled(parts[1]) if isinstance(parts[1], _Rule) else _hosts(parts[1])
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


def _ruled(rule: _Rule) -> Check:
    def check(field: str, value: Any) -> Any:
        if not isinstance(value, str) or not rule.allows(value):
            raise _refused(field, value, rule.wanted)
        return value

    return check


def _hosts(rule: _Hosts) -> Check:
    one = _check_for(NodeName)

    def check(field: str, value: Any) -> Any:
        if isinstance(value, str):
            return expanded(field, value)
        if isinstance(value, bytes) or not isinstance(value, Iterable):
            raise _refused(field, value, rule.wanted)
        names: list[str] = []
        for index, each in enumerate(value):
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
