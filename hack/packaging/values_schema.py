"""Schemas of charts' values: the hand-written ones in `schemas/`, the CRDs, and what Slinky's values look like.

helm checks values against the schema before it renders a template. Values of Slinky's charts must reach the template
that refuses them with the new name of each key, so the schema is strict about all others only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from hack.packaging import chart_images
from hack.packaging.render import OPERATOR_CHART, ROOT, SLURM_CHART

Schema = dict[str, Any]

SOURCES: Final = ROOT / "hack" / "packaging" / "schemas"

WHOLE: Final = "_"
"""In a list of Slinky's values: what is said of a key as a whole."""

ANY: Final = "*"
"""In a list of Slinky's values: any name."""

KEPT: Final = (
    *("pattern", "minLength", "maxLength", "minimum", "maximum", "enum"),
    *("minItems", "maxItems", "maxProperties", "required"),
)
"""What of a CRD's schema is handed on; the rest is Kubernetes' own, or words."""


def files() -> dict[str, str]:
    """The schemas by their path from the root of the repository."""
    return {
        str((chart / "values.schema.json").relative_to(ROOT)): _text(chart) for chart in (SLURM_CHART, OPERATOR_CHART)
    }


def of_slinky(names: Mapping[str, Any]) -> Schema:
    """A schema that values with any of Slinky's names meet, and no others."""
    found = []
    for key, below in names.items():
        if key == WHOLE:
            continue
        inner = True if isinstance(below, str) or WHOLE in below else of_slinky(below)
        if key == ANY:
            found.append({"type": "object", "not": {"additionalProperties": {"not": inner}}})
        else:
            found.append(
                {"type": "object", "required": [key], **({} if inner is True else {"properties": {key: inner}})}
            )
    return found[0] if len(found) == 1 else {"anyOf": found}


def of_kind(crd: Mapping[str, Any]) -> Schema:
    """The schema of the spec of a kind: no field that the kind does not have."""
    (version,) = crd["spec"]["versions"]
    return _converted(version["schema"]["openAPIV3Schema"]["properties"]["spec"])


def _text(chart: Path) -> str:
    schema: Schema = json.loads((SOURCES / f"{chart.name}.json").read_text(encoding="utf-8"))
    names = yaml.safe_load((chart / "files" / "slinky-values.yaml").read_text(encoding="utf-8"))
    schema["if"] = of_slinky(names)
    if chart == SLURM_CHART:
        schema["definitions"].update(_of_slurm())
    else:
        schema["else"]["properties"]["slurm"]["properties"]["images"]["properties"] = chart_images.properties()
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _of_slurm() -> Schema:
    """The kinds as values of the chart `slurm`: without the fields that the chart writes itself, and with `enabled`."""
    cluster = of_kind(_crd("clusters"))
    fields = cluster["properties"]
    return {
        "cluster": cluster,
        "accounting": fields["accounting"],
        "partition": _named(fields["partitions"]["items"], "name"),
        "nodeset": _named(of_kind(_crd("nodesets")), "clusterName"),
        "loginset": _named(of_kind(_crd("loginsets")), "clusterName"),
        "token": _named(of_kind(_crd("tokens")), "clusterRef"),
    }


def _named(schema: Schema, written: str) -> Schema:
    """The schema of a part that a map of the values has by name."""
    properties = {name: field for name, field in schema["properties"].items() if name != written}
    required = [name for name in schema.get("required", ()) if name != written]
    return {**schema, "properties": {**properties, "enabled": {"type": "boolean"}}, "required": required}


def _crd(plural: str) -> dict[str, Any]:
    path = OPERATOR_CHART / "crds" / f"slinky.slurm.net_{plural}.yaml"
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def _converted(schema: Mapping[str, Any]) -> Schema:
    """A schema of a CRD as JSON schema; `null` is a value that is not given, as for the API server."""
    if schema.get("x-kubernetes-int-or-string"):
        types = ["integer", "string"]
    else:
        types = [schema["type"]] if "type" in schema else []
    made: Schema = {key: schema[key] for key in KEPT if key in schema}
    if types:
        made["type"] = [*types, "null"]
    if "enum" in made:
        made["enum"] = [*made["enum"], None]
    if schema.get("exclusiveMaximum") is True:
        made["exclusiveMaximum"] = made.pop("maximum")
    if "not" in schema:
        made["not"] = _strict_not(schema["not"])
    if "items" in schema:
        made["items"] = _converted(schema["items"])
    made.update(_fields(schema))
    return made


def _fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if "properties" in schema:
        yield "properties", {name: _converted(field) for name, field in schema["properties"].items()}
    if "additionalProperties" in schema:
        yield "additionalProperties", _converted(schema["additionalProperties"])
    elif "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        yield "additionalProperties", False


def _strict_not(schema: Mapping[str, Any]) -> Schema:
    return {key: value for key, value in schema.items() if key in KEPT}
