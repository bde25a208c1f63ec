"""What a conformance run found: checks from facts, and the table of all results. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kubectl_slurm.facts.objects import PodFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.screen.blocks import Mood, Row, Screen, Section, table
from kubectl_slurm.screen.words import clip, named, number
from slurm_client.models import Node

MOST_PARTITIONS: Final = 20

IDENTITY: Final = 'test "$(id -un)" = "$SLURM_JOB_USER"'
"""Whether slurmd's node has the user under the name that slurmctld has."""

CORES: Final = 'test "$(nproc)" -le "${SLURM_CPUS_ON_NODE:-1}"'
"""Whether the job is confined to its CPUs."""

GPUS: Final = 'IFS=,; set -- $CUDA_VISIBLE_DEVICES; test "$#" = 1'
"""Whether a job with one GPU sees one."""


class Verdict(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "FAILED"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Result:
    """One check."""

    name: str
    verdict: Verdict
    detail: str = ""


def passed(results: Iterable[Result]) -> bool:
    """Whether nothing failed."""
    return all(one.verdict is not Verdict.FAILED for one in results)


def names(nodes: Iterable[Node], pods: Sequence[PodFacts]) -> Result:
    """Each ready pod is a node of its host name in Slurm, and each node that a NodeSet's pod would make has its pod."""
    title = "pods and Slurm nodes have the same names"
    if not pods:
        return Result(title, Verdict.SKIPPED, "no NodeSet has a pod")
    known = {node.name: node for node in nodes}
    missing = [pod.name for pod in pods if pod.ready and not pod.deleting and (pod.slurm_node or pod.name) not in known]
    mine = {pod.slurm_node or pod.name for pod in pods}
    lost = [
        name for name, node in known.items() if name not in mine and node.is_dynamic and node.is_usable and node.extra
    ]
    if missing:
        return Result(title, Verdict.FAILED, f"ready pods that Slurm does not know: {named(missing)}")
    if lost:
        return Result(title, Verdict.FAILED, f"usable nodes without a pod in this namespace: {named(lost)}")
    return Result(title, Verdict.PASSED, number(len(pods), "pod"))


def partitions(slurm: SlurmPicture) -> list[str]:
    """Partitions that take jobs and have a node that may start one now."""
    usable = {name for node in slurm.nodes if node.is_usable and node.is_idle for name in node.partitions}
    return sorted(one.name for one in slurm.partitions if one.is_up and one.name in usable)[:MOST_PARTITIONS]


def confined_partition(slurm: SlurmPicture, nodesets: Mapping[str, str]) -> str:
    """A partition whose idle nodes all keep jobs to their CPUs; empty if there is none.

    Parameters
    ----------
    nodesets
        Nodes of NodeSets with ``confinement: Constrain``, each with its NodeSet.
    """
    for name in partitions(slurm):
        idle_ones = [node.name for node in slurm.nodes if node.is_idle and node.is_usable and name in node.partitions]
        if idle_ones and all(each in nodesets for each in idle_ones):
            return name
    return ""


def gpu_partition(slurm: SlurmPicture) -> str:
    """A partition with an idle node that has GPUs; empty if there is none."""
    found = {name for node in slurm.nodes if node.is_idle and "gpu" in node.gres for name in node.partitions}
    return next(iter(sorted(found & set(partitions(slurm)))), "")


def idle(slurm: SlurmPicture) -> str:
    """A node that may be drained for a moment; empty if there is none."""
    return next((node.name for node in slurm.nodes if node.is_idle and node.is_usable), "")


def screen(results: Sequence[Result]) -> Screen:
    """The table of all checks."""
    moods = {Verdict.PASSED: Mood.GOOD, Verdict.FAILED: Mood.BAD, Verdict.SKIPPED: Mood.QUIET}
    rows = [Row((one.name, one.verdict.value, clip(one.detail)), moods[one.verdict]) for one in results]
    failed = sum(one.verdict is Verdict.FAILED for one in results)
    ran = sum(one.verdict is Verdict.PASSED for one in results)
    title = f"{number(ran, 'check')} passed, {failed} failed, {len(results) - ran - failed} skipped"
    shown = table(("CHECK", "RESULT", "DETAIL"), rows, "checks", most=100)
    return (Section(title, (shown,), Mood.BAD if failed else Mood.GOOD),)
