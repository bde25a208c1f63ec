"""Kinds of real jobs that users submit, as data: options of sbatch, what the script does, and what follows.

Each job writes into a file of its own on a volume that all nodes share: who started, where, as which attempt, and who
ended (:mod:`tests.campaign.witness` reads it). A job that nobody harms ends as COMPLETED.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from slinky_operator.slurm.naming import SLURM_UID

WITNESS: Final = "/witness"
"""Where jobs see the volume."""

TEAM: Final = "campaign-team"
"""Namespace of SlurmJobs."""

NODES: Final = {"a": 3, "b": 2}
"""NodeSets at rest, with their replicas; partition `both` has both, and each has its own."""

PARTITIONS: Final = ("both", "both", *NODES)

RESERVATION: Final = "reservationname={mark}"
"""What names the reservation of a job, which is called like its mark."""

RESERVED: Final = (
    *("scontrol", "create", "reservation", RESERVATION, "starttime=now", "duration=60", "nodes={node}"),
    "flags=ignore_jobs",
    # By whom the campaign submits.
    f"users={SLURM_UID}",
)
"""Makes a reservation of one node."""

DELETED: Final = ("scontrol", "delete", RESERVATION)
ENDS_NOW: Final = ("scontrol", "update", RESERVATION, "endtime=now")


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job.

    Attributes
    ----------
    options
        Of sbatch, in the form of `str.format`; values are those that were drawn.
    seconds
        How long it runs, least and most.
    tasks
        How many parts write start and end: tasks of an array.
    body
        Lines of the script before it sleeps.
    then
        Commands that follow, by seconds after the submission; ``{job}`` is its id, ``{mark}`` its name.
    weight
        How often, compared with others.
    """

    options: tuple[str, ...] = ()
    seconds: tuple[int, int] = (1, 5)
    tasks: int = 1
    body: str = ""
    then: Mapping[float, tuple[str, ...]] = field(default_factory=dict)
    weight: int = 2
    partition: str = ""
    cancelled: bool = False
    """Whether the campaign itself ends it."""
    as_object: bool = False
    """Whether it is a SlurmJob; all others go by sbatch."""
    reservation: tuple[str, ...] = ()
    """The command that makes its reservation before it is submitted, in the same form as `options`."""

    def draw(self, random: Random) -> dict[str, Any]:
        least, most = self.seconds
        name, count = random.choice(sorted(NODES.items()))
        return {
            "seconds": random.randint(least, most),
            "partition": self.partition or random.choice(PARTITIONS),
            "node": f"{name}-{random.randrange(count)}",
        }


KINDS: Final[Mapping[str, JobKind]] = {
    "short": JobKind(seconds=(1, 4), weight=5),
    "long": JobKind(seconds=(20, 60), weight=4),
    "not requeueable": JobKind(("--no-requeue",), seconds=(5, 30), weight=3),
    "requeueable": JobKind(("--requeue",), seconds=(5, 30), weight=2),
    "array": JobKind(("--array=1-3",), seconds=(2, 10), tasks=3),
    "two nodes": JobKind(("--nodes=2", "--ntasks=2"), seconds=(5, 20)),
    "ignores TERM": JobKind(seconds=(10, 40), body="trap '' TERM"),
    "held": JobKind(("--hold",), seconds=(2, 10), then={12: ("scontrol", "release", "{job}")}),
    "suspended": JobKind(
        seconds=(15, 25), then={6: ("scontrol", "suspend", "{job}"), 20: ("scontrol", "resume", "{job}")}, weight=1
    ),
    "on a named node": JobKind(("--nodelist={node}",), seconds=(3, 20), partition="both"),
    "not on a named node": JobKind(("--exclude={node}",), seconds=(3, 20), partition="both"),
    "heterogeneous": JobKind(
        ("--cpus-per-task=1", ":", "--ntasks=1", "--mem=20", "--partition=both"), (5, 20), weight=1
    ),
    "after another": JobKind(("--dependency=afterany:{previous}",), seconds=(2, 10)),
    "with a feature": JobKind(("--constraint=fast",), seconds=(3, 15), partition="both", weight=1),
    "with a licence": JobKind(("--licenses=seat:1",), seconds=(3, 15), weight=1),
    "with GRES": JobKind(("--gres=craft:1",), seconds=(3, 15), partition="both", weight=1),
    "in a reservation": JobKind(
        ("--reservation={mark}",),
        (3, 20),
        partition="both",
        reservation=RESERVED,
        then={30: DELETED},
        weight=1,
    ),
    # Slurm ends it with its reservation, which it looks at twice in a minute.
    "in a reservation that ends": JobKind(
        ("--reservation={mark}",),
        (45, 55),
        partition="both",
        reservation=RESERVED,
        then={8: ENDS_NOW},
        weight=1,
    ),
    "SlurmJob": JobKind(seconds=(3, 25), as_object=True, weight=4),
    "cancelled": JobKind(seconds=(60, 60), then={10: ("scancel", "{job}")}, cancelled=True, weight=1),
}


def command(name: str, values: Mapping[str, Any], mark: str, previous: str = "") -> list[str]:
    """The sbatch of a step; the script comes by its input.

    Parameters
    ----------
    previous
        Job that was accepted before it; without one, it depends on none.
    """
    options = [one.format(**values, mark=mark, previous=previous) for one in KINDS[name].options]
    options = [one for one in options if previous or not one.startswith("--dependency")]
    return [
        *("sbatch", "--parsable", f"--job-name={mark}", f"--partition={values['partition']}"),
        *("--output=/dev/null", "--chdir=/tmp", "--ntasks=1", "--cpus-per-task=1", "--mem=20", "--time=10"),
        *options,
    ]


def reservation(name: str, values: Mapping[str, Any], mark: str) -> list[str]:
    """The command that makes the reservation of a step; empty if its job is in none."""
    return [one.format(**values, mark=mark) for one in KINDS[name].reservation]


def is_cancelled(name: str) -> bool:
    """Whether the campaign itself ends jobs of this kind; pods are of none of these."""
    return name in KINDS and KINDS[name].cancelled


def slurm_job(name: str, values: Mapping[str, Any], mark: str, cluster: Mapping[str, str]) -> dict[str, Any]:
    """The SlurmJob of a step.

    Parameters
    ----------
    cluster
        Its Cluster: ``clusterName`` and ``clusterNamespace``.
    """
    asked = {"partition": values["partition"], "output": "/dev/null", "script": script(name, values, mark)}
    limits = {"tasks": 1, "memory": "20Mi"}
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "SlurmJob",
        "metadata": {"name": mark, "namespace": TEAM},
        "spec": {**cluster, **asked, **limits},
    }


def script(name: str, values: Mapping[str, Any], mark: str) -> str:
    """The script of a step.

    What it writes is one line at a time, appended: tasks of one job share the file.
    """
    return f"""\
#!/bin/sh
{KINDS[name].body}
say() {{
    printf '%s %s %s %s %s %s\\n' "$1" "${{SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}}" "${{SLURM_ARRAY_TASK_ID:--}}" \\
        "${{SLURM_RESTART_COUNT:-0}}" "$SLURMD_NODENAME" "$(date +%s.%N)" >> {WITNESS}/{mark}
}}
say start
sleep {values["seconds"]}
say end
"""
