"""From pydantic to structural schemas: what is translated, and what is rejected."""

from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, ConfigDict, Field

from slinky_api.crd.structural import SchemaError, structural
from slinky_api.v1alpha1.fields import IntOrPercent
from slinky_api.v1alpha1.rules import Keywords, cel


class Inner(BaseModel):
    """What the type says of itself."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": [cel("true", "of the type")]})

    title: str = "a property that is named like a keyword"


class Tree(BaseModel):
    children: list["Tree"]


def of(annotation: Any, **field: Any) -> dict[str, Any]:
    """The schema of a model's only property."""
    namespace = {"__annotations__": {"value": annotation}, "value": Field(**field)}
    schema = structural(type("Probe", (BaseModel,), namespace))
    value: dict[str, Any] = schema["properties"]["value"]
    return value


def test_references_are_inlined_and_a_property_may_be_named_like_a_keyword() -> None:
    assert of(Inner)["properties"]["title"] == {"type": "string"}


def test_the_description_of_a_field_stands_over_that_of_its_type() -> None:
    assert of(Inner)["description"] == "What the type says of itself."
    assert of(Inner, description="What the\n    field says.")["description"] == "What the field says."


def test_rules_of_a_type_and_of_its_use_add_up() -> None:
    used = Annotated[Inner, Keywords({"x-kubernetes-validations": [cel("false", "of the use")]})]
    messages = [rule["message"] for rule in of(used)["x-kubernetes-validations"]]
    assert messages == ["of the type", "of the use"]


def test_optional_is_not_nullable() -> None:
    assert of(Optional[int], default=None) == {"type": "integer"}  # noqa: UP045


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Literal["a"], {"type": "string", "enum": ["a"]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (dict[str, Any], {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (dict[str, str], {"type": "object", "additionalProperties": {"type": "string"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            IntOrPercent,
            {"x-kubernetes-int-or-string": True, "minimum": 0, "maxLength": 4, "pattern": "^(100|[1-9]?[0-9])%$"},
        ),
        (Annotated[int, Field(gt=0)], {"type": "integer", "minimum": 0, "exclusiveMinimum": True}),
    ],
)
def test_types_become_what_the_api_server_wants(annotation: Any, schema: dict[str, Any]) -> None:
    assert of(annotation) == schema


def test_forbidding_unknown_fields_is_left_to_pruning() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")
        a: int

    assert structural(Strict) == {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}


def test_defaults_are_for_documentation_only() -> None:
    class WithDefault(BaseModel):
        a: int = 3

    assert "default" not in structural(WithDefault)["properties"]["a"]
    assert structural(WithDefault, defaults=True)["properties"]["a"]["default"] == 3


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (set[str], "uniqueItems has no counterpart"),
        (tuple[int, str], "prefixItems has no counterpart"),
        (int | str, "is a union of 2 types"),
        (Tree, "Tree contains itself"),
    ],
)
def test_what_cannot_be_said_is_an_error_that_names_the_place(annotation: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason) as caught:
        of(annotation)
    assert caught.value.path.startswith("Probe.value")
