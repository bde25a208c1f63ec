"""Field types: what a text, a name, a number may be, once for the models and for the CRDs.

Each type checks when a model is built, and carries the same check into the CRD, in the ways of `rules`. User text ends
up in slurm.conf and on command lines, so the types that matter most are those for text: `OneLine` cannot start a second
line of a configuration file.
"""

import re
from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, JsonValue, PlainSerializer, StringConstraints

from slinky_api.v1alpha1.rules import VALIDATIONS, Keywords, Rule, Text, cel, cel_string, matching

__all__ = [
    "MAX_ORDINALS",
    "Annotations",
    "AnyMap",
    "ConfText",
    "DnsLabel",
    "DnsLabelOrEmpty",
    "DnsSubdomain",
    "Duration",
    "FeatureName",
    "FileText",
    "FileTexts",
    "GresText",
    "HomesFolder",
    "HostName",
    "Image",
    "IntOrPercent",
    "LabelValue",
    "Labels",
    "Namespace",
    "NodeExpression",
    "NodeLine",
    "OneLine",
    "PartitionLine",
    "PartitionName",
    "PodTemplate",
    "Quantity",
    "ShortName",
    "SlurmName",
    "SlurmNodeSetName",
    "UrlOrEmpty",
    "UserName",
    "VolumeClaim",
    "absent_if_empty",
    "format_duration",
    "parse_duration",
]

MAX_ORDINALS: Final = 65_536
"""Upper limit of replicas: no Slurm cluster can have more nodes, and every ordinal has at most five digits."""


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
    # One search in C: these texts are long, and there may be hundreds of them in an object.
    wrong = re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges) + re.escape(more) + "]")

    def holds(text: str) -> bool:
        return wrong.search(text) is None and not text.rstrip(" \t\n").endswith("\\")

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
    """Refuse keys that the operator writes itself. Slurm accepts keys in any case, and blanks before ``=``."""
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

_DNS_LABEL_RULE: Final = matching(
    _DNS_LABEL, "must be lower-case letters, digits and '-', beginning and ending with a letter or digit"
)

DnsLabel = Annotated[str, Text(_DNS_LABEL_RULE, at_least=1, at_most=63)]
DnsLabelOrEmpty = Annotated[
    str,
    Text(
        matching(
            f"({_DNS_LABEL})?",
            "must be lower-case letters, digits and '-', beginning and ending with a letter or digit",
        ),
        at_most=63,
    ),
]
"""Empty as clients in Go write a text that is not given."""
Namespace = Annotated[str, Text(_DNS_LABEL_RULE, at_least=1, at_most=63, by_pattern=True)]
ShortName = Annotated[str, Text(_DNS_LABEL_RULE, at_least=1, at_most=16)]
"""A DNS label that leaves room for the names it becomes a part of: with the name of a Cluster (40) and a dash it has at
most 57 characters, to which a workload adds its own."""

