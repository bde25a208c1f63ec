"""What a row of a table says: where a value goes, how it is written there, or why it goes nowhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from slinky_operator.conversion import texts
from slinky_operator.conversion.texts import Unconvertible

ON: Final = True
OFF: Final = False


@dataclass(frozen=True, slots=True)
class At:
    """Where in the input a value is."""

    key: str
    """Its own name."""

    around: Mapping[str, Any] = field(default_factory=dict)
    """The map that has it."""

    above: Mapping[str, Any] = field(default_factory=dict)
    """The map that has that one."""


class WithoutEffect(Exception):
    """The value changes nothing, in Slinky's chart or here; the text says why."""


class Missed(Exception):
    """Nothing here corresponds to the value, and it was in effect; the text says what to do instead."""


class Mismatch(Exception):
    """The value has another type than Slinky's charts read; the text says which is needed."""


Take: TypeAlias = Callable[[Any, At], object]
"""Writes a value as it is here. Raises `Unconvertible`, `WithoutEffect` or `Mismatch` instead."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of a table.

    Attributes
    ----------
    to
        Where the value goes: `cluster.`, `nodeset.`, `login.`, `partition.` or `chart.` and a path; empty for nowhere.
        `container` in it is the daemon's container in the pod template, `*` the key's own name. Without a last name
        (`nodeset.`) the value is a map of fields.
    take
        How the value is written there.
    why
        A note, or the reason why it goes nowhere.
    because
        Why some values, those of Slinky's own defaults, are not missed.
    needless
        Goes nowhere, and nobody misses it.
    secret
        The value is not shown.
    """

    to: str = ""
    take: Take = field(default=lambda value, _: value)
    why: str = ""
    because: str = ""
    needless: bool = False
    secret: bool = False


Table: TypeAlias = "Mapping[str, Table | Rule | Shape]"


@dataclass(frozen=True, slots=True)
class Shape:
    """A key whose values have two shapes: the function says which rows are about this one."""

    of: Callable[[Any, At], Table | Rule]


def to(path: str, take: Take | None = None, why: str = "") -> Rule:
    """A row of a value that goes somewhere."""
    return Rule(path, take or anything, why)


def lost(why: str, *, secret: bool = False) -> Rule:
    """A row of a value that goes nowhere, although it had an effect."""
    return Rule(why=why, secret=secret)


def needless(why: str) -> Rule:
    """A row of a value that nothing here corresponds to, and that nobody misses."""
    return Rule(why=why, needless=True)


def lost_unless(*same: object, why: str, because: str) -> Rule:
    """A row of a value that is lost unless it is one of these, which change nothing."""

    def take(value: object, _: At) -> object:
        if any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in same):
            raise WithoutEffect(because)
        raise Unconvertible(why)

    return Rule(take=take, why=why, because=because)


def missed_unless(*same: object, why: str) -> Rule:
    """A row of a value without a counterpart, which is missed unless it is one of these."""

    def take(value: object, _: At) -> object:
        if value in same:
            raise WithoutEffect("off, or not set")
        raise Missed(why)

    return Rule(take=take, why=why, because="off, or not set", needless=True)


def anything(value: Any, _: At) -> object:
    """A value as it is."""
    return value


def text(value: Any, _: At) -> object:
    """A text, or what YAML takes for a number."""
    if isinstance(value, dict | list | bool):
        raise Mismatch("a text")
    return str(value)


def flag(value: Any, _: At) -> object:
    """True or false."""
    if not isinstance(value, bool):
        raise Mismatch("true or false")
    return value


def count(value: Any, _: At) -> object:
    """A number without a fraction, also as a text."""
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, str) and value.isdecimal())):
        raise Mismatch("a whole number")
    return int(value)


def mapping(value: Any, _: At) -> object:
    """A map, without fields that are empty."""
    if not isinstance(value, dict):
        raise Mismatch("a map")
    return {key: one for key, one in value.items() if one not in ({}, [], "", None)}


def items(value: Any, _: At) -> object:
    """A list."""
    if not isinstance(value, list):
        raise Mismatch("a list")
    return value


def words(value: Any, at: At) -> object:
    """A map of texts."""
    return {key: str(one) for key, one in _map(value, at).items()}


def image(value: Any, _: At) -> object:
    """An image as one text."""
    if not isinstance(value, dict | str):
        raise Mismatch("a map with repository and tag")
    found = texts.image(value)
    if not found:
        raise WithoutEffect("empty: Slinky's default, and this operator's here")
    return found


def image_of(repository: str) -> Take:
    """An image, which Slinky's chart completes by its own repository."""

    def take(value: Any, _: At) -> object:
        if not isinstance(value, dict | str):
            raise Mismatch("a map with repository and tag")
        found = texts.image(value, f"ghcr.io/slinkyproject/{repository}")
        if not found:
            raise WithoutEffect("empty: Slinky's default, and this operator's here")
        return found

    return take


def lines(value: Any, _: At) -> object:
    """Lines of a configuration file."""
    if not isinstance(value, dict | str):
        raise Mismatch("a text or a map")
    return texts.lines(value)


def partition_line(value: Any, _: At) -> object:
    """Keys of a partition's line."""
    if not isinstance(value, dict | str):
        raise Mismatch("a text or a map")
    return texts.partition(value)


def node_line(value: Any, _: At) -> object:
    """Keys of a node's line, as fields of a NodeSet."""
    if not isinstance(value, dict | str):
        raise Mismatch("a text or a map")
    return texts.node(value)


def authorized_keys(value: Any, _: At) -> object:
    """Lines of authorized_keys."""
    if not isinstance(value, list | str):
        raise Mismatch("a text or a list")
    return texts.keys(value)


def resources(value: Any, at: At) -> object:
    """Requests and limits."""
    found = _map(value, at)
    if more := sorted(set(found) - {"requests", "limits"}):
        raise Unconvertible(f"{more[0]} belongs into the daemon's container in template.spec.containers")
    return {key: one for key, one in found.items() if one}


def pull_policy(value: Any, at: At) -> object:
    """A pull policy that is not the one of Kubernetes."""
    if value == "IfNotPresent":
        raise WithoutEffect("Kubernetes' own default for an image with a tag")
    return text(value, at)


def reference(key: str) -> Take:
    """A Secret or ConfigMap and the key in it.

    Parameters
    ----------
    key
        The key if none is given.
    """

    def take(value: Any, at: At) -> object:
        found = _map(value, at)
        if not found.get("name"):
            raise Unconvertible("it has no name")
        return {"name": str(found["name"]), "key": str(found.get("key") or key)}

    return take


def named(key: str) -> Take:
    """The name of a Secret, as a reference to it."""

    def take(value: Any, at: At) -> object:
        return {"name": text(value, at), "key": key}

    return take


def references(value: Any, at: At) -> object:
    """A list of ConfigMaps."""
    found = items(value, at)
    assert isinstance(found, list)  # noqa: S101 `items` says so
    if not all(isinstance(one, dict) and one.get("name") for one in found):
        raise Mismatch("a list of {name: NAME OF A CONFIGMAP}")
    return [{"name": one["name"]} for one in found]


def _map(value: Any, at: At) -> dict[str, Any]:
    found = mapping(value, at)
    assert isinstance(found, dict)  # noqa: S101 `mapping` says so
    return found
