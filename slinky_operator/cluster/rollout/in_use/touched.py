"""Whether a change takes away anything that jobs or reservations may refer to. Pure.

Such a change is tried with a copy of the live jobs (`preflight.jobs_copy`), in addition to the rules of this package:
slurmctld knows more of its jobs than it shows. All other changes need no such trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slinky_operator.cluster.rollout.in_use import licenses, static_nodes
from slinky_operator.cluster.rollout.in_use.removals import changed_gres
from slinky_operator.slurm.conf.render import SLURM_CONF
from slinky_operator.slurm.conf.syntax.parsed import Parsed, parse

_TOPOLOGY_FILES: Final = ("topology.conf", "topology.yaml")
_TOPOLOGY_KEYS: Final = ("topologyparam", "topologyplugin")


def touches_jobs(running: Mapping[str, str], candidate: Mapping[str, str]) -> bool:
    """Whether jobs may refer to something that the candidate no longer has, or has less of.

    Parameters
    ----------
    running
        The files that slurmctld runs.
    candidate
        The files that it is to get, with what stays for now.
    """
    if SLURM_CONF not in running:
        return False
    old, new = parse(running[SLURM_CONF]), parse(candidate[SLURM_CONF])
    return (
        not old.partitions.keys() <= new.partitions.keys()
        or bool(static_nodes.changed_lines(old, new))
        or bool(licenses.lowered(old, new))
        or any(changed_gres(running, candidate, old, new))
        or _topology(running, old) != _topology(candidate, new)
    )


def _topology(files: Mapping[str, str], conf: Parsed) -> tuple[object, ...]:
    return (*map(files.get, _TOPOLOGY_FILES), *map(conf.keys.get, _TOPOLOGY_KEYS))
