"""From pydantic's JSON schema to the structural schema that the API server wants.

The API server takes neither references nor unions with null, has its own word for "number or text", and prunes what a
schema does not name. What cannot be said in it is an error here, not a schema that means something else.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from slinky_api.crd.descriptions import described
from slinky_api.errors import SlinkyApiError

__all__ = ["SchemaError", "structural"]

_VALIDATIONS = "x-kubernetes-validations"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"

# Formats that the API server checks; it would ignore others, and readers would take them for checked.
_FORMATS = frozenset({"date-time", "int32", "int64", "byte"})

# A JSON schema may say more than a structural one: what is named here has its counterpart in a CEL rule.
_DROPPED = frozenset({"title", "$defs", "propertyNames"})

_KEPT = frozenset(
    {
        "type",
        "description",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "required",
        "nullable",
        "not",
    }
)


class SchemaError(SlinkyApiError):
    """A model says something that a structural schema cannot.

    Parameters
    ----------
    path
        Where in the model.
    reason
        What it is.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")


def structural(model: type[BaseModel], *, defaults: bool = False) -> dict[str, Any]:
    """Describe a model as a structural schema.

    Parameters
    ----------
    model
        The model; recursive ones cannot be described.
    defaults
        Whether to keep the models' defaults. A CRD must not have them: the API server would write them into stored
        objects, where they would outlive the version that they belong to. Documentation wants them.

    Raises
    ------
    SchemaError
        If the model says something that cannot be said.
    """
    schema = described(model, model.model_json_schema(by_alias=True, mode="validation"))
    return _Converter(schema.get("$defs", {}), defaults).convert(schema, model.__name__, ())


class _Converter:
    def __init__(self, definitions: Mapping[str, Any], defaults: bool) -> None:
        self._definitions = definitions
        self._defaults = defaults

    def convert(self, node: Mapping[str, Any], path: str, inside: tuple[str, ...]) -> dict[str, Any]:
        """Convert one node; ``inside`` are the definitions that led here."""
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[-1]
            if name in inside:
                raise SchemaError(path, f"{name} contains itself")
            base = self.convert(self._definitions[name], path, (*inside, name))
            return _merged(base, self.convert(_without(node, "$ref"), path, inside))
        for union in ("anyOf", "oneOf", "allOf"):
            if union in node:
                branches = [branch for branch in node[union] if branch.get("type") != "null"]
                if len(branches) != 1:
                    raise SchemaError(path, f"is a union of {len(branches)} types")
                return _merged(
                    self.convert(branches[0], path, inside), self.convert(_without(node, union), path, inside)
                )
        return self._keywords(node, path, inside)

    def _keywords(self, node: Mapping[str, Any], path: str, inside: tuple[str, ...]) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword == "properties":
                converted["properties"] = {
                    name: self.convert(child, f"{path}.{name}", inside) for name, child in value.items()
                }
            elif keyword == "items":
                converted["items"] = self.convert(value, f"{path}[]", inside)
            elif keyword == "additionalProperties" and not isinstance(value, bool):
                converted["additionalProperties"] = self.convert(value, f"{path}.*", inside)
            elif keyword not in _DROPPED and not (keyword == "default" and not self._defaults):
                converted |= _plain(keyword, value, path)
        return _ordered(converted)


def _plain(keyword: str, value: Any, path: str) -> dict[str, Any]:
    """What a keyword without schemas in it becomes."""
    kept = keyword in _KEPT or keyword.startswith("x-kubernetes-")
    plain: dict[str, Any]
    match keyword:
        case "additionalProperties":
            # With properties beside it, false is forbidden; pruning does what it says.
            plain = {_PRESERVE: True} if value else {}
        case "const":
            plain = {"enum": [value]}
        case "default":
            plain = {} if value is None else {"default": value}
        case "x-stored-default":
            # Only where Kubernetes itself reads the stored value: the scale subresource fails without one.
            plain = {"default": value}
        case "description":
            plain = {"description": " ".join(value.split())}
        case "exclusiveMinimum" | "exclusiveMaximum":
            # A number in JSON Schema since draft 6, a Boolean beside the bound in OpenAPI 3.0.
            plain = {keyword.removeprefix("exclusive").lower(): value, keyword: True}
        case "format":
            plain = {"format": value} if value in _FORMATS else {}
        case _ if kept:
            plain = {keyword: value}
        case _:
            raise SchemaError(path, f"{keyword} has no counterpart")
    return plain


def _without(node: Mapping[str, Any], keyword: str) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key != keyword}


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What a field says of itself stands over what its type says; rules add up."""
    merged = {**base, **own}
    if rules := [*base.get(_VALIDATIONS, ()), *own.get(_VALIDATIONS, ())]:
        merged[_VALIDATIONS] = rules
    return _ordered(merged)


def _ordered(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader looks for first comes first, and what nests comes last."""
    order = ("type", "description", "default")
    last = ("required", "properties", "additionalProperties", "items", _VALIDATIONS)
    middle = [keyword for keyword in schema if keyword not in order and keyword not in last]
    return {keyword: schema[keyword] for keyword in (*order, *middle, *last) if keyword in schema}
