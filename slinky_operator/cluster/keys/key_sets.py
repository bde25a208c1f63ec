"""Key sets of auth/slurm (`slurm.jwks`): whether one may replace another without affecting any daemon. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any


def extends(old: bytes, new: bytes, wall: datetime) -> bool:
    """Whether a key set has every key of another that has not expired: keys are rotated one at a time."""
    before, after = _keys(old), _keys(new)
    if not before or not after:
        return False
    return all(_same(one, after.get(name, {})) or _expired(one, wall) for name, one in before.items())


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(one.get("k")) and one.get("k") == other.get("k") and one.get("alg") == other.get("alg")


def _expired(one: Mapping[str, Any], wall: datetime) -> bool:
    until = one.get("exp")
    return isinstance(until, int | float) and until < wall.timestamp()


def _keys(text: bytes) -> dict[str, Mapping[str, Any]]:
    """Keys by id; none if it is not a key set."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        return {}
    return {str(one["kid"]): one for one in listed if isinstance(one, dict) and "kid" in one}