DnsSubdomain = Annotated[
    str,
    Text(
        matching(
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
        matching(r"[A-Za-z0-9]([-A-Za-z0-9.:]*[A-Za-z0-9])?", "must be a host name or an IP address"),
        at_least=1,
        at_most=253,
    ),
]

_SYSTEM_FOLDERS: Final = (
    *("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "usr", "var"),
)

_PORT: Final = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
UrlOrEmpty = Annotated[
    str,
    Text(
        matching(
            rf"(https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9_.-]*)(:{_PORT})?(/[A-Za-z0-9_.~/%-]*)?)?",
            "must be a URL with http or https, a host, and a port up to 65535 if any, without user, query or fragment",
        ),
        at_most=2048,
    ),
]
"""Empty as clients in Go write a text that is not given."""


def absent_if_empty(value: object) -> object:
    """Take an empty text for a field that is not given."""
    return None if value == "" else value


Image = Annotated[
    str,
    Text(matching(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*", "must be the name of a container image"), at_least=1, at_most=512),
]
HomesFolder = Annotated[
    str,
    Text(
        matching(
            r"(/[A-Za-z0-9_][A-Za-z0-9_.-]*){1,16}",
            "must be an absolute path of letters, digits, '_', '.' and '-', without '.' or '-' at the start of a name",
        ),
        Rule(
            "must not be in a folder of the system such as /etc, /usr or /var",
            lambda text: text.split("/")[1] not in _SYSTEM_FOLDERS,
            f"!(self.split('/')[1] in [{', '.join(map(cel_string, _SYSTEM_FOLDERS))}])",
        ),
        at_least=2,
        at_most=256,
    ),
]
"""Where home folders are mounted."""

UserName = Annotated[
    str,
    Text(matching(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*", "must be a user name"), at_least=1, at_most=64, by_pattern=True),
]
SlurmName = Annotated[
    str,
    Text(
        matching(
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
        matching(
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
        matching(rf"ALL|{_DNS_LABEL}", "must be the name of a NodeSet, or ALL for every NodeSet of the cluster"),
        at_least=1,
        at_most=63,
        by_pattern=True,
    ),
]
NodeExpression = Annotated[
    str,
    Text(
        matching(r"[A-Za-z0-9_][A-Za-z0-9_.,\[\]-]*", "must be a node name or a hostlist such as n[01-16]"),
        at_least=1,
        at_most=1024,
        by_pattern=True,
    ),
]
FeatureName = Annotated[
    str,
    Text(
        matching(
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
        matching(
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
        {"x-kubernetes-int-or-string": True, "minimum": 0, "maxLength": 4, "pattern": "^(100|[1-9]?[0-9])%$"},
        replace=True,
    ),
]

_DECIMAL: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"

Quantity = Annotated[
    int | str,
    Keywords(
        {
            "x-kubernetes-int-or-string": True,
            "maxLength": 64,
            "pattern": rf"^[+-]?{_DECIMAL}(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?{_DECIMAL}))?$",
        },
        replace=True,
    ),
]
"""A Kubernetes quantity: ``4Gi``, ``500m``, ``2``."""

_UNIT_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = r"([0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h))+"

_LONGEST: Final = "87600h"
# Go reads durations as nanoseconds in 64 bits; hours and minutes with so many digits would not fit.
_FAR_TOO_LONG: Final = r"[0-9]{6,}(\.[0-9]*)?h|[0-9]{8,}(\.[0-9]*)?m([^s]|$)"
_DURATION_MESSAGE: Final = f"must be at most {_LONGEST} (ten years); leave the field out to set no limit"


def parse_duration(text: str) -> timedelta:
    """Read a duration as Kubernetes writes it, for example ``1h30m``.

    Raises
    ------
    ValueError
        If it is none.
    """
    if re.fullmatch(_DURATION, text) is None:
        raise ValueError("must be a duration such as 90s, 10m or 1h30m")
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in re.findall(r"([0-9.]+)(ms|s|m|h)", text))
    if seconds > _UNIT_SECONDS["h"] * float(_LONGEST.removesuffix("h")):
        raise ValueError(_DURATION_MESSAGE)
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
    Keywords(
        {
            "type": "string",
            "maxLength": 64,
            "pattern": f"^{_DURATION}$",
            VALIDATIONS: [
                cel(
                    f"!self.matches({cel_string(_FAR_TOO_LONG)}) && duration(self) <= duration('{_LONGEST}')",
                    _DURATION_MESSAGE,
                )
            ],
        },
        replace=True,
    ),
]

# Fragments of Kubernetes objects: dicts from end to end, unknown fields kept

AnyMap = Annotated[
    dict[str, Any], Keywords({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, replace=True)
]

LabelValue = Annotated[str, Field(max_length=63)]
Labels = Annotated[dict[str, LabelValue], Field(max_length=256)]
"""Labels of an object, as Kubernetes bounds them."""
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=262_144)]], Field(max_length=256)]
"""Annotations of an object; Kubernetes takes 256 KiB for all of them."""

_FILE_NAME: Final = matching(
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


def _texts(longest: int) -> dict[str, JsonValue]:
    """A map of texts, as Kubernetes bounds labels and annotations."""
    return {
        "type": "object",
        "maxProperties": 256,
        "additionalProperties": {"type": "string", "maxLength": longest},
    }


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
                        "labels": _texts(63),
                        "annotations": _texts(262_144),
                    },
                },
                "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        replace=True,
    ),
]
"""A pod template, whole or a fragment."""
