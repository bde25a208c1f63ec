"""The API reference as Markdown, from the same models as the CRDs.

One table per object type of a kind, in the order in which they are met, so that a reader can follow a field down.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from slinky_api.crd.structural import structural
from slinky_api.resource import Resource
from slinky_api.v1alpha1.common import GROUP, ApiObject

__all__ = ["api_reference"]

_HEADER = """<!-- Generated from api/slinky_api by 'python -m slinky_api.crd write'. Do not edit. -->

# API reference

Group `slinky.slurm.net` where no other is named, version `v1alpha1`. All kinds are namespaced and refer to objects in
their own namespace; only the Cluster of a Token or a SlurmJob may be in another one.
Fields are optional unless marked as required.
"""


_GATHERED = 3
"""This many fields or more with the same rule share a line."""


def api_reference(kinds: Iterable[tuple[Resource, type[ApiObject]]]) -> str:
    """Describe kinds.

    Parameters
    ----------
    kinds
        Names and models.

    Returns
    -------
    str
        A Markdown document.
    """
    lines = [_HEADER]
    for resource, model in kinds:
        root = structural(model, defaults=True)
        kind = resource.kind if resource.group == GROUP else f"{resource.kind} of {resource.group}"
        lines += [f"## {kind}\n", root["description"] + "\n", *_names(resource)]
        if rules := root.get("x-kubernetes-validations"):
            lines += _rules(rules)
        for part in ("spec", "status"):
            for path, schema in _objects(part, root["properties"][part]):
                lines += _table(f"{kind} `{path}`", schema)
    return "\n".join(lines).rstrip("\n") + "\n"


def _names(resource: Resource) -> Iterator[str]:
    names = ", ".join(f"`{name}`" for name in (resource.plural, resource.singular, *resource.short_names))
    yield f"Names: {names}. In the categories {', '.join(f'`{name}`' for name in resource.categories)}."
    yield f"CRD: `{resource.full_name}`.\n"
    shown = ", ".join(f"{column.name}{' (wide)' if column.wide else ''}" for column in resource.columns)
    yield f"Columns: {shown}.\n"
    if scale := resource.scale:
        yield (
            f"Subresource `scale`: `{scale.spec_replicas}`, `{scale.status_replicas}`, selector `{scale.selector}`.\n"
        )


def _objects(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object type below a path, itself first."""
    yield path, schema
    for name, child in schema["properties"].items():
        below = child.get("items", child)
        if "properties" in below:
            yield from _objects(f"{path}.{name}{'[]' if 'items' in child else ''}", below)


def _table(heading: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {heading}\n"
    yield schema.get("description", "") + "\n"
    yield "| field | type | meaning |"
    yield "| --- | --- | --- |"
    required = schema.get("required", ())
    for name, child in schema["properties"].items():
        meaning = child.get("description", "")
        default = child.get("default")
        if default not in (None, "", [], {}) and "Default:" not in meaning:
            meaning += f" Default: {_default(default)}."
        limits = "".join(f" {limit}." for limit in _limits(child))
        word = " **Required.**" if name in required else ""
        yield f"| `{name}` | {_type(child)} | {_cell(meaning + limits + word)} |"
    yield ""
    if rules := schema.get("x-kubernetes-validations"):
        yield from _rules(rules)


def _rules(rules: list[dict[str, Any]]) -> Iterator[str]:
    """Every rule once: rules that apply to several fields are one line, at the place of the first."""
    fields: dict[str, list[str]] = {}
    for rule in rules:
        field, _, said = rule["message"].partition(" ")
        fields.setdefault(said, []).append(field)
    yield "Rules:\n"
    for said, named in fields.items():
        if len(named) < _GATHERED:
            yield from (f"- {field} {said}" for field in named)
        else:
            yield f"- each of {', '.join(f'`{field}`' for field in named)} {said}"
    yield ""


def _default(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(value) if isinstance(value, list) else str(value)


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{word}`" for word in schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return "number or text"
    return _type_by_word(schema)


def _type_by_word(schema: dict[str, Any]) -> str:
    word = schema.get("type", "text or object")
    if word == "array":
        return f"list of {_type(schema['items'])}"
    if word == "object" and "additionalProperties" in schema:
        return f"map of {_type(schema['additionalProperties'])}"
    if word == "object" and "properties" not in schema:
        return "object (any)"
    if word == "string":
        return "time" if schema.get("format") == "date-time" else "text"
    return str(word)


def _limits(schema: dict[str, Any]) -> Iterator[str]:
    if schema.get("type") == "integer":
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is not None and high is not None:
            yield f"{low} to {high}"
        elif low is not None:
            yield f"At least {low}"
    if schema.get("type") in {"string", "array"}:
        for rule in schema.get("x-kubernetes-validations", schema.get("items", {}).get("x-kubernetes-validations", ())):
            if "self == oldSelf" not in rule["rule"]:
                yield rule["message"][0].upper() + rule["message"][1:]


def _cell(text: str) -> str:
    return text.strip().replace("|", "\\|").replace("<", "&lt;")
