"""Why jobs wait, counted by Slurm's reason, with what it means. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kubectl_slurm.facts.objects import ClusterFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.screen.blocks import Mood, Row, Section, table
from kubectl_slurm.screen.words import clip, number
from slurm_client.cli.reasons import in_words
from slurm_client.models import Job
from slurm_client.notation.arrays import ArrayTasks

MOST_REASONS: Final = 8
LONGEST_REASON: Final = 60

_NEVER: Final = frozenset({"DependencyNeverSatisfied", "InvalidAccount", "InvalidQOS", "JobLaunchFailure"})
"""Reasons of jobs that somebody must do something about."""


def reason(job: Job) -> str:
    """Slurm's word for why a job waits, without what follows it."""
    word = job.state_reason.partition(",")[0].strip()
    return clip(word, LONGEST_REASON) or "None"


def tasks(job: Job) -> int:
    """How many jobs a pending record stands for."""
    if not job.array_tasks:
        return 1
    try:
        return max(1, sum(map(len, ArrayTasks.parse(job.array_tasks).spans)))
    except ValueError:
        return 1


def section(slurm: SlurmPicture | None, cluster: ClusterFacts) -> Section:
    """The queue; without Slurm, as the operator counted it last."""
    if slurm is None:
        if cluster.pending is None:
            return Section("Queue: not known")
        counts, running, pending = Counter(dict(cluster.waiting)), cluster.running or 0, cluster.pending
        tail = ", by the operator's last count"
    else:
        waiting = [job for job in slurm.jobs if job.is_pending]
        counts = Counter()
        for job in waiting:
            counts[reason(job)] += tasks(job)
        running, pending, tail = sum(job.is_running for job in slurm.jobs), sum(counts.values()), ""
    title = f"Queue: {number(running, 'job')} running, {pending} pending{tail}"
    if not counts:
        return Section(title)
    rows = [
        Row((word, str(jobs), in_words(word)), Mood.WARNING if word in _NEVER else Mood.PLAIN)
        for word, jobs in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]
    shown = table(("REASON", "JOBS", "WHAT IT MEANS"), rows, "reasons", numbers=("JOBS",), most=MOST_REASONS)
    return Section(title, (shown,))
