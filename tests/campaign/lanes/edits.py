"""Edits of any field of a Cluster or NodeSet, drawn from the schema of its CRD: good, bad and dangerous values.

A field whose documented effect is that jobs end, or that takes away what the campaign stands on, is not edited: that
would be the user's own word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from random import Random
from typing import Any, Final

import yaml

from hack.installing.operator import CHART
from tests.support.from_schema import ITEM, VALUE, Path, Schema, filled, fits, smallest
from tests.support.hostile_texts import texts

NOT_EDITED: Final[Mapping[str, str]] = {
    "nodesets drain": "says when jobs are cancelled",
    "nodesets workloadDisruptionProtection": "lets evictions end jobs",
    "nodesets template": "has the volume of the witness",
    "nodesets volumeClaimTemplates": "makes claims, which stay on purpose",
    "nodesets persistentVolumeClaimRetentionPolicy": "deletes claims",
    "nodesets futureNodes": "is for nodes without pods",
    "clusters accounting": "takes the other witness away",
    "clusters controller persistence": "gives up the state of slurmctld",
    "clusters controller external": "gives up slurmctld",
    "clusters prologScripts": "fails jobs, or drains their nodes",
    "clusters prologScriptRefs": "the same",
    "clusters prologSlurmctldScripts": "the same",
    "clusters prologSlurmctldScriptRefs": "the same",
    "clusters epilogScripts": "the same",
    "clusters epilogScriptRefs": "the same",
    "clusters epilogSlurmctldScripts": "the same",
    "clusters epilogSlurmctldScriptRefs": "the same",
}
"""Fields, by kind, that users know to end jobs or that the campaign needs, and why."""

GOOD, BAD, DANGEROUS = TASTES = ("good", "bad", "dangerous")

LONGEST: Final = 300
"""Characters of a text that is drawn: longer ones are tried by tests/unit/bounds."""

TRAPS: Final = (
    "",
    "a\nSelectType=select/linear",
    "DOWN",
    "#",
    "$(reboot)",
    "\\",
    "a,b",
    "ALL",
    "0",
    "UNLIMITED",
    "localhost/nosuch:1",
)
"""Texts that mean something to Slurm, a shell or a configuration."""


def draw(random: Random, kind: str) -> dict[str, Any]:
    """Draw an edit of a kind, by its plural name: a merge patch of the spec.

    Returns
    -------
    dict
        ``field``, ``taste``, ``spec``: what is merged.
    """
    path = random.choice(fields(kind))
    taste = random.choice(TASTES)
    leaf = _leaf(schema_of(kind), path)
    value = _value(random, leaf, taste)
    spec = filled(schema_of(kind), path, lambda _: value)
    if taste == DANGEROUS and random.random() < 0.3:
        spec = {path[0]: None}
    return {"field": ".".join(path), "taste": taste, "spec": {path[0]: spec[path[0]]}}


@cache
def schema_of(kind: str) -> Schema:
    """The schema of the spec of a kind, from the CRD as it is installed."""
    (text,) = [path.read_text() for path in (CHART / "crds").iterdir() if f"_{kind}." in path.name]
    (version,) = [one for one in yaml.safe_load(text)["spec"]["versions"] if one["storage"]]
    found: Schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


@cache
def fields(kind: str) -> tuple[Path, ...]:
    """Every field that is edited."""
    avoided = {tuple(key.split()[1:]) for key in NOT_EDITED if key.split()[0] == kind}
    return tuple(
        sorted(
            path
            for path in _leaves(schema_of(kind), ())
            if not any(path[: len(one)] == one for one in avoided)
        )
    )  # fmt: skip


def _leaves(schema: Schema, path: Path) -> Iterator[Path]:
    if schema.get("type") == "array":
        yield from _leaves(schema["items"], (*path, ITEM))
    elif schema.get("type") == "object":
        for name, child in schema.get("properties", {}).items():
            yield from _leaves(child, (*path, name))
        if "additionalProperties" in schema:
            yield from _leaves(schema["additionalProperties"], (*path, VALUE))
    elif path:
        yield path


def _leaf(schema: Schema, path: Path) -> Schema:
    for step in path:
        if step == ITEM:
            schema = schema["items"]
        elif step == VALUE:
            schema = schema["additionalProperties"]
        else:
            schema = schema["properties"][step]
    return schema


def _value(random: Random, schema: Schema, taste: str) -> Any:
    if taste == GOOD:
        return random.choice(schema["enum"]) if "enum" in schema else smallest(schema)
    kind = schema.get("type")
    if kind == "integer":
        ends = [schema.get("minimum", 0), schema.get("maximum", 70_000)]
        return random.choice([-1, ends[1] + 1, "many"] if taste == BAD else ends)
    if kind == "string":
        hostile = (*TRAPS, *texts(LONGEST).values())
        return random.choice([one for one in hostile if fits(schema, one) is (taste == DANGEROUS)] or [*hostile])
    return random.choice([None, [], {}, "x", -1] if taste == BAD else [True, False, 0])
