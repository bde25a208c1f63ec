"""Field types: what a text, a name, a number may be, once for the models and for the CRDs.

Each type checks when a model is built, and carries the same check into the CRD: as a schema keyword where that says
enough, as a CEL rule where the user is owed a sentence. User text ends up in slurm.conf and on command lines, so the
types that matter most are those for text: `OneLine` cannot start a second line of a configuration file.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import (
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    PlainSerializer,
    StringConstraints,
)
from pydantic_core import CoreSchema, core_schema

__all__ = [
    "MAX_ORDINALS",
    "VALIDATIONS",
    "AnyMap",
    "ConfText",
    "DnsLabel",
    "DnsSubdomain",
    "Duration",
    "FeatureName",
    "FileText",
    "FileTexts",
    "GresText",
    "HostName",
    "Image",
    "IntOrPercent",
    "Keywords",
    "Namespace",
    "NodeExpression",
    "NodeLine",
    "OneLine",
    "PartitionLine",
    "PartitionName",
    "PodTemplate",
    "Quantity",
    "Rule",
    "ShortName",
    "SlurmName",
    "SlurmNodeSetName",
    "StringMap",
    "Text",
    "Url",
    "UserName",
    "VolumeClaim",
    "cel",
    "cel_string",
    "format_duration",
    "parse_duration",
]

VALIDATIONS: Final = "x-kubernetes-validations"
"""Where a schema keeps its CEL rules."""

MAX_ORDINALS: Final = 65_536
"""Upper limit of replicas: no Slurm cluster can have more nodes, and every ordinal has at most five digits."""


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


def _matching(pattern: str, message: str) -> Rule:
    """A rule by regular expression, in what RE2 and Python have in common once Python keeps to ASCII."""
    compiled = re.compile(pattern, re.ASCII)
    return Rule(
        message,
        # fullmatch, not match: in Python a "$" would let one trailing line break through.
        lambda text: compiled.fullmatch(text) is not None,
        f"self.matches({cel_string(f'^(?:{pattern})$')})",
        f"^(?:{pattern})$",
    )


# Text that goes into a configuration file

# Code points that end a line for somebody on the way (C, Python's splitlines, YAML, terminals), and the other control
# characters, which have no business in a configuration: all but the tab.
_CONTROL: Final = ((0x00, 0x08), (0x0A, 0x1F), (0x7F, 0x7F), (0x85, 0x85), (0x2028, 0x2029))
_CONTROL_BUT_NEWLINE: Final = ((0x00, 0x08), (0x0B, 0x1F), *_CONTROL[2:])


# The price of a rule grows with the length of its expression, so code points are written as short as can be.
_TWO_DIGITS: Final = 0xFF


def _re2(code: int) -> str:
    return f"\\x{code:02x}" if code <= _TWO_DIGITS else f"\\x{{{code:x}}}"


def _without(ranges: tuple[tuple[int, int], ...], more: str, blank: str, message: str) -> Rule:
    """Refuse code points, and a backslash at the end even where blanks follow it."""
    # RE2 and Python write code points differently, so the class is written for the one and looped over for the other.
    characters = "".join(_re2(low) if low == high else f"{_re2(low)}-{_re2(high)}" for low, high in ranges) + more
    refused = rf"[{characters}]|\\[{blank}]*$"

    def holds(text: str) -> bool:
        wrong = any(low <= ord(character) <= high for character in text for low, high in ranges)
        return not wrong and not any(letter in text for letter in more) and not text.rstrip(" \t\n").endswith("\\")

    return Rule(message, holds, f"!self.matches({cel_string(refused)})")


# Slurm joins a line that ends in a backslash with the next, and cuts a line at "#": either would reach beyond the
# user's own words.
_ONE_LINE: Final = _without(
    _CONTROL,
    "#",
    r" \t",
    "must be one line, without control characters, without '#', and not ending in a backslash",
)
_PLAIN_LINES: Final = _without(
    _CONTROL_BUT_NEWLINE, "", r" \t\n", "must be lines without control characters, the last not ending in a backslash"
)


def _without_keys(*keys: str) -> Rule:
    """Refuse keys that belong to whoever renders the line. Slurm reads keys in any case, with blanks before ``=``."""
    pattern = rf"(?i)(^|[\s\"])({'|'.join(keys)})\s*[-+*/]?="
    compiled = re.compile(pattern, re.ASCII)
    return Rule(
        f"must not contain {' or '.join(f'{key}=' for key in keys)}, which the operator writes",
        lambda text: compiled.search(text) is None,
        f"!self.matches({cel_string(pattern)})",
    )


OneLine = Annotated[str, Text(_ONE_LINE, at_most=4096)]
"""Text that stays within one line of a configuration file or one argument."""

PartitionLine = Annotated[str, Text(_ONE_LINE, _without_keys("PartitionName", "Nodes"), at_most=4096)]
"""What follows ``PartitionName=… Nodes=…``."""

NodeLine = Annotated[str, Text(_ONE_LINE, _without_keys("NodeName"), at_most=4096)]
"""What follows ``NodeName=…``, or goes to ``slurmd --conf``."""

ConfText = Annotated[str, Text(_PLAIN_LINES, at_most=65_536)]
"""Lines of a configuration file, ``Key=Value`` each."""

FileText = Annotated[str, StringConstraints(max_length=262_144)]
"""Content of a file that is the user's own."""

