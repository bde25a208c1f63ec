"""How a type says what it takes: to the model that checks it, and to the CRD.

A schema keyword where that says enough, a CEL rule where the user is owed a sentence; both are written once, and used
in ``Annotated``. Which types there are is in `fields`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue
from pydantic_core import CoreSchema, core_schema

__all__ = ["VALIDATIONS", "Keywords", "Rule", "Text", "cel", "cel_string", "matching"]

VALIDATIONS: Final = "x-kubernetes-validations"
"""Where a schema keeps its CEL rules."""


@dataclass(frozen=True, eq=False)
class Keywords:
    """Schema keywords that a type brings along, to be used in ``Annotated``.

    Parameters
    ----------
    keywords
        Merged into the type's JSON schema.
    replace
        Whether they are the whole schema, for types that JSON Schema and Kubernetes describe differently.
    """

    keywords: Mapping[str, Any]
    replace: bool = False

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        if self.replace:
            return dict(self.keywords)
        described = handler(schema)
        # Rules of the type and rules of its use add up; of everything else there can be one.
        rules = [*described.get(VALIDATIONS, ()), *self.keywords.get(VALIDATIONS, ())]
        return {**described, **self.keywords, **({VALIDATIONS: rules} if rules else {})}


def cel(rule: str, message: str, *, field: str = "", reason: str = "") -> dict[str, JsonValue]:
    """One CEL rule as a CRD writes it.

    Parameters
    ----------
    rule
        The expression; true for what is allowed.
    message
        What the user reads otherwise.
    field
        Where it is shown, relative to where the rule stands, with a leading dot.
    reason
        Kind of the refusal, where it is not ``FieldValueInvalid``.
    """
    written: dict[str, JsonValue] = {"rule": rule, "message": message}
    if field:
        written["fieldPath"] = field
    if reason:
        written["reason"] = reason
    return written


def cel_string(text: str) -> str:
    """A text as a CEL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@dataclass(frozen=True)
class Rule:
    """One rule about a text, for the model and for the CRD."""

    message: str
    """What the user reads when it is broken."""
    holds: Callable[[str], bool]
    """Whether it holds, here."""
    expression: str
    """Whether it holds, as a CEL expression over ``self``."""
    pattern: str = ""
    """The same as a regular expression, if it is one."""


class Text:
    """Bounds and rules of a text, to be used in ``Annotated``.

    Parameters
    ----------
    *rules
        All must hold.
    at_least, at_most
        Length in characters. The upper bound is not optional: without it the API server takes the rules for too
        expensive.
    by_pattern
        Whether the CRD says a rule that is a regular expression as a ``pattern``. That costs nothing, where CEL rules
        on lists within lists soon exceed the API server's budget; but it refuses without a sentence.
    """

    def __init__(self, *rules: Rule, at_most: int, at_least: int = 0, by_pattern: bool = False) -> None:
        self.by_pattern = by_pattern
        self.rules = rules
        self.at_least = at_least
        self.at_most = at_most

    def __get_pydantic_core_schema__(self, source: type[str], handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        keywords: dict[str, Any] = {"maxLength": self.at_most}
        if self.at_least:
            keywords["minLength"] = self.at_least
        expressions = []
        for rule in self.rules:
            if self.by_pattern and rule.pattern:
                keywords["pattern"] = rule.pattern
            else:
                expressions.append(cel(rule.expression, rule.message))
        if expressions:
            keywords[VALIDATIONS] = expressions
        return {**handler(schema), **keywords}

    def _check(self, text: str) -> str:
        if not self.at_least <= len(text) <= self.at_most:
            raise ValueError(f"must have {self.at_least} to {self.at_most} characters")
        for rule in self.rules:
            if not rule.holds(text):
                raise ValueError(rule.message)
        return text


def matching(pattern: str, message: str) -> Rule:
    """A rule by regular expression, in what RE2 and Python have in common once Python keeps to ASCII."""
    compiled = re.compile(pattern, re.ASCII)
    return Rule(
        message,
        # fullmatch, not match: in Python a "$" would let one trailing line break through.
        lambda text: compiled.fullmatch(text) is not None,
        f"self.matches({cel_string(f'^(?:{pattern})$')})",
        f"^(?:{pattern})$",
    )
