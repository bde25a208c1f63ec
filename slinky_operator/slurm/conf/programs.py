"""Programs of slurm.conf that a preflight looks for in the image of the daemon that runs them. Pure.

slurmctld and slurmd read a path without looking at it. A `Prolog` or `Epilog` that is not there drains each node with
its first job, and a `PrologSlurmctld` keeps jobs from starting. These are looked for each time; the others, which end
no job, when they are new: a Cluster that has lived with one goes on.

Not looked for are names without a path, which Slurm distributes itself, and the operator's own program for health
checks, which it distributes so; patterns; and paths below a volume, of which
the preflight's pod has none. Machines outside Kubernetes and login pods have images, and files, of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from slinky_operator.slurm.conf.keys.rules import rule_of
from slinky_operator.slurm.conf.syntax.parsed import Parsed
from slinky_operator.slurm.health_checks.programs import HEALTH_CHECK

_ALWAYS_BY_SLURMD: Final = ("prolog", "epilog")
_BY_SLURMD: Final = ("taskprolog", "taskepilog", "healthcheckprogram", "unkillablestepprogram", "rebootprogram")
_ALWAYS_BY_SLURMCTLD: Final = ("prologslurmctld",)
_BY_SLURMCTLD: Final = ("epilogslurmctld", "resvprolog", "resvepilog")

_PATTERN: Final = frozenset("*?[")
"""Characters by which Slurm takes a path for a pattern."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Paths to look for, each as `Key=/path`."""

    slurmctld: tuple[str, ...] = field(default=())
    slurmd: tuple[str, ...] = field(default=())


def programs(wanted: Parsed, live: Parsed) -> Programs:
    """The programs to look for before a configuration is applied.

    Parameters
    ----------
    wanted
        Its slurm.conf.
    live
        The one that slurmctld runs; what this has, too, is not new.
    """
    return Programs(
        tuple(_of(wanted, live, _ALWAYS_BY_SLURMCTLD, _BY_SLURMCTLD)),
        tuple(_of(wanted, live, _ALWAYS_BY_SLURMD, _BY_SLURMD)),
    )


def not_below(found: Iterable[str], folders: Iterable[str]) -> tuple[str, ...]:
    """Those of the programs that are not below one of these folders, where volumes are mounted."""
    roots = [f"{folder.rstrip('/')}/" for folder in folders]
    return tuple(one for one in found if not any(one.partition("=")[2].startswith(root) for root in roots))


def _of(wanted: Parsed, live: Parsed, always: Iterable[str], if_new: Iterable[str]) -> Iterator[str]:
    for key, values in (
        *((alway, wanted.keys.get(alway, ())) for alway in always),
        *(
            (one, [value for value in wanted.keys.get(one, ()) if value not in live.keys.get(one, ())])
            for one in if_new
        ),
    ):
        for value in values:
            path, rule = value.strip('"').split(None, 1)[0] if value.strip('"').strip() else "", rule_of(key)
            if path.startswith("/") and path != HEALTH_CHECK and not _PATTERN & {*path}:
                yield f"{key if rule is None else rule.name(key)}={path}"
