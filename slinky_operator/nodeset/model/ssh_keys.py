"""What is missing of the keys that `spec.ssh` names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

AUTHORIZED_KEYS: Final = "authorizedKeysRef"
HOST_KEYS: Final = "hostKeysRef"

AGAIN: Final = 60.0
"""Seconds after which it is looked again which Secrets are there, and which has been made meanwhile."""

Wanted = tuple[tuple[str, str], ...]
"""Fields of `spec.ssh`, and the Secrets that they name."""


@dataclass(frozen=True, slots=True)
class MissingKeys:
    """A Secret without what pods need of it."""

    field: str
    """`AUTHORIZED_KEYS` or `HOST_KEYS`."""
    secret: str
    is_there: bool
    """Whether there is a Secret of that name, without such a key."""
