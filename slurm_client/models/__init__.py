"""
The canonical models: one shape for every data parser, frozen and typed.

``None`` is "not set", :data:`INFINITE` is "no limit"; times are aware and in UTC; unknown words of a newer Slurm are
kept. Nothing outside this package and :mod:`slurm_client.decode` needs to know how slurmrestd writes them.
"""

from slurm_client.models.job import ExitCode, Job, JobState, JobStateEntry
from slurm_client.models.node import Node, NodeState
from slurm_client.models.partition import Partition, PartitionState
from slurm_client.models.service import Diag, Ping, RpcStats
from slurm_client.models.values import INFINITE, Infinite, State

__all__ = [
    "INFINITE",
    "Diag",
    "ExitCode",
    "Infinite",
    "Job",
    "JobState",
    "JobStateEntry",
    "Node",
    "NodeState",
    "Partition",
    "PartitionState",
    "Ping",
    "RpcStats",
    "State",
]
