"""
Why a job is pending, in words of people who submit jobs.

Slurm's words are those of ``squeue``; any other is shown as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurm_client.models import Job

__all__ = ["in_words", "where_or_why"]

_WORDS = {
    "AssocGrpCpuLimit": "the account has all the CPUs it may use",
    "AssocGrpGRES": "the account has all the GPUs it may use",
    "AssocGrpMemLimit": "the account has all the memory it may use",
    "AssocGrpNodeLimit": "the account has all the nodes it may use",
    "AssocMaxJobsLimit": "the user has as many jobs running as allowed",
    "BeginTime": "it is to begin later",
    "BurstBufferResources": "waits for burst buffers",
    "Cleaning": "its last run is being cleaned up",
    "Dependency": "waits for another job",
    "DependencyNeverSatisfied": "waits for a job that can no longer end as wanted: cancel it",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its QOS is not valid",
    "JobArrayTaskLimit": "as many tasks of the array run as it allows",
    "JobHeldAdmin": "held by an administrator",
    "JobHeldUser": "held by its user: scontrol release",
    "JobLaunchFailure": "could not be started: see the logs of its node",
    "Licenses": "waits for licenses",
    "MaxJobsPerAccount": "the account has as many jobs running as allowed",
    "NodeDown": "a node that it needs is down",
    "None": "not looked at yet",
    "PartitionConfig": "its partition has fewer nodes, or allows fewer, than it asks for",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionNodeLimit": "asks for more nodes than its partition has",
    "PartitionTimeLimit": "asks for more time than its partition allows",
    "Priority": "behind jobs of higher priority",
    "QOSGrpCpuLimit": "its QOS has all the CPUs it may use",
    "QOSMaxCpuPerUserLimit": "the user has all the CPUs that the QOS allows",
    "QOSMaxGRESPerUser": "the user has all the GPUs that the QOS allows",
    "QOSMaxJobsPerUserLimit": "the user has as many jobs running as the QOS allows",
    "ReqNodeNotAvail": "a node that it asks for is down, drained or reserved",
    "Reservation": "waits for its reservation to begin",
    "Resources": "waits for nodes to become free",
}


def in_words(reason: str) -> str:
    """Return what one of Slurm's words means; empty for one that is not known here."""
    return _WORDS.get(reason, "")


def where_or_why(job: Job) -> str:
    """Return the nodes that a job has; for one that is pending, why; for one that has ended badly, how."""
    if job.is_pending:
        word = job.state_reason or "None"
        words = in_words(word)
        shown = f"{word}: {words}" if words else word
        return f"{shown} ({job.state_description})" if job.state_description else shown
    code = job.exit_code
    ended = ""
    if job.is_finished and code is not None:
        if code.signal:
            ended = f"signal {code.signal_name or code.signal}"
        elif code.return_code:
            ended = f"exit code {code.return_code}"
    return ", ".join(word for word in (job.node_list, ended) if word)
