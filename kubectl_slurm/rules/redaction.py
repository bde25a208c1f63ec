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

_PATTERNS: Final = (
    # A JSON Web Token.
    re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"),
    re.compile(r"(?i)(?<=bearer )[A-Za-z0-9._~+/=-]{8,}"),
    # name=value and name: value, with names that say what it is.
    re.compile(
        r"(?i)((?:pass(?:word|wd|phrase)?|storagepass|secret|token|api[_-]?key|jwt|private[_-]?key|credential)[\w-]*"
        r"[\"']?\s*[=:]\s*[\"']?)(?!\s)[^\s\"',;]+"
    ),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    # What is before the host of a URL: a name with a password.
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
_ENVIRONMENT: Final = frozenset({"env"})
_LEFT_OUT: Final = frozenset({"managedFields", "kubectl.kubernetes.io/last-applied-configuration"})
_SECRET_FIELDS: Final = re.compile(r"(?i)(password|passphrase|privateKey|secretKey|accessKey|stringData)")


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
        if value.get("kind") == "Secret":
            value = {key: held for key, held in value.items() if key not in {"data", "stringData"}}
        return {key: _field(str(key), held, depth) for key, held in value.items() if key not in _LEFT_OUT}
    if isinstance(value, list | tuple):
        return [thing(each, depth + 1) for each in value]
    return text(value) if isinstance(value, str) else value


def _field(key: str, held: Any, depth: int) -> Any:
    if key in _ENVIRONMENT and isinstance(held, list):
        return [
            {"name": each.get("name"), "value": REMOVED} if isinstance(each, Mapping) and "value" in each else each
            for each in held
        ]
    if _SECRET_FIELDS.search(key) and isinstance(held, str):
        return REMOVED
    return thing(held, depth + 1)
