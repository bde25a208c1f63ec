"""Every text, list and map of every kind has a bound in its schema; one without is named here, with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from slinky_api.crd.definition import definition
from slinky_api.sylabs import OLD_JOB_KINDS
from slinky_api.v1alpha1 import JOB_KINDS, KINDS

FRAGMENT: Final = "a fragment of a Kubernetes object: weight bounds values, characters and levels, shapes the names"
OLD: Final = (
    "sylabs' own schema leaves it open, and weight bounds it; what is read of it is translated as SlurmJobs are"
)
OPEN: Final = {
    r"spec(\..*)?\.template(\.metadata|\.spec)?": FRAGMENT,
    r"spec(\..*)?\.resources(\.requests|\.limits)?": FRAGMENT,
    r"spec(\..*)?\.service\.spec": FRAGMENT,
    r"spec\.volumeClaimTemplates\[\]": FRAGMENT,
    r"spec\.identity\.homes\.volume": FRAGMENT,
    r"spec\.token\.secretRef": "a text or an object: keywords for both bound it",
    r"spec(\.external\.components\[\])?\.parameters": (
        "jobs.parameters takes known keys alone, and parameter_values bounds each value"
    ),
    r"old: spec(\.(options|prepare|results|resources|ssh))?": OLD,
    r"old: spec\.(podSecurityContext|(prepare|results)\.mount|ssh\.(key|password))": OLD,
}
"""What a schema leaves open, by its path, and what bounds it instead."""

STATUS: Final = "the operator writes it, by rules that cut texts and lists"
"""Why fields of a status need no bound: users have no right to write them."""


def unbounded(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:  # noqa: C901 - one for each kind
    """Paths in a schema, with the bound that they lack."""
    kind = schema.get("type")
    if kind == "string" or schema.get("x-kubernetes-int-or-string"):
        if not {"maxLength", "enum"} & schema.keys() and schema.get("format") != "date-time":
            yield path, "maxLength"
    elif kind == "array":
        if "maxItems" not in schema:
            yield path, "maxItems"
        yield from unbounded(schema["items"], f"{path}[]")
    elif kind == "object":
        for name, child in schema.get("properties", {}).items():
            yield from unbounded(child, f"{path}.{name}")
        if "additionalProperties" in schema:
            if "maxProperties" not in schema:
                yield path, "maxProperties"
            yield from unbounded(schema["additionalProperties"], f"{path}.*")
        elif schema.get("x-kubernetes-preserve-unknown-fields") or not schema.get("properties"):
            yield path, "open"
    elif kind not in {"integer", "number", "boolean"}:
        yield path, "type"


def specs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for kinds, prefix in ((KINDS, ""), (JOB_KINDS, ""), (OLD_JOB_KINDS, "old: ")):
        for resource, model in kinds:
            version = definition(resource, model)["spec"]["versions"][0]
            yield (
                f"{resource.plural}.{resource.group}",
                prefix,
                version["schema"]["openAPIV3Schema"]["properties"]["spec"],
            )


@pytest.mark.parametrize(
    ("kind", "prefix", "schema"), list(specs()), ids=lambda part: part if isinstance(part, str) else ""
)
def test_each_field_of_a_spec_has_a_bound(kind: str, prefix: str, schema: dict[str, Any]) -> None:
    lacking = [(prefix + path, bound) for path, bound in unbounded(schema, "spec")]
    open_ = {
        path for path, bound in lacking if bound in {"open", "type"} and any(re.fullmatch(one, path) for one in OPEN)
    }
    assert [(path, bound) for path, bound in lacking if path not in open_] == [], kind


def test_each_exception_is_still_one() -> None:
    found = {prefix + path for _, prefix, schema in specs() for path, _ in unbounded(schema, "spec")}
    assert [one for one in OPEN if not any(re.fullmatch(one, path) for path in found)] == []


@pytest.mark.parametrize(
    ("schema", "bound"),
    [
        ({"type": "string"}, ("spec", "maxLength")),
        ({"type": "array", "items": {"type": "integer"}}, ("spec", "maxItems")),
        ({"type": "array", "maxItems": 2, "items": {"type": "string"}}, ("spec[]", "maxLength")),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, ("spec", "maxProperties")),
        ({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": True}}}, ("spec.a", "maxLength")),
        ({"type": "object"}, ("spec", "open")),
        ({}, ("spec", "type")),
    ],
)
def test_a_new_field_without_a_bound_is_found(schema: dict[str, Any], bound: tuple[str, str]) -> None:
    assert list(unbounded(schema, "spec")) == [bound]
