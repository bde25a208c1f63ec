"""Where a job with `spec.logs` writes, decided before its submission. Pure.

A job that names no file for its output gets one in the folder of the job log server, if every node on which it may run
has that folder: elsewhere the job could not start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import JobLogPod, JobLogStatus, SlurmJobStatus
from slinky_operator.jobs.refusal import LONGEST, InvalidJob
from slinky_operator.jobs.task_sets import Array
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.jobs.job_log_servers import has_server
from slinky_operator.slurm.pods import pod_ownership
from slurm_client import JobSpec

NAME_BYTES: Final = 16
"""Random bytes of a name that nobody can guess."""

_NAME: Final = re.compile(rf"[0-9a-f]{{{2 * NAME_BYTES}}}")
_EVERY: Final = "ALL"
"""What stands for every node in the list of a partition."""


def why_not_served(cluster: Cluster, partitions: str | None, nodesets: Sequence[Object], pods: Iterable[Object]) -> str:
    """Say why a job must not write to the folder of the server; empty if each of its nodes has it.

    Parameters
    ----------
    partitions
        Those that the job names; None for Slurm's default.
    nodesets
        All of the Cluster.
    pods
        Those of the Cluster's NodeSets.
    """
    where = f"Cluster {cluster.namespace}/{cluster.name}"
    if cluster.spec.external:
        return f"{where} is external"
    chosen = node_sets_of(cluster, partitions, [nodeset["metadata"]["name"] for nodeset in nodesets])
    if chosen is None:
        return f"nodes of {where} outside Kubernetes may run the job"
    if not chosen:
        return f"no NodeSet of {where} has the job's partition"
    known = {one["metadata"]["name"]: one for one in nodesets}
    for name in sorted(chosen):
        if why := _why_without(known.get(name)):
            return f"NodeSet {name} of {where} {why}"
    for pod in pods:
        own = pod["metadata"].get("labels") or {}
        if pod_ownership.is_slurmd(pod) and own.get(labels.LABEL_NODESET_NAME) in chosen and not has_server(pod):
            return f"pod {pod['metadata']['name']} has no job log server yet"
    return ""


def _why_without(nodeset: Object | None) -> str:
    """Say why nodes of a NodeSet may have no server: one that is to be made, or made again, may not ask for it."""
    if nodeset is None:
        return "does not exist"
    if nodeset["metadata"].get("deletionTimestamp"):
        return "is being deleted"
    return "has no jobLogs" if (nodeset.get("spec") or {}).get("jobLogs") is None else ""


def node_sets_of(cluster: Cluster, partitions: str | None, names: list[str]) -> set[str] | None:
    """NodeSets whose nodes may run a job; None if nodes outside Kubernetes may."""
    known = {one.name: one for one in cluster.spec.partitions}
    chosen: set[str] = set()
    for partition in (partitions or "").split(","):
        asked = partition.strip()
        found = known.get(asked)
        if found is None and asked in names:
            chosen.add(asked)
        elif found is None or _EVERY in found.node_sets:
            # Also Slurm's default, and partitions in lines that only Slurm reads: any node.
            if cluster.spec.nodes:
                return None
            chosen.update(names)
        elif found.nodes:
            return None
        else:
            chosen.update(found.node_sets)
    return chosen


def decide(
    wanted: JobLogPod, job: JobSpec, array: Array | None, before: JobLogStatus | None, not_served: str, name: str
) -> tuple[JobSpec, JobLogStatus]:
    """Complete a job by its files of output.

    Parameters
    ----------
    wanted
        The user's wish.
    job, array
        What is to be submitted, and its tasks.
    before
        What was decided about the submission before this one.
    not_served
        Why the job must not write to the folder of the server; empty if it may.
    name
        A random one, to be used if there is none yet.

    Raises
    ------
    InvalidJob
        The array has no such task.
    """
    before = before or JobLogStatus()
    status = before.model_copy(update={"task": _task(wanted, array), "name": "", "not_served": ""})
    if job.standard_output is not None:
        return job, status
    if not_served:
        return job, status.model_copy(update={"not_served": not_served})
    # What is in the status counts only if it is a name that this module has made.
    name = before.name if _NAME.fullmatch(before.name) else name
    path = f"{naming.JOB_OUTPUT_FOLDER}/{name}-{'%A_%a' if job.array else '%j'}"
    # Without a pod there is one stream, which Slurm writes into one file.
    error = f"{path}.err" if job.standard_error is None and wanted.pod else job.standard_error
    status = status.model_copy(update={"name": name})
    return replace(job, standard_output=f"{path}.out", standard_error=error), status


def begun(decided: JobLogStatus | None, status: SlurmJobStatus, *, is_again: bool) -> JobLogStatus | None:
    """What is written of the output before a submission.

    Parameters
    ----------
    decided
        See `decide`.
    status
        Of the submission before.
    is_again
        Whether that one was a job, which has failed.
    """
    if decided is None or not is_again:
        return decided
    starts = decided.starts + (status.restarts or 0) + 1
    return decided.model_copy(update={"starts": starts, "place": None})


def _task(wanted: JobLogPod, array: Array | None) -> int | None:
    """The one task whose output is followed, of an array."""
    if array is None:
        if wanted.task is not None:
            raise InvalidJob("spec.logs.task", "the job is no array")
        return None
    if wanted.task is None:
        return array.tasks.first
    if wanted.task not in array.tasks:
        raise InvalidJob("spec.logs.task", f"the array {str(array.tasks)[:LONGEST]} has no task {wanted.task}")
    return wanted.task
