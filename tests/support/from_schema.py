"""Specs generated from a CRD's schema: random ones, and one for each text field with that text in it.

Only the schema itself is respected, with patterns and rules that are regular expressions; rules across fields are not,
so the API server would reject some of these specs: the operator must handle those too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st

from hack.documents.tables.merge_keys import SHAPES

Schema = Mapping[str, Any]
Path = tuple[str, ...]
"""Names of fields; `[]` for an item of a list, `*` for a value of a map."""

ITEM, VALUE = "[]", "*"
_MATCHES = re.compile(r"self\.matches\('((?:[^'\\]|\\.)*)'\)")
_SAMPLES = (
    "a",
    "1",
    "10s",
    "a=1",
    "ALL",
    "gpu:1",
    "http://a:6820",
    "/a",
    "1Gi",
    "100%",
    "[",
    "a\\",
    "#",
    '"',
    "n[1-3]",
    "0 2 * * tue",
    "#!/bin/true",
    "x" * 63,
    "x" * 5000,
    "-",
    "é\u2028",
    "",
)
_FREE = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(_SAMPLES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "spec", "labels", "annotations", "containers", "volumes", "name", "image", "env", "$patch"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
"""What may stand in a fragment of a Kubernetes object, which the schema leaves open."""


def shaped(shape: str, depth: int = 6) -> st.SearchStrategy[Any]:
    """Values of a type in the API server's table of shapes, some fields at a time."""
    if shape.startswith("["):
        return st.lists(shaped(shape[1:-1], depth - 1), max_size=2)
    if shape.startswith("{"):
        return st.dictionaries(st.sampled_from(["a", "slinky.slurm.net/x"]), shaped(shape[1:-1], depth - 1), max_size=2)
    fields = TYPES.get(shape)
    if fields is None:
        return _SHAPED_SCALARS[shape]
    if depth <= 0:
        return st.just({})
    # One draw of names and then of values: a type has up to forty fields.
    names = st.lists(st.sampled_from(sorted({*fields, *LIKELY & fields.keys()})), max_size=4, unique=True)
    return names.flatmap(lambda taken: st.fixed_dictionaries({name: shaped(fields[name], depth - 1) for name in taken}))


TYPES: dict[str, dict[str, str]] = json.loads(SHAPES.read_text(encoding="utf-8"))["types"]
LIKELY = {"spec", "containers", "name", "args", "env", "resources", "metadata", "labels", "nodeSelector", "affinity"}
_SHAPED_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["slurmd", "slurmctld", "a", "", "-N", "--conf-server=x", "Always", "$patch", "é"]),
    "integer": st.integers(-1, 70_000),
    "number": st.floats(0, 1),
    "boolean": st.booleans(),
    "any": st.integers(0, 4) | st.sampled_from(["1", "500m", "4Gi", "x", ""]),
}


def patterns_of(schema: Schema) -> list[str]:
    """Regular expressions that a text must match, by pattern or by rule."""
    found = [schema["pattern"]] if "pattern" in schema else []
    rules = (_of_rule(rule["rule"]) for rule in schema.get("x-kubernetes-validations", ()))
    return [*found, *(pattern for pattern in rules if pattern is not None)]


@cache
def _of_rule(rule: str) -> str | None:
    match = _MATCHES.fullmatch(rule)
    return None if match is None else re.sub(r"\\(.)", r"\1", match[1])


def fits(schema: Schema, text: str) -> bool:
    """Whether a text obeys length and patterns."""
    if not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 1 << 20):
        return False
    return all(_compiled(pattern).search(text) for pattern in patterns_of(schema))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("$", r"\Z"), re.ASCII)


