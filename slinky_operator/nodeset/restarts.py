"""Jobs that ended with a container that was started anew, and that Slurm does not miss.

When slurmd is killed, by the kernel for want of memory above all, the kubelet starts its container anew in the same
pod. Everything that ran in it has ended. Slurm gives a job up that the new slurmd does not have, but not one that had
just begun: that one it takes to be on its way to the node, and shows it RUNNING for half an hour. Told that the node is
DOWN, it takes the job back at once, and the node is IDLE again with the next word of its slurmd.

That word is only given where nothing else can be hurt: every job on the node is on no other, and began before the
container ended. Times are whole seconds, and from two clocks; but before a new slurmd has its first job, another second
has passed, so that both would have to be wrong. A job that began in the second in which the container ended is left to
Slurm.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from slinky_operator.nodeset import drain, identity
from slinky_operator.nodeset.facts import Pod
from slurm_client.models import Job, Node

LONGEST: Final = timedelta(hours=1)
"""How long after the end of a container Slurm may still show its jobs."""


def is_suspect(pod: Pod, node: Node, now: datetime) -> bool:
    """Whether Slurm shows work on a node whose container was started anew not long ago: then jobs must be looked at."""
    if pod.last_ended_at is None or now - pod.last_ended_at > LONGEST:
        return False
    return drain.is_busy(node) and not node.is_down


def has_lost_all(pod: Pod, node: Node | None, jobs: Collection[Job], owner: str) -> bool:
    """Whether all that Slurm shows on a node ended with its container.

    Parameters
    ----------
    pod
        The pod, as its kubelet reported last.
    node, jobs
        The record and the jobs that hold it, as Slurm gave them just now.
    owner
        Tag of the NodeSet.
    """
    if node is None or node.is_down or not jobs or not identity.is_tagged(node, owner):
        return False
    return all(_is_lost(job, node.name, pod.last_ended_at) for job in jobs)


def _is_lost(job: Job, node: str, ended_at: datetime | None) -> bool:
    if ended_at is None or job.start_time is None or tuple(job.nodes) != (node,):
        return False
    # One that is COMPLETING has been given up already.
    return job.state.base == "RUNNING" and not job.state.flags and job.start_time < ended_at
