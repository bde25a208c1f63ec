"""Descriptions of fields are the texts below them in the source."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from slinky_api.crd.descriptions import described


class Inner(BaseModel):
    own: int = 0
    """Of the inner one."""


class Base(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)

    first_one: int
    """Of the base."""
    second: int = 0
    """Of the base, too."""


class Outer(Base):
    second: int = 1
    """Of the outer one."""
    many: tuple[Inner, ...] = ()
    """Some of them."""
    by_hand: str = Field("", description="By hand.")
    """In the source."""
    silent: str = ""


def test_texts_of_bases_inner_models_and_aliases() -> None:
    schema = described(Outer, Outer.model_json_schema())
    told = {name: one.get("description") for name, one in schema["properties"].items()}
    assert told == {
        "firstOne": "Of the base.",
        "second": "Of the outer one.",
        "many": "Some of them.",
        "byHand": "By hand.",
        "silent": None,
    }
    assert schema["$defs"]["Inner"]["properties"]["own"]["description"] == "Of the inner one."
