"""One screen about a Cluster: conditions that are not as wanted, NodeSets, nodes, the queue, what ends soon. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kubectl_slurm.facts.objects import ClusterFacts, Condition, KeyFacts, NodeSetFacts, TokenFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.jobs import queue
from kubectl_slurm.rules.nodes import service
from kubectl_slurm.screen.blocks import Line, Mood, Row, Screen, Section, table
from kubectl_slurm.screen.words import ago, clip, number

WANTED_FALSE: Final = frozenset(
    {
        "Progressing", "Degraded", "NodesOutOfService", "ControllerHung", "Deleting", "Draining", "RecordsKept",
        "NameConflict", "ClusterGone", "HealthBudgetReached", "InMaintenance", "ReplacementFailed",
    }
)  # fmt: skip
"""Types of conditions that are as wanted when they are False; all others are when they are True."""

ACTIVITY: Final = frozenset({"Progressing", "Draining", "RecordsKept", "InMaintenance"})
"""Types of conditions that say what is going on, and not that something is wrong."""

MOST_NODESETS: Final = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All that `status` shows of one Cluster.

    Attributes
    ----------
    slurm
        What Slurm said; None if it was not asked, and `silence` says why.
    """

    now: datetime
    cluster: ClusterFacts
    nodesets: tuple[NodeSetFacts, ...] = ()
    tokens: tuple[TokenFacts, ...] = ()
    keys: tuple[KeyFacts, ...] = ()
    slurm: SlurmPicture | None = None
    silence: str = ""
    hidden: tuple[str, ...] = ()
    """What could not be read of Kubernetes, and why."""


def screen(seen: Overview) -> Screen:
    """One screen; sections with nothing to say are one line."""
    return (
        _cluster(seen),
        _nodesets(seen),
        service.section(seen.slurm, seen.now, _condition(seen.cluster, "NodesOutOfService")),
        queue.section(seen.slurm, seen.cluster),
        ends_soon(seen.tokens, seen.keys, seen.now),
        *_hidden(seen),
    )


def unwanted(conditions: Iterable[Condition]) -> list[Condition]:
    """Conditions that are not as wanted: what is wrong before what is going on."""
    found = [one for one in conditions if one.status != ("False" if one.type in WANTED_FALSE else "True")]
    return sorted(found, key=lambda one: one.type in ACTIVITY)


def _cluster(seen: Overview) -> Section:
    cluster = seen.cluster
    version = (seen.slurm.version if seen.slurm is not None else "") or cluster.slurm_version
    slurm = f"Slurm {version}" if version else "Slurm's version is not known yet"
    where = f" at {cluster.server}" if cluster.external else ""
    title = f"Cluster {cluster.name} in namespace {cluster.namespace}: {slurm}{where}"
    found = unwanted(cluster.conditions)
    if cluster.ready and not found:
        return Section(title, (Line("Ready, and every condition is as wanted.", Mood.GOOD),), Mood.GOOD)
    if not cluster.conditions:
        text = "The operator has not reported on it: look whether the operator runs and watches this namespace."
        return Section(title, (Line(text, Mood.BAD),), Mood.BAD)
    rows = [_row(one, seen.now) for one in found]
    lines = (Line(clip(cluster.summary), Mood.PLAIN),) if cluster.summary else ()
    head = ("CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE")
    bad = any(one.type not in ACTIVITY for one in found)
    return Section(title, (*lines, table(head, rows, "conditions")), Mood.BAD if bad else Mood.WARNING)


def _row(one: Condition, now: datetime) -> Row:
    mood = Mood.WARNING if one.type in ACTIVITY else Mood.BAD
    return Row((one.type, one.status, one.reason, ago(one.since, now), clip(one.message)), mood)


def _nodesets(seen: Overview) -> Section:
    sets = sorted(seen.nodesets, key=lambda one: (_is_fine(one), one.name))
    if not sets:
        return Section("NodeSets: none", ())
    want, ready = sum(one.desired for one in sets), sum(one.ready for one in sets)
    title = f"NodeSets: {number(len(sets), 'NodeSet')}, {ready} of {number(want, 'node')} ready"
    rows = [
        Row(
            (one.name, *map(str, (one.desired, one.ready, one.draining, one.drained, one.down)), _why(one)),
            Mood.GOOD if _is_fine(one) else Mood.WARNING,
        )
        for one in sets
    ]
    counts = ("WANT", "READY", "DRAINING", "DRAINED", "DOWN")
    return Section(title, (table(("NODESET", *counts, "WHY"), rows, "NodeSets", numbers=counts, most=MOST_NODESETS),))


def _is_fine(one: NodeSetFacts) -> bool:
    return one.ready >= one.desired and not unwanted(one.conditions)


def _why(one: NodeSetFacts) -> str:
    """Why a NodeSet is not as wanted: its drain, else what is wrong, else its summary."""
    found = unwanted(one.conditions)
    draining = next((each.message for each in found if each.type == "Draining" and each.message), "")
    wrong = next((each.message for each in found if each.type not in {*ACTIVITY, "Ready", "Available"}), "")
    return clip(wrong or draining or one.summary)


def _hidden(seen: Overview) -> Sequence[Section]:
    lines = tuple(
        Line(clip(text, 600), Mood.WARNING) for text in (*((seen.silence,) if seen.silence else ()), *seen.hidden)
    )
    return (Section("Not seen", lines, Mood.WARNING),) if lines else ()


def _condition(cluster: ClusterFacts, kind: str) -> Condition | None:
    return next((one for one in cluster.conditions if one.type == kind and one.status == "True"), None)


SOON_TOKEN: Final = timedelta(hours=24)
SOON_KEY: Final = timedelta(days=14)
LATE: Final = 0.75
"""Part of a token's life after which it should have been renewed."""


def ends_soon(tokens: Iterable[TokenFacts], keys: Iterable[KeyFacts], now: datetime) -> Section:
    """Tokens and keys that end soon or have ended, the first end first.

    A Token that is renewed is shown only if it was not: past three quarters of its life, where half is the time. One
    that a call of this program has made for itself ends with the call, and is not shown.
    """
    ends: list[tuple[datetime, Row]] = []
    for token in tokens:
        why = "" if token.temporary else _why_ended(token, now)
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


def _why_ended(token: TokenFacts, now: datetime) -> str:
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
