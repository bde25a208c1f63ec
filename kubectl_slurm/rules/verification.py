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

GPUS: Final = """\
found=${CUDA_VISIBLE_DEVICES-${ROCR_VISIBLE_DEVICES-${ZE_AFFINITY_MASK-$SLURM_JOB_GPUS}}}
IFS=,; set -- $found; test "$#" = 1"""
"""Whether a job with one GPU is shown one, by the variables of NVIDIA, AMD and Intel, or by Slurm's own."""

DEVICES: Final = """\
n=0
for one in /dev/nvidia[0-9]* /dev/dri/renderD*; do
  if [ -c "$one" ] && (exec 3< "$one") 2> /dev/null; then n=$((n + 1)); fi
done
test "$n" = 1"""
"""Whether a job with one GPU can open the device of one, and of no other."""

REASON: Final = "kubectl slurm verify"
"""Why a node is drained by this run, before the name of the user."""

DRAINED: Final = "nodeset.slinky.slurm.net/Drained"
"""Condition of a pod that says who drained its node, and why."""

MISSING: Final = "none"
"""What is said of a user that a daemon does not know."""


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


@dataclass(frozen=True, slots=True)
class User:
    """What a daemon's host knows of a user: ids, and those of all groups."""

    uid: str = ""
    gid: str = ""
    groups: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """As it is shown."""
        return f"uid {self.uid}, gid {self.gid}, groups {','.join(self.groups)}" if self.uid else "unknown"


def user_of(said: str) -> User:
    """A user by a line of passwd and a line with the ids of groups; without ids if there is none."""
    line, _, groups = said.strip().partition("\n")
    fields = line.split(":")
    if len(fields) < 4 or groups.strip() == MISSING:  # noqa: PLR2004 - name, password, uid, gid
        return User()
    return User(fields[2], fields[3], tuple(sorted(groups.split(), key=lambda one: (len(one), one))))


def alike(title: str, name: str, found: Mapping[str, User]) -> Result:
    """Whether all daemons know a user, and the same of them."""
    ways = {user: [daemon for daemon, each in found.items() if each == user] for user in found.values()}
    if len(ways) == 1 and User() not in ways:
        return Result(title, Verdict.PASSED, f"{name}: {next(iter(ways)).shown} in {number(len(found), 'daemon')}")
    text = "; ".join(f"{named(daemons)}: {user.shown}" for user, daemons in ways.items())
    return Result(title, Verdict.FAILED, f"{name}: {text}")


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


def _runs_jobs(node: Node) -> bool:
    """Whether a batch job may start on a node now; none ever does where no slurmd is."""
    return node.is_idle and node.is_usable and not node.is_external


def partitions(slurm: SlurmPicture) -> list[str]:
    """Partitions that take jobs and have a node that may start one now."""
    usable = {name for node in slurm.nodes if _runs_jobs(node) for name in node.partitions}
    return sorted(one.name for one in slurm.partitions if one.is_up and one.name in usable)[:MOST_PARTITIONS]


def confined_partition(slurm: SlurmPicture, nodesets: Mapping[str, str]) -> str:
    """A partition whose idle nodes all keep jobs to their CPUs; empty if there is none.

    Parameters
    ----------
    nodesets
        Nodes of NodeSets with ``confinement: Constrain``, each with its NodeSet.
    """
    for name in partitions(slurm):
        idle_ones = [node.name for node in slurm.nodes if _runs_jobs(node) and name in node.partitions]
        if idle_ones and all(each in nodesets for each in idle_ones):
            return name
    return ""


def gpu_partition(slurm: SlurmPicture) -> str:
    """A partition with an idle node that has GPUs; empty if there is none."""
    found = {
        name
        for node in slurm.nodes
        if node.is_idle and not node.is_external and "gpu" in node.gres
        for name in node.partitions
    }
    return next(iter(sorted(found & set(partitions(slurm)))), "")


def without_gpu(slurm: SlurmPicture) -> str:
    """Why no job can ask for a GPU now."""
    having = [node.name for node in slurm.nodes if "gpu" in node.gres and not node.is_external]
    return f"no node with GPUs is idle: {named(having)}" if having else "no GPUs, not checked"


def confined_gpu_partition(slurm: SlurmPicture, nodesets: Mapping[str, str]) -> str:
    """A partition with GPUs whose idle nodes all keep jobs to their devices; see `confined_partition`."""
    able = [node for node in slurm.nodes if _runs_jobs(node)]
    for name in partitions(slurm):
        mine = [node for node in able if name in node.partitions and "gpu" in node.gres]
        if mine and all(node.name in nodesets for node in mine):
            return name
    return ""


def idle(slurm: SlurmPicture) -> str:
    """A node that may be drained for a moment; empty if there is none."""
    return next((node.name for node in slurm.nodes if _runs_jobs(node)), "")


def screen(results: Sequence[Result]) -> Screen:
    """The table of all checks."""
    moods = {Verdict.PASSED: Mood.GOOD, Verdict.FAILED: Mood.BAD, Verdict.SKIPPED: Mood.QUIET}
    rows = [Row((one.name, one.verdict.value, clip(one.detail)), moods[one.verdict]) for one in results]
    failed = sum(one.verdict is Verdict.FAILED for one in results)
    ran = sum(one.verdict is Verdict.PASSED for one in results)
    title = f"{number(ran, 'check')} passed, {failed} failed, {len(results) - ran - failed} skipped"
    shown = table(("CHECK", "RESULT", "DETAIL"), rows, "checks", most=100)
    return (Section(title, (shown,), Mood.BAD if failed else Mood.GOOD),)
