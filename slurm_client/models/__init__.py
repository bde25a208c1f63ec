"""
The canonical models: one shape for every data parser, frozen and typed.

``None`` is "not set", :data:`INFINITE` is "no limit"; times are aware and in UTC; unknown words of a newer Slurm are
kept. Nothing outside this package and :mod:`slurm_client.decode` needs to know how slurmrestd writes them.
"""

from slurm_client.models.database.accounts import (
    Account,
    AccountSpec,
    Association,
    AssociationKey,
    AssociationSpec,
    Coordinator,
    User,
    UserSpec,
    WCKey,
)
from slurm_client.models.database.clusters import CloudInstance, ClusterRecord, TrackedResource
from slurm_client.models.database.history import JobRecord, StepRecord
from slurm_client.models.database.limits import AssociationLimits, QosLimits
from slurm_client.models.database.qos import Qos, QosSpec
from slurm_client.models.database.service import DatabaseCalls, DatabaseDiag, DatabasePing, Rollup
from slurm_client.models.database.usage import StepUsage
from slurm_client.models.entry import Entry
from slurm_client.models.job import ExitCode, FinishedJob, Job, JobEnd, JobState, JobStateEntry, PartitionPriority
from slurm_client.models.job_details import JobDetails, JobNode, JobResources, JobSocket
from slurm_client.models.jobspec import JobResult, JobSpec, SubmissionRequest, SubmittedJob
from slurm_client.models.listing import Listing
from slurm_client.models.node import Node, NodeState
from slurm_client.models.partition import Partition, PartitionResult, PartitionState
from slurm_client.models.reservation import Reservation, ReservationResult, ReservationSpec
from slurm_client.models.resources import GresAllocation, License, NodeResources, Share, ShareTres
from slurm_client.models.service import Diag, PendingRpcs, Ping, RpcStats
from slurm_client.models.values import INFINITE, Infinite, State
from slurm_client.notation.jobid import JobId

__all__ = [
    "INFINITE",
    "Account",
    "AccountSpec",
    "Association",
    "AssociationKey",
    "AssociationLimits",
    "AssociationSpec",
    "CloudInstance",
    "ClusterRecord",
    "Coordinator",
    "DatabaseCalls",
    "DatabaseDiag",
    "DatabasePing",
    "Diag",
    "Entry",
    "ExitCode",
    "FinishedJob",
    "GresAllocation",
    "Infinite",
    "Job",
    "JobDetails",
    "JobEnd",
    "JobId",
    "JobNode",
    "JobRecord",
    "JobResources",
    "JobResult",
    "JobSocket",
    "JobSpec",
    "JobState",
    "JobStateEntry",
    "License",
    "Listing",
    "Node",
    "NodeResources",
    "NodeState",
    "Partition",
    "PartitionPriority",
    "PartitionResult",
    "PartitionState",
    "PendingRpcs",
    "Ping",
    "Qos",
    "QosLimits",
    "QosSpec",
    "Reservation",
    "ReservationResult",
    "ReservationSpec",
    "Rollup",
    "RpcStats",
    "Share",
    "ShareTres",
    "State",
    "StepRecord",
    "StepUsage",
    "SubmissionRequest",
    "SubmittedJob",
    "TrackedResource",
    "User",
    "UserSpec",
    "WCKey",
]
