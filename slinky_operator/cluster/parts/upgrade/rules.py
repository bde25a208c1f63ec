"""Which release a daemon may get beside those of the others. Pure.

Each rule answers with the reason why not, and with what to do; empty if the daemon may have the release.
"""

from __future__ import annotations

from collections.abc import Mapping

from slinky_operator.cluster.observe import Snapshot
from slinky_operator.reconcile.text import named
from slinky_operator.slurm.releases import WIDEST, Release, problem_of_step


def of_slurmdbd(old: Release | None, new: Release, field: str) -> str:
    """Whether slurmdbd may read the tables of the one that runs.

    Parameters
    ----------
    field
        Where its image is set.
    """
    problem = "" if old is None else problem_of_step(old, new)
    return f"{field} has slurmdbd of Slurm {new}. {problem}" if problem else ""


def of_slurmctld(new: Release, slurmdbd: Release | None, nodes: Mapping[str, Release]) -> str:
    """Whether slurmctld may talk to its slurmdbd, and to the slurmds that are registered.

    Parameters
    ----------
    nodes
        Releases of the slurmds, by node.
    """
    series = _series(new)
    if slurmdbd is not None and new.series > slurmdbd.series:
        return (
            f"slurmctld of Slurm {new} cannot talk to slurmdbd of Slurm {slurmdbd}. Name an image of Slurm {series} in "
            "spec.accounting.image too"
        )
    lost = sorted(name for name, release in nodes.items() if new.number - release.number > WIDEST)
    if lost:
        return (
            f"slurmctld of Slurm {new} cannot talk to the slurmds of {named(lost)}, which are more than {WIDEST} "
            "releases older. Update their NodeSets first"
        )
    return ""


def of_caller(program: str, new: Release, slurmctld: Release | None, field: str) -> str:
    """Whether slurmrestd, or the commands of login pods, may talk to slurmctld.

    Parameters
    ----------
    field
        Where the image is set.
    """
    if slurmctld is None:
        return ""
    is_newer = new.series > slurmctld.series
    if not is_newer and slurmctld.number - new.number <= WIDEST:
        return ""
    why = "which is older" if is_newer else f"which is more than {WIDEST} releases newer"
    advice = f"Name an image of Slurm {_series(slurmctld)}"
    if is_newer:
        advice += f", or one of Slurm {_series(new)} in spec.controller.image too"
    return f"{field} has {program} of Slurm {new}, which cannot talk to slurmctld of Slurm {slurmctld}, {why}. {advice}"


def slurmds(snapshot: Snapshot) -> dict[str, Release]:
    """Releases of the slurmds that are registered, by node."""
    nodes = snapshot.slurm.nodes if snapshot.slurm is not None else {}
    return {name: found for name, one in nodes.items() if (found := Release.read(one.version or "")) is not None}


def _series(release: Release) -> str:
    return f"{release.year:02}.{release.month:02}"
