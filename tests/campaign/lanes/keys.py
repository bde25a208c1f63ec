"""Secrets of the site, and steps of a rotation of the key set of auth/slurm, with mistakes. Pure.

The steps are those of docs/configuration.md.
"""

from __future__ import annotations

import json
from typing import Any, Final

TOKEN: Final = "portal"
"""A Token, and its Secret."""

MADE_SECRETS: Final = (TOKEN, "{cluster}-auth-jwt", "{cluster}-auth-accepted", "{cluster}-auth-copy")
"""Secrets that the operator makes: of the Token, and the keys of the Cluster."""

ADD, SWITCH, DROP_EARLY, REPLACE, UNREADABLE = STEPS = ("add", "switch", "drop early", "replace", "unreadable")
"""The last three are refused, or wait: no daemon may get such a set while others do not understand it."""

MISTAKES: Final = (DROP_EARLY, REPLACE, UNREADABLE)

LASTS: Final = 3600
"""Seconds until an earlier key expires: what the documentation names."""

MOST: Final = 6
"""Keys in a set, after which none is added."""


def next_set(text: str, step: str, new: str, now: float) -> str:
    """The set after a step.

    Parameters
    ----------
    text
        The set as it is, of `slurm.jwks`.
    new
        A key that no set has had, in base64; its first characters are its id, too.
    now
        Seconds since the epoch.
    """
    keys: list[dict[str, Any]] = json.loads(text)["keys"]
    fresh = {"kid": kid_of(new), "kty": "oct", "alg": "HS256", "k": new}
    if step == UNREADABLE:
        return text[: len(text) // 2]
    if step == REPLACE:
        keys = [{**fresh, "use": "default"}]
    elif step == ADD and len(keys) < MOST:
        keys = [*_with_default(keys, _default(keys)), fresh]
    elif step == SWITCH and len(keys) > 1:
        before = _default(keys)
        following = keys[(keys.index(before) + 1) % len(keys)]
        keys = [{**one, "exp": int(now) + LASTS} if one is before else one for one in keys if one is not following]
        keys = _with_default([*keys, {name: value for name, value in following.items() if name != "exp"}], None)
        keys[-1]["use"] = "default"
    elif step == DROP_EARLY and len(keys) > 1:
        keys = [one for one in keys if one is not _default(keys)]
    return json.dumps({"keys": keys})


def kid_of(new: str) -> str:
    """Id of a key that is made here."""
    return "c" + "".join(one for one in new if one.isalnum())[:8].lower()


def _default(keys: list[dict[str, Any]]) -> dict[str, Any]:
    return next((one for one in keys if one.get("use") == "default"), keys[0])


def _with_default(keys: list[dict[str, Any]], default: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The same keys; only this one is named as the default."""
    return [
        {
            **{name: value for name, value in one.items() if name != "use"},
            **({"use": "default"} if one is default else {}),
        }
        for one in keys
    ]
