"""Tokens and keys that end soon, or have ended. Pure.

A Token that is renewed is shown only if it was not: past three quarters of its life, where half is the time.
One that a call of this program has made for itself ends with the call, and is not shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from kubectl_slurm.facts.objects import KeyFacts, TokenFacts
from kubectl_slurm.screen.blocks import Mood, Row, Section, table
from kubectl_slurm.screen.words import ago, clip

SOON_TOKEN: Final = timedelta(hours=24)
SOON_KEY: Final = timedelta(days=14)
LATE: Final = 0.75
"""Part of a token's life after which it should have been renewed."""


def section(tokens: Iterable[TokenFacts], keys: Iterable[KeyFacts], now: datetime) -> Section:
    """What ends soon, the first end first."""
    ends: list[tuple[datetime, Row]] = []
    for token in tokens:
        why = "" if token.temporary else _why(token, now)
        if why:
            at = token.expires or now
            cells = ("Token", token.name, token.user, ago(token.expires, now), why)
            ends.append((at, Row(cells, Mood.BAD if at <= now else Mood.WARNING)))
    for key in keys:
        if key.expires - now < SOON_KEY:
            mood = Mood.BAD if key.expires <= now else Mood.WARNING
            ends.append((key.expires, Row(("key", key.name, "", ago(key.expires, now), "replace it"), mood)))
    if not ends:
        return Section("Tokens and keys: none ends soon", mood=Mood.GOOD)
    rows = [row for _, row in sorted(ends, key=lambda one: (one[0], one[1].cells))]
    head = ("WHAT", "NAME", "USER", "ENDS", "WHY")
    return Section("Tokens and keys that end soon", (table(head, rows, "tokens and keys"),), Mood.WARNING)


def _why(token: TokenFacts, now: datetime) -> str:
    """Why a Token needs somebody; empty if it does not."""
    if token.ready is not None and token.ready.status == "False":
        return clip(f"{token.ready.reason}: {token.ready.message}")
    if token.expires is None:
        return ""
    if token.expires <= now:
        return "ended; the operator does not renew it" if token.refresh else "ended; refresh: false"
    if not token.refresh:
        return "refresh: false: make another Token" if token.expires - now < SOON_TOKEN else ""
    if token.issued is None or token.expires <= token.issued:
        return ""
    late = (now - token.issued) / (token.expires - token.issued) > LATE
    return "should have been renewed: look whether the operator runs" if late else ""
