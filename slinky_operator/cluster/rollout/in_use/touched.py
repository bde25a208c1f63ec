"""Whether a change takes away anything that jobs or reservations may refer to. Pure.

Such a change is tried with a copy of the live jobs (`preflight.jobs_copy`), in addition to the rules of this package:
slurmctld knows more of its jobs than it shows. All other changes need no such trial.
"""

from __future__ import annotations

from typing import Final

from slinky_operator.cluster.rollout.in_use import licenses, static_nodes
from slinky_operator.cluster.rollout.in_use.removals import changed_gres
from slinky_operator.slurm.conf.syntax.parsed import ConfFiles

_TOPOLOGY_FILES: Final = ("topology.conf", "topology.yaml")
_TOPOLOGY_KEYS: Final = ("topologyparam", "topologyplugin")


def touches_jobs(running: ConfFiles, candidate: ConfFiles) -> bool:
    """Whether jobs may refer to something that the candidate no longer has, or has less of.

    Parameters
    ----------
    running
        The files that slurmctld runs.
    candidate
        The files that it is to get, with what stays for now.
    """
    if not running.files:
        return False
    old, new = running.lines, candidate.lines
    return (
        not old.partitions.keys() <= new.partitions.keys()
        or bool(static_nodes.changed_lines(old, new))
        or bool(licenses.lowered(old, new))
        or any(changed_gres(running, candidate))
        or _topology(running) != _topology(candidate)
    )


def _topology(conf: ConfFiles) -> tuple[object, ...]:
    return (*map(conf.files.get, _TOPOLOGY_FILES), *map(conf.lines.keys.get, _TOPOLOGY_KEYS))
