"""Texts and objects without what nobody else may know: tokens, keys, passwords, values of variables. Pure.

A report is made of objects that hold no secrets, and of logs and files in which somebody may have put one. What looks
like one is replaced, in doubt rather too much.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

REMOVED: Final = "(removed)"
DEEPEST: Final = 60

_NAME: Final = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|[a-z0-9][_-]key|jwt|private[_-]?key|credential)"
)
"""What a name has in it that says that its value is secret; ``OPENAI_KEY`` as well, and not ``monkey``."""

_PATTERNS: Final = (
    # A JSON Web Token.
    re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"),
    re.compile(r"(?i)((?:\bauthorization[\"']?\s*[=:]\s*[\"']?)?\b(?:bearer|basic) +)[A-Za-z0-9._~+/=-]{8,}"),
    # name=value and name: value, with names that say what it is: to the closing quote, or to the end of the line.
    re.compile(
        rf"(?i)({_NAME}[\w-]{{0,80}}[\\\"']{{0,2}}[ \t]*[=:][ \t]*)"
        r"(?:\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|(?!\s)[^\n]+)"
    ),
    # The argument after a flag with such a name.
    re.compile(rf"(?i)((?<![\w-])--?[\w-]{{0,80}}{_NAME}[\w-]{{0,80}}[ \t]+)(?:\"[^\"\n]*\"?|'[^'\n]*'?|[^\s\"']+)"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    # What is before the host of a URL: a name with a password.
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
_FLAG: Final = re.compile(rf"(?i)--?[\w-]{{0,80}}{_NAME}[\w-]{{0,80}}")
_ENVIRONMENT: Final = frozenset({"env"})
_LEFT_OUT: Final = frozenset({"managedFields", "kubectl.kubernetes.io/last-applied-configuration"})
_SECRET_FIELDS: Final = re.compile(
    r"(?i)passw(?:or)?d|passphrase|pwd$|(?:private|secret|access|api)_?key|stringData|credentials?$|token$|jwt$"
    r"|[._-](?:key|pem|jwks)$"
)
_OF_USERS: Final = frozenset({"script", "command", "args"})
"""Fields of a SlurmJob that its user has written for the job alone."""


def text(value: str) -> str:
    """A text without what looks like a secret."""
    for pattern in _PATTERNS:
        value = pattern.sub(lambda found: (found[1] if found.re.groups else "") + REMOVED, value)
    return value


def thing(value: Any, depth: int = 0) -> Any:
    """An object of Kubernetes without secrets: no value of a variable, no data of a Secret, texts without either."""
    if depth > DEEPEST:
        return REMOVED
    if isinstance(value, Mapping):
        return _map(value, depth)
    if isinstance(value, list | tuple):
        # What follows a flag with a name that says what it is: ["--password", "hunter2"].
        before = ["", *value]
        return [
            REMOVED if isinstance(each, str) and _is_flag(last) else thing(each, depth + 1)
            for last, each in zip(before, value, strict=False)
        ]
    return text(value) if isinstance(value, str) else value


def _map(value: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
    if value.get("kind") == "Secret":
        value = {key: held for key, held in value.items() if key not in {"data", "stringData"}}
    if value.get("kind") == "SlurmJob" and isinstance(value.get("spec"), Mapping):
        spec = {key: REMOVED if key in _OF_USERS else held for key, held in value["spec"].items()}
        value = {**value, "spec": spec}
    name = value.get("name")
    if isinstance(name, str) and isinstance(value.get("value"), str) and _SECRET_FIELDS.search(name):
        value = {**value, "value": REMOVED}
    return {key: _field(str(key), held, depth) for key, held in value.items() if key not in _LEFT_OUT}


def _field(key: str, held: Any, depth: int) -> Any:
    if key in _ENVIRONMENT and isinstance(held, list):
        return [
            {"name": each.get("name"), "value": REMOVED} if isinstance(each, Mapping) and "value" in each else each
            for each in held
        ]
    if _SECRET_FIELDS.search(key) and isinstance(held, str):
        return REMOVED
    return thing(held, depth + 1)


def _is_flag(value: object) -> bool:
    return isinstance(value, str) and _FLAG.fullmatch(value) is not None
