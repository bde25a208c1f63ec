"""The operator's keys and the user's `extraConf`: each key once, the user's value where both have one.

Four kinds of keys are not simply replaced:

- those by which the daemons find and trust each other are the operator's, and refused;
- those that begin a line of their own (`NodeName`, `PartitionName`, …) have fields in the API, and are refused;
- those that cannot be changed under running jobs are refused;
- those that are lists to which the operator must add something hold both sides' items.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from slinky_operator.slurm.conf.directives import Directive
from slinky_operator.slurm.conf.scripts import SCRIPT_KEYS, check_named

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

FIXED_KEYS: Final = {
    "hashplugin": "steps of running jobs keep the old one, and their jobs would never end for Slurm",
}
"""Keys that no running cluster can change, and why; measured with Slurm 24.11 and 26.05."""

TOPOLOGIES: Final = frozenset({"topology.conf", "topology.yaml"})
"""Files either of which says how nodes are connected."""

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
    for word in words:
        reason = _refused(word, files)
        if reason is not None:
            return reason
        if word.folded in seen and word.folded not in REPEATABLE:
            return f"{word.key} is given twice"
        seen.add(word.folded)
    return check_named(words, files)


def _refused(word: Directive, files: Collection[str]) -> str | None:
    if word.folded in LINE_KEYS:
        return f"{word.key} cannot be given here: {LINE_KEYS[word.folded]}"
    if word.folded in OWN_KEYS:
        return f"{word.key} is written by the operator"
    if word.folded in FIXED_KEYS:
        return f"{word.key} cannot be changed: {FIXED_KEYS[word.folded]}"
    if word.operator:
        return f"{word.key}{word.operator}= is not understood here; use ="
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


def _union(ours: str, theirs: str) -> str:
    items = [item for item in ours.split(",") if item]
    known = {item.lower() for item in items}
    for item in theirs.split(","):
        if item and item.lower() not in known:
            items.append(item)
            known.add(item.lower())
    return ",".join(items)
