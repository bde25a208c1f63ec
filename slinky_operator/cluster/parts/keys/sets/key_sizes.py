"""Whether Slurm's daemons can use a key of a user's Secret: its size, and the form of a key set. Pure.

Slurm takes a `slurm.key` and a key of auth/jwt of any size, down to one byte, and every daemon ends that reads a key
set which is not in order. So a key is judged before any daemon has it. The bounds:

- auth/slurm: 16 bytes, the least that Slurm takes in a key set (``key lacks sufficient entropy``); its documentation
  makes 1024 (https://slurm.schedmd.com/authentication.html).
- auth/jwt: 32 bytes, the least that RFC 7518 (section 3.2) allows for HS256, and what Slurm's documentation makes
  (https://slurm.schedmd.com/jwt.html).
- at most 16 KiB, by far more than either makes: a larger one is another file by mistake.

Which keys are judged is decided in `lifecycle`: one that daemons run with already is only reported.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from slinky_operator.reconcile.text import cut
from slinky_operator.slurm import naming
from slinky_operator.slurm.naming import KeySource

SMALLEST: Final = {naming.SLURM_KEY: 16, naming.SLURM_JWKS: 16, naming.JWT_KEY: 32}
"""Bytes of a key, by the file that daemons read."""

BIGGEST: Final = 16_384
"""Bytes of a key."""

BIGGEST_SET: Final = 65_536
"""Bytes of a key set."""

MOST_KEYS: Final = 16
"""Keys in a set: each daemon is asked for each of them."""

_FIELDS: Final = {
    naming.SLURM_KEY: "spec.auth.slurmKeyRef",
    naming.SLURM_JWKS: "spec.auth.slurmKeyRef",
    naming.JWT_KEY: "spec.auth.jwtKeyRef",
}
_SHOWN: Final = 40


def why_not(source: KeySource, value: bytes) -> str:
    """Why the daemons are not to have a key: field, Secret, what it has and what it must have; empty if they may.

    Parameters
    ----------
    source
        Where the key is; one that the operator has generated is always right.
    value
        The key.
    """
    if source.generated:
        return ""
    found = _of_set(value) if source.file == naming.SLURM_JWKS else _size(len(value), SMALLEST[source.file])
    if source.file == naming.SLURM_KEY and not found and not _of_set(value):
        found = "is a key set, which daemons read as a single key under this name: key sets are named slurm.jwks"
    return f"{_FIELDS[source.file]}: {source.key} of Secret {source.secret} {found}" if found else ""


def _size(size: int, smallest: int) -> str:
    return "" if smallest <= size <= BIGGEST else f"has {size} bytes, and must have {smallest} to {BIGGEST}"


def _of_set(value: bytes) -> str:
    """What is wrong with a key set; the rules are those of Slurm (`src/plugins/auth/slurm/internal.c`)."""
    if len(value) > BIGGEST_SET:
        return f"has {len(value)} bytes, and a key set may have {BIGGEST_SET}"
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return "is not JSON, and a key set must be"
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        return 'is not a key set: {"keys": [...]} with one key or more'
    if len(listed) > MOST_KEYS:
        return f"has {len(listed)} keys, and a key set may have {MOST_KEYS}"
    return next(chain(*(_of_key(index, one) for index, one in enumerate(listed)), _of_all(listed)), "")


def _of_key(index: int, one: Mapping[str, Any]) -> Iterator[str]:
    kid = one.get("kid")
    if not isinstance(kid, str) or not kid:
        yield f"has no id (kid) in keys[{index}]"
        return
    about = f"has a key {cut(kid, _SHOWN)}"
    if str(one.get("kty")).lower() != "oct" or str(one.get("alg")).lower() != "hs256":
        yield f'{about} that is not "kty": "oct" with "alg": "HS256"'
    key = decoded(one.get("k"))
    if key is None:
        yield f"{about} whose k is no base64"
    elif _size(len(key), SMALLEST[naming.SLURM_JWKS]):
        yield f"{about} that {_size(len(key), SMALLEST[naming.SLURM_JWKS])}"
    if isinstance(one.get("exp"), dict | list):
        yield f"{about} whose exp is not a number"


def _of_all(listed: list[Mapping[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    for one in listed:
        if one["kid"] in seen:
            yield f"has two keys with the id {cut(one['kid'], _SHOWN)}"
        seen.add(one["kid"])
    if sum(str(one.get("use")).lower() == "default" for one in listed) > 1:
        yield "has more than one default key"


def decoded(given: object) -> bytes | None:
    """Bytes in base64 or base64url, with or without padding; `None` for anything else."""
    if not isinstance(given, str) or not given:
        return None
    bare = given.translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
