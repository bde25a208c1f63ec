"""What holds of the conditions of every kind, whatever has happened: worlds of tests ask for it at each write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slinky_api.conditions import LONGEST_AS_EXPECTED, Reason


def check(status: Mapping[str, Any]) -> None:
    """Fail for a condition that is as expected, and says more than a sentence."""
    for one in status.get("conditions") or ():
        if one["reason"] == Reason.AS_EXPECTED:
            assert len(one.get("message") or "") <= LONGEST_AS_EXPECTED, one
            assert "\n" not in (one.get("message") or ""), one
