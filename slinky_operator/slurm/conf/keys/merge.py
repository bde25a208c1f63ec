"""The operator's keys and the user's `extraConf`: each key once, the user's value where both have one.

Four kinds of keys are not simply replaced:

- those by which the daemons find and trust each other are the operator's, and refused;
- those that begin a line of their own (`NodeName`, `PartitionName`, …) have fields in the API, and are refused;
- those that cannot be changed under running jobs are refused;
- those that are lists to which the operator must add something hold both sides' items.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from slinky_operator.slurm.conf.keys.rules import Kind, rule_of
from slinky_operator.slurm.conf.sources.scripts import SCRIPT_KEYS, check_named
from slinky_operator.slurm.conf.syntax.directives import Directive

LIST_KEYS: Final = frozenset(key.lower() for key in ("SlurmctldParameters", "GresTypes"))
"""Lists separated by commas to which both sides add."""

_REFUSALS: Final = {
    Kind.LINE: "cannot be given here: {why}",
    Kind.OWN: "is written by the operator",
    Kind.FIXED: "cannot be changed: {why}",
}

MOST_NAMED: Final = 10
"""Keys that are refused by name at a time."""

KEEP_STATES: Final = "keeppartstate"
"""Item of `ReconfigFlags`, in lower case."""

TOPOLOGIES: Final = frozenset({"topology.conf", "topology.yaml"})
"""Files either of which says how nodes are connected."""

_OF_ACCOUNTING: Final = frozenset(
    f"accountingstorage{part}" for part in ("type", "host", "port", "user", "pass", "loc")
)
"""Keys by which slurmctld finds slurmdbd, in lower case."""

REPEATABLE: Final = SCRIPT_KEYS
"""Keys that may be given several times: Slurm runs what each of them names."""


def check_extra(words: Sequence[Directive], files: Collection[str]) -> str | None:
    """Why `extraConf` goes beyond what is the user's to decide, or names files that are not there.

    Parameters
    ----------
    words
        As read.
    files
        Names of the files that stand beside slurm.conf.
    """
    seen: set[str] = set()
    reasons = list(dict.fromkeys(reason for word in words if (reason := _refused(word, files)) is not None))
    if reasons:
        # All at once: who brings a slurm.conf along has many.
        more = f"; and {len(reasons) - MOST_NAMED} more" if len(reasons) > MOST_NAMED else ""
        return "; ".join(reasons[:MOST_NAMED]) + more
    for word in words:
        if word.folded in seen and word.folded not in REPEATABLE:
            return f"{word.key} is given twice"
        seen.add(word.folded)
    return check_named(words, files)


def check_accounting(words: Sequence[Directive]) -> str | None:
    """Why `extraConf` cannot be used beside `spec.accounting`, which says where slurmdbd is."""
    found = next((word for word in words if word.folded in _OF_ACCOUNTING), None)
    return None if found is None else f"{found.key} is written by the operator, since the Cluster has spec.accounting"


def _refused(word: Directive, files: Collection[str]) -> str | None:
    rule = rule_of(word.folded)
    if rule is not None and rule.kind in _REFUSALS:
        return f"{word.key} {_REFUSALS[rule.kind].format(why=rule.why)}"
    if word.operator:
        return f"{word.key}{word.operator}= is not understood here; use ="
    if word.folded == "reconfigflags" and "keeppartinfo" in word.value.lower():
        return f"{word.key}=KeepPartInfo cannot be given: slurmctld would keep partitions whatever the spec says"
    if word.folded == "topologyplugin" and _needs_topology(word.value) and TOPOLOGIES.isdisjoint(files):
        # slurmctld would look for it for a minute before it gives up.
        return f"{word.key}={word.value} needs a file topology.conf; add it to spec.configFiles"
    return None


def _needs_topology(plugin: str) -> bool:
    return plugin.lower().rpartition("/")[2] in {"tree", "block"}


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


def without_states(words: Sequence[Directive]) -> tuple[Directive, ...]:
    """Take `KeepPartState` out of `ReconfigFlags`: with it slurmctld takes no state from its files."""
    found = []
    for word in words:
        if word.folded != "reconfigflags":
            found.append(word)
            continue
        items = [item for item in word.value.split(",") if item and item.lower() != KEEP_STATES]
        found += [Directive(word.key, ",".join(items))] if items else []
    return tuple(found)


def with_kept(
    ours: Sequence[Directive], rest: Sequence[Directive], kept: Mapping[str, Sequence[str]]
) -> tuple[tuple[Directive, ...], tuple[Directive, ...]]:
    """Put back the values of keys that stay as they run, in the places of those that are wanted.

    Parameters
    ----------
    ours, rest
        As `merge` gives them.
    kept
        Values by key in lower case; none for a key that stays away.
    """
    missing = sorted(kept.keys() - {word.folded for word in (*ours, *rest)})
    found = tuple(_kept_in(words, kept) for words in (ours, rest))
    added = [Directive(_written(key), value) for key in missing for value in kept[key]]
    return found[0], tuple(sorted((*found[1], *added), key=lambda word: word.folded))


def _kept_in(words: Sequence[Directive], kept: Mapping[str, Sequence[str]]) -> tuple[Directive, ...]:
    made: dict[str, list[Directive]] = {}
    for word in words:
        if word.folded not in kept:
            made.setdefault(word.folded, []).append(word)
        elif word.folded not in made:
            made[word.folded] = [Directive(word.key, value) for value in kept[word.folded]]
    return tuple(word for found in made.values() for word in found)


def _written(key: str) -> str:
    rule = rule_of(key)
    return key if rule is None else rule.name(key)


def _union(ours: str, theirs: str) -> str:
    items = [item for item in ours.split(",") if item]
    known = {item.lower() for item in items}
    for item in theirs.split(","):
        if item and item.lower() not in known:
            items.append(item)
            known.add(item.lower())
    return ",".join(items)
