"""A list of Tokens: whose they are, until when, and what is wrong with them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kubectl_slurm.facts.objects import TokenFacts
from kubectl_slurm.screen.blocks import Mood, Row, Screen, Section, table
from kubectl_slurm.screen.words import ago, clip, number


def screen(tokens: Sequence[TokenFacts], namespace: str, now: datetime) -> Screen:
    """All Tokens of a namespace."""
    if not tokens:
        return (Section(f"There is no Token in namespace {namespace}"),)
    rows = [_row(token, now) for token in sorted(tokens, key=lambda one: one.name)]
    head = ("TOKEN", "USER", "CLUSTER", "ENDS", "SECRET", "STATE")
    return (Section(f"{number(len(tokens), 'Token')} in namespace {namespace}", (table(head, rows, "Tokens"),)),)


def _row(token: TokenFacts, now: datetime) -> Row:
    cells = (token.name, token.user, token.cluster, ago(token.expires, now), f"{token.secret}/{token.key}")
    if token.ready is None:
        return Row((*cells, "the operator has not looked at it"), Mood.WARNING)
    if token.ready.status != "True":
        return Row((*cells, clip(f"{token.ready.reason}: {token.ready.message}")), Mood.BAD)
    if token.expires is not None and token.expires <= now:
        return Row((*cells, "ended"), Mood.BAD)
    return Row((*cells, "renewed at half of its life" if token.refresh else "not renewed"))
