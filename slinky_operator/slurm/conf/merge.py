"""The operator's keys and the user's `extraConf`: each key once, the user's value where both have one.

Three kinds of keys are not simply replaced:

- those by which the daemons find and trust each other are the operator's, and refused;
- those that begin a line of their own (`NodeName`, `PartitionName`, …) have fields in the API, and are refused;
- those that are lists to which the operator must add something hold both sides' items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from slinky_operator.slurm.conf.directives import Directive, TextProblem

_OWN: Final = """
ClusterName SlurmctldHost SlurmctldAddr ControlMachine ControlAddr BackupController BackupAddr SlurmctldPort SlurmdPort
SlurmUser SlurmdUser AuthType AuthInfo AuthAltTypes AuthAltParameters CredType StateSaveLocation SlurmdSpoolDir
SlurmctldPidFile SlurmdPidFile SlurmctldLogFile SlurmdLogFile MaxNodeCount
SlurmctldPrimaryOnProg SlurmctldPrimaryOffProg
"""

OWN_KEYS: Final = frozenset(_OWN.lower().split())
"""Keys by which the daemons find and trust each other, or on which the operator's pods are built."""

LINE_KEYS: Final = {
    "nodename": "use spec.nodes, or a NodeSet",
    "nodeset": "a NodeSet has one already",
    "partitionname": "use spec.partitions, or a NodeSet's spec.partition",
    "downnodes": "use the state of the node",
    "frontendname": "front ends are not supported",
    "include": "use spec.configFiles",
}
"""Keys that begin a line of their own, and what to use instead."""

LIST_KEYS: Final = frozenset(key.lower() for key in ("SlurmctldParameters", "GresTypes"))
"""Lists separated by commas to which both sides add."""

REPEATABLE: Final = frozenset(
    key.lower() for key in ("Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld", "TaskProlog", "TaskEpilog")
)
"""Keys that may be given several times."""


def check_extra(words: Iterable[Directive]) -> TextProblem | None:
    """Whether `extraConf` keeps to what is the user's to decide."""
    seen: set[str] = set()
    for word in words:
        if word.folded in LINE_KEYS:
            return TextProblem(f"{word.key} cannot be given here: {LINE_KEYS[word.folded]}")
        if word.folded in OWN_KEYS:
            return TextProblem(f"{word.key} is written by the operator")
        if word.operator:
            return TextProblem(f"{word.key}{word.operator}= is not understood here; use =")
        if word.folded in seen and word.folded not in REPEATABLE:
            return TextProblem(f"{word.key} is given twice")
        seen.add(word.folded)
    return None


def merge(ours: Sequence[Directive], extra: Sequence[Directive]) -> tuple[tuple[Directive, ...], tuple[Directive, ...]]:
    """Put both together.

    Parameters
    ----------
    ours
        The operator's, in the order in which they are to stand.
    extra
        The user's, checked.

    Returns
    -------
    tuple
        The operator's lines with the user's values in place, and the user's further ones in order of key.
    """
    by_key: dict[str, list[Directive]] = {}
    for word in extra:
        by_key.setdefault(word.folded, []).append(word)
    merged: list[Directive] = []
    for word in ours:
        theirs = by_key.pop(word.folded, None)
        if theirs is None:
            merged.append(word)
        elif word.folded in LIST_KEYS:
            merged.append(Directive(word.key, _union(word.value, theirs[0].value)))
        else:
            merged.extend(Directive(word.key, their.value) for their in theirs)
    rest = tuple(word for key in sorted(by_key) for word in by_key[key])
    return tuple(merged), rest


def _union(ours: str, theirs: str) -> str:
    items = [item for item in ours.split(",") if item]
    known = {item.lower() for item in items}
    for item in theirs.split(","):
        if item and item.lower() not in known:
            items.append(item)
            known.add(item.lower())
    return ",".join(items)