# Names

_DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

_DNS_LABEL_RULE: Final = _matching(
    _DNS_LABEL, "must be lower-case letters, digits and '-', beginning and ending with a letter or digit"
)

DnsLabel = Annotated[str, Text(_DNS_LABEL_RULE, at_least=1, at_most=63)]
Namespace = Annotated[str, Text(_DNS_LABEL_RULE, at_least=1, at_most=63, by_pattern=True)]
ShortName = Annotated[str, Text(_DNS_LABEL_RULE, at_least=1, at_most=20)]
"""A DNS label that leaves room for the names it becomes a part of."""

DnsSubdomain = Annotated[
    str,
    Text(
        _matching(
            _DNS_SUBDOMAIN,
            "must be lower-case letters, digits, '-' and '.', each part beginning and ending with a letter or digit",
        ),
        at_least=1,
        at_most=253,
    ),
]
HostName = Annotated[
    str,
    Text(
        _matching(r"[A-Za-z0-9]([-A-Za-z0-9.:]*[A-Za-z0-9])?", "must be a host name or an IP address"),
        at_least=1,
        at_most=253,
    ),
]
Url = Annotated[
    str,
    Text(
        _matching(
            r"https?://[A-Za-z0-9\[][A-Za-z0-9_.:\[\]-]*(/[A-Za-z0-9_.~/%-]*)?",
            "must be a URL with http or https, without user, query or fragment",
        ),
        at_least=1,
        at_most=2048,
    ),
]
Image = Annotated[
    str,
    Text(_matching(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*", "must be the name of a container image"), at_least=1, at_most=512),
]
UserName = Annotated[
    str,
    Text(_matching(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*", "must be a user name"), at_least=1, at_most=64, by_pattern=True),
]
SlurmName = Annotated[
    str,
    Text(
        _matching(
            r"[A-Za-z0-9][A-Za-z0-9_.-]*",
            "must be letters, digits, '_', '.' and '-', beginning with a letter or digit",
        ),
        at_least=1,
        at_most=40,
    ),
]
"""ClusterName."""

PartitionName = Annotated[
    str,
    Text(
        _matching(
            r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "must be letters, digits, '_', '.' and '-', not beginning with '.' or '-'"
        ),
        Rule(
            "must not be 'default' or 'all', which mean something else to Slurm",
            lambda text: text.lower() not in {"default", "all"},
            "!(self.lowerAscii() in ['default', 'all'])",
        ),
        at_least=1,
        at_most=64,
    ),
]
SlurmNodeSetName = Annotated[
    str,
    Text(
        _matching(rf"ALL|{_DNS_LABEL}", "must be the name of a NodeSet, or ALL for every NodeSet of the cluster"),
        at_least=1,
        at_most=63,
        by_pattern=True,
    ),
]
NodeExpression = Annotated[
    str,
    Text(
        _matching(r"[A-Za-z0-9_][A-Za-z0-9_.,\[\]-]*", "must be a node name or a hostlist such as n[01-16]"),
        at_least=1,
        at_most=1024,
        by_pattern=True,
    ),
]
FeatureName = Annotated[
    str,
    Text(
        _matching(
            r"[A-Za-z0-9_][A-Za-z0-9_.:=/@+-]*",
            "must be one word of letters, digits and _ . : = / @ + -, beginning with a letter, digit or '_'",
        ),
        at_least=1,
        at_most=128,
    ),
]
GresText = Annotated[
    str,
    Text(
        _matching(
            r"[A-Za-z0-9_][A-Za-z0-9_.:,()/+-]*",
            "must be a list like gpu:a100:4,shard:8, without spaces, quotes or '='",
        ),
        at_least=1,
        at_most=1024,
    ),
]

# Numbers and times


def _check_int_or_percent(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | str):
        # A ValueError, since that is what pydantic collects.
        raise ValueError("must be a number or a percentage")  # noqa: TRY004
    if isinstance(value, int) and value < 0:
        raise ValueError("must not be negative")
    if isinstance(value, str) and re.fullmatch(r"(100|[1-9]?[0-9])%", value) is None:
        raise ValueError("must be a number or a percentage up to 100%")
    return value


IntOrPercent = Annotated[
    int | str,
    BeforeValidator(_check_int_or_percent),
    Keywords(
        {"x-kubernetes-int-or-string": True, "minimum": 0, "pattern": "^(100|[1-9]?[0-9])%$"},
        replace=True,
    ),
]

_DECIMAL: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"

Quantity = Annotated[
    int | str,
    Keywords(
        {
            "x-kubernetes-int-or-string": True,
            "pattern": rf"^[+-]?{_DECIMAL}(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?{_DECIMAL}))?$",
        },
        replace=True,
    ),
]
"""A Kubernetes quantity: ``4Gi``, ``500m``, ``2``."""

_UNIT_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = r"([0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h))+"


def parse_duration(text: str) -> timedelta:
    """Read a duration as Kubernetes writes it, for instance ``1h30m``.

    Raises
    ------
    ValueError
        If it is none.
    """
    if re.fullmatch(_DURATION, text) is None:
        raise ValueError("must be a duration such as 90s, 10m or 1h30m")
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in re.findall(r"([0-9.]+)(ms|s|m|h)", text))
    return timedelta(seconds=seconds)


def format_duration(duration: timedelta) -> str:
    """Write a duration as Kubernetes does; what is below a millisecond is lost."""
    milliseconds = duration // timedelta(milliseconds=1)
    return f"{milliseconds}ms" if milliseconds % 1000 else f"{milliseconds // 1000}s"


def _to_duration(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


Duration = Annotated[
    timedelta,
    BeforeValidator(_to_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    Keywords({"type": "string", "maxLength": 64, "pattern": f"^{_DURATION}$"}, replace=True),
]

# Fragments of Kubernetes objects: dicts from end to end, unknown fields kept

AnyMap = Annotated[
    dict[str, Any], Keywords({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, replace=True)
]
StringMap = dict[str, str]

_FILE_NAME: Final = _matching(
    r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "must be letters, digits, '_', '.' and '-', not beginning with '.' or '-'"
)
FileTexts = Annotated[
    dict[Annotated[str, Text(_FILE_NAME, at_least=1, at_most=253)], FileText],
    Field(max_length=64),
    Keywords(
        {
            VALIDATIONS: [
                cel(f"self.all(name, {_FILE_NAME.expression.replace('self', 'name')})", f"names {_FILE_NAME.message}")
            ]
        }
    ),
]
"""Files by name."""
VolumeClaim = AnyMap
PodTemplate = Annotated[
    dict[str, Any],
    Keywords(
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {
                "metadata": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
                    },
                },
                "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        replace=True,
    ),
]
"""A pod template, whole or a fragment."""
