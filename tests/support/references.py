"""What jobs refer to in a configuration, what becomes of them when it is taken away, and which rule guards them.

One table: `tests/integration/slurm_conf/test_references.py` tries each of its rows with a pending and a running job on
real daemons of both releases, and docs/development/reliability-journal.md shows it. The configurations before and
after the changes are here too. Starting daemons and looking at the jobs is left to the test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Fate(Enum):
    """What happens to a job."""

    SAFE = "as before"
    ENDS = "ends, `NODE_FAIL`"
    AGAIN = "is requeued"
    HELD = "is held"
    WAITS = "waits"
    BARE = "starts without it"
    LOCKED = "can no longer be changed"


OLD, NEW = "24.11", "26.05"
RELEASES: Final = (OLD, NEW)


@dataclass(frozen=True)
class Rule:
    """What the operator does about a change."""

    text: str
    guards: bool = True
    """Whether it names the jobs, or the reservation, that would be harmed, and the change waits for them."""

    hidden: frozenset[str] = frozenset()
    """Releases in which no answer of Slurm shows that the running job refers to it."""


@dataclass(frozen=True, eq=False)
class Row:
    """Something that jobs refer to, and a change of it."""

    what: str
    change: str
    words: str
    """Options of sbatch by which a job refers to it."""

    pending: Fate | Mapping[str, Fate]
    running: Fate | Mapping[str, Fate]
    rule: Rule
    """What the operator does."""

    has: str = ""
    """What the job has, as Slurm shows it: a license, a kind of GRES."""

    or_held: bool = False
    """Whether the pending job may be held instead: it depends on the moment at which the scheduler looks."""

    @property
    def reservation(self) -> str:
        """The reservation by which a job refers to it; empty if there is none."""
        return self.words.split()[0].removeprefix("--reservation=") if self.words.startswith("--reservation=") else ""

    def fates(self, release: str) -> tuple[frozenset[Fate], frozenset[Fate]]:
        """What may become of the pending job, and of the running one."""
        pending, running = (one if isinstance(one, Fate) else one[release] for one in (self.pending, self.running))
        return frozenset({pending, Fate.HELD} if self.or_held else {pending}), frozenset({running})


ON_NODE: Final = Rule("waits, `NodesInUse`: jobs on the node")
NAMED: Final = Rule("waits, `NodesInUse`: jobs that name the node")
CONSTRAINED: Final = Rule("waits, `NodesInUse`: constraints of pending jobs")
CLOSED: Final = Rule("closed first; waits, `PartitionInUse`")
HIDDEN: Final = Rule("the same; a running job of 24.11 by the trial with a copy of the jobs", hidden=frozenset({OLD}))
COUNTED: Final = Rule("waits, `WaitingForJobs`: requests of pending jobs")
KINDS: Final = Rule("waits, `GresInUse`")
RESERVED_NODES: Final = Rule("waits, `NodesInUse`: nodes of reservations")
RESERVED_PARTITION: Final = Rule("waits, `PartitionInUse`: partitions of reservations")
RESERVED_LICENSE: Final = Rule("waits, `WaitingForJobs`: licenses of reservations")
WANTED: Final = Rule("applied: it is what the administrator wants", guards=False)

ROWS: Final = (
    Row("node by name", "removed, job on it", "-C on", Fate.HELD, Fate.AGAIN, ON_NODE),
    Row("node by name", "removed, required", "-w required", Fate.ENDS, Fate.ENDS, NAMED),
    Row("node by name", "renamed, required", "-w renamed", Fate.ENDS, Fate.ENDS, NAMED),
    Row(
        "node by name",
        "removed, one of more names than nodes",
        "-N1 -w listed,listed-gone",
        Fate.ENDS,
        Fate.ENDS,
        NAMED,
    ),
    Row("node by name", "removed, excluded", "-C all -x excluded", Fate.LOCKED, Fate.LOCKED, NAMED),
    Row("core layout", "fewer CPUs", "-N1 -w fewer,fewer-too", Fate.SAFE, Fate.AGAIN, ON_NODE),
    Row("core layout", "more CPUs", "-N1 -w more,more-too", Fate.SAFE, Fate.AGAIN, ON_NODE),
    Row("core layout", "other sockets, as many cores", "-w sockets -n1", Fate.SAFE, Fate.SAFE, ON_NODE),
    Row("core layout", "less memory", "-w memory --mem=200", Fate.HELD, Fate.SAFE, WANTED),
    Row("partition", "removed", "-p removed -C crowd", Fate.ENDS, Fate.ENDS, CLOSED),
    Row("partition", "renamed", "-p renamed -C crowd", Fate.ENDS, Fate.ENDS, CLOSED),
    Row(
        "partition",
        "removed, first of a list",
        "-p first,stays -C crowd",
        {OLD: Fate.ENDS, NEW: Fate.SAFE},
        Fate.ENDS,
        CLOSED,
    ),
    Row(
        "partition",
        "removed, second of a list",
        "-p stays,second -C crowd",
        {OLD: Fate.ENDS, NEW: Fate.SAFE},
        {OLD: Fate.ENDS, NEW: Fate.SAFE},
        HIDDEN,
    ),
    Row("partition", "without the node that is required", "-p shrunk -w left", Fate.HELD, Fate.SAFE, WANTED),
    Row("partition", "shorter `MaxTime`", "-p shorter -t 10 -C all", Fate.WAITS, Fate.SAFE, WANTED),
    Row("partition", "`AllowGroups` without the user's", "-p closed -C all", Fate.SAFE, Fate.SAFE, WANTED),
    Row(
        "license", "removed", "-L removed:1 -C all", {OLD: Fate.BARE, NEW: Fate.HELD}, Fate.SAFE, COUNTED, has="removed"
    ),
    Row(
        "license", "renamed", "-L renamed:1 -C all", {OLD: Fate.BARE, NEW: Fate.HELD}, Fate.SAFE, COUNTED, has="renamed"
    ),
    Row("license", "fewer than asked", "-L fewer:3 -C all", {OLD: Fate.WAITS, NEW: Fate.HELD}, Fate.SAFE, COUNTED),
    Row("GRES", "kind removed", "-C tape --gres=tape:1", Fate.BARE, Fate.SAFE, KINDS, has="tape"),
    Row("GRES", "fewer than asked", "-w gpus --gres=gpu:a:2", Fate.WAITS, Fate.AGAIN, ON_NODE, or_held=True),
    Row("GRES", "type renamed", "-w types --gres=gpu:a:1", Fate.WAITS, Fate.AGAIN, ON_NODE, or_held=True),
    Row(
        "feature",
        "of no node any more",
        "-C lost",
        Fate.HELD,
        Fate.SAFE,
        CONSTRAINED,
    ),
    Row(
        "feature",
        "one of several alternatives",
        "-C lost-too|all",
        Fate.SAFE,
        Fate.SAFE,
        CONSTRAINED,
    ),
    Row(
        "reservation",
        "its only node removed",
        "--reservation=node",
        Fate.HELD,
        Fate.HELD,
        RESERVED_NODES,
    ),
    Row(
        "reservation",
        "one of its nodes removed",
        "--reservation=nodes -C paired",
        Fate.SAFE,
        Fate.SAFE,
        RESERVED_NODES,
    ),
    Row(
        "reservation",
        "its partition removed",
        "--reservation=partition -C parted",
        Fate.HELD,
        Fate.ENDS,
        RESERVED_PARTITION,
    ),
    Row(
        "reservation",
        "its license removed",
        "--reservation=license -C licensed",
        Fate.HELD,
        Fate.SAFE,
        RESERVED_LICENSE,
    ),
)

ACCOUNT_ROWS: Final = (
    Row("account", "`AllowAccounts` without it", "-p accounts -A shut", Fate.WAITS, Fate.SAFE, WANTED),
    Row("QOS", "`AllowQos` without it", "-p allowed -A lab --qos=wide", Fate.WAITS, Fate.SAFE, WANTED),
    Row("QOS", "partition without its `QOS`", "-p own -A lab", Fate.SAFE, Fate.SAFE, WANTED),
)
"""Rows that need a slurmdbd."""

TOPOLOGY_ROW: Final = Row(
    "topology",
    "switch renamed",
    "--switches=1",
    Fate.SAFE,
    Fate.SAFE,
    Rule("applied: by the trial with a copy", guards=False),
)
"""A row that concerns every node."""


def documented() -> str:
    """The table of the documentation."""
    lines = ["| jobs refer to | the change | a pending job | a running job | the operator |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.what} (`{_shown(row)}`) | {row.change} | {_said(row.pending, or_held=row.or_held)} |"
        f" {_said(row.running)} | {row.rule.text} |"
        for row in (*ROWS, *ACCOUNT_ROWS, TOPOLOGY_ROW)
    ]
    return "\n".join(lines)


def _shown(row: Row) -> str:
    return row.words.replace(" -C all", "").replace(" -C crowd", "").replace("|", "\\|")


def _said(fate: Fate | Mapping[str, Fate], *, or_held: bool = False) -> str:
    if isinstance(fate, Fate):
        return f"{fate.value}, or {Fate.HELD.value}" if or_held else fate.value
    same = len(set(fate.values())) == 1
    return next(iter(fate.values())).value if same else "; ".join(f"{key}: {one.value}" for key, one in fate.items())
