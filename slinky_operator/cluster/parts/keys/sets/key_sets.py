"""Key sets of auth/slurm (`slurm.jwks`): what is in one, and whether it may replace another. Pure.

Every daemon signs with the default key of its set: the one with ``"use": "default"``, else the first
(https://slurm.schedmd.com/authentication.html). Daemons read a new set one after the other, by a reconfigure that
slurmctld signs with its own default key. So a key has to be in everybody's set before it becomes the default: a slurmd
that does not know it refuses the reconfigure too, and slurmctld fails the jobs that it starts there (measured with
24.11 and 26.05, `tests/integration/slurm_conf/test_key_sets.py`).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from slinky_operator.cluster.parts.keys.sets.key_sizes import decoded
from slinky_operator.slurm.connection.key_proof import KeySet
from slinky_operator.slurm.connection.signed_messages import SharedKey


def read(text: bytes, wall: datetime) -> KeySet | None:
    """What daemons that have a set answer; `None` if they could not read it."""
    found = _keys(text)
    live: list[SharedKey] = []
    expired: list[SharedKey] = []
    for name, one in found.items():
        value = decoded(one.get("k"))
        if value is None:
            return None
        (expired if _expired(one, wall) else live).append(SharedKey(name, value))
    if not found:
        return None
    gone = "\0".join(one.kid for one in expired).encode()
    return KeySet(mark(text) + mark(gone), _default(found), tuple(live), tuple(expired))


def is_one(text: bytes) -> bool:
    """Whether a text is a key set: random bytes are none."""
    return bool(_keys(text))


def of_one(kid: str, key: bytes) -> bytes:
    """A set of one key."""
    made = {"kid": kid, "kty": "oct", "alg": "HS256", "use": "default", "k": base64.b64encode(key).decode()}
    return json.dumps({"keys": [made]}).encode()


def mark(text: bytes) -> str:
    """Distinguishes two texts without disclosing either."""
    return hashlib.sha256(b"slurm-operator key set\0" + text).hexdigest()[:16]


def default_of(text: bytes) -> str:
    """Id of the key that daemons with a set sign with; empty without one."""
    found = _keys(text)
    return _default(found) if found else ""


def without_end(text: bytes) -> frozenset[str]:
    """Ids of the keys of a set that never expire."""
    return frozenset(name for name, one in _keys(text).items() if one.get("exp") is None)


def for_restart(text: bytes) -> bytes:
    """The part of a set for which a daemon that reads keys only at its start is started again.

    A key that is being retired (``exp``) does not count: dropping it, once it has expired, changes nothing.
    """
    found = _keys(text)
    if not found:
        return text
    kept = {name: str(one.get("k")) for name, one in found.items() if one.get("exp") is None}
    return json.dumps([_default(found), kept], sort_keys=True).encode()


def extends(old: bytes, new: bytes, wall: datetime) -> bool:
    """Whether a key set has every key of another that has not expired, and signs with one that the other has too."""
    before, after = _keys(old), _keys(new)
    if not before or not after or early_default(old, new):
        return False
    return all(_same(one, after.get(name, {})) or _expired(one, wall) for name, one in before.items())


def early_default(old: bytes, new: bytes) -> str:
    """Id of the key that a set signs with, if the other does not have that key; empty if it has."""
    before, after = _keys(old), _keys(new)
    if not before or not after:
        return ""
    default = _default(after)
    return "" if _same(after[default], before.get(default, {})) else default


def _default(keys: Mapping[str, Mapping[str, Any]]) -> str:
    """Id of the key that daemons with this set sign with."""
    return next((name for name, one in keys.items() if str(one.get("use")).lower() == "default"), next(iter(keys)))


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