def values(schema: Schema) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one for each kind
    """Random values of a schema."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return st.integers(0, 5) | st.sampled_from([text for text in _SAMPLES if fits(schema, text)])
    kind = schema.get("type")
    if kind == "string":
        return _texts(schema)
    if kind == "integer":
        return st.integers(schema.get("minimum", -3), min(schema.get("maximum", 70_000), 70_000))
    if kind == "number":
        return st.floats(0, 10)
    if kind == "boolean":
        return st.booleans()
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=min(schema.get("maxItems", 3), 3))
    return _mappings(schema)


def _texts(schema: Schema) -> st.SearchStrategy[str]:
    fitting = [text for text in _SAMPLES if fits(schema, text)]
    found: list[st.SearchStrategy[str]] = [st.sampled_from(fitting)] if fitting else []
    for pattern in patterns_of(schema):
        exact = st.from_regex(_compiled(pattern))
        found.append(exact.filter(lambda text: fits(schema, text)))
    if not found or "pattern" not in schema:
        found.append(st.text(max_size=min(schema.get("maxLength", 30), 30)))
    return st.one_of(*found)


def _mappings(schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
    properties = schema.get("properties")
    if properties and "spec" in properties and schema.get("x-kubernetes-preserve-unknown-fields"):
        return shaped("PodTemplateSpec")
    if properties:
        required = set(schema.get("required", ()))
        return st.fixed_dictionaries(
            {name: values(child) for name, child in properties.items() if name in required},
            optional={name: values(child) for name, child in properties.items() if name not in required},
        )
    if "additionalProperties" in schema:
        return st.dictionaries(st.sampled_from(_SAMPLES), values(schema["additionalProperties"]), max_size=3)
    free = st.dictionaries(st.sampled_from(["metadata", "spec", "a", "$patch"]), _FREE, max_size=3)
    return free | shaped("PodTemplateSpec") | shaped("PersistentVolumeClaim")


# One field, filled


def text_fields(schema: Schema, path: Path = ()) -> Iterator[tuple[Path, Schema]]:
    """Every text in a schema, with the way to it; what the schema leaves open is one field."""
    kind = schema.get("type")
    if kind == "string" and "enum" not in schema:
        yield path, schema
    elif kind == "array":
        yield from text_fields(schema["items"], (*path, ITEM))
    elif kind == "object":
        for name, child in schema.get("properties", {}).items():
            yield from text_fields(child, (*path, name))
        if "additionalProperties" in schema:
            yield from text_fields(schema["additionalProperties"], (*path, VALUE))
        elif not schema.get("properties"):
            yield (*path, VALUE), {"type": "string"}


def filled(schema: Schema, path: Path, make: Callable[[int], Any], *, items: int = 1) -> Any:
    """The smallest value of a schema that has at `path` what `make` makes; in lists `items` times, if that may be.

    Parameters
    ----------
    make
        Given the number of the item, in lists; 0 elsewhere.
    """
    return _filled(schema, path, make, items, 0)


def _filled(schema: Schema, path: Path, make: Callable[[int], Any], items: int, number: int) -> Any:
    if not path:
        return make(number)
    step, rest = path[0], path[1:]
    if step == ITEM:
        count = min(items, schema.get("maxItems", items))
        return [_filled(schema["items"], rest, make, 1, one) for one in range(count)]
    if step == VALUE:
        inner = schema.get("additionalProperties", {"type": "string"})
        count = min(items, schema.get("maxProperties", items))
        return {f"a{one}": _filled(inner, rest, make, 1, one) for one in range(count)}
    properties = schema["properties"]
    others = {name: smallest(properties[name], number) for name in schema.get("required", ()) if name != step}
    return {**others, step: _filled(properties[step], rest, make, items, number)}


def smallest(schema: Schema, number: int = 0) -> Any:  # noqa: PLR0911 - one for each kind
    """A plain value; texts differ by `number` where they can."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "string":
            texts = (f"a{number}", *_SAMPLES)
            return next(text for text in texts if fits(schema, text))
        case "integer":
            return max(schema.get("minimum", 0), 0)
        case "boolean":
            return False
        case "array":
            return [smallest(schema["items"], one) for one in range(schema.get("minItems", 0))]
        case "object":
            return {name: smallest(schema["properties"][name], number) for name in schema.get("required", ())}
        case _:
            return 0
