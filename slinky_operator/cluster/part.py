"""What a part of a Cluster answers for: the Secrets it reads, and what it shows in the status. Pure.

Steps are listed in `plan`, since their order is that of the actions. What a part has found out in its steps it reads
from the state of the pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from slinky_api.conditions import ClusterCondition, Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.pod_trouble import DaemonTrouble

Word = Literal["True", "False", "Unknown"]

Shown: TypeAlias = tuple[Word, Reason, str]
"""Status, reason and message of a condition."""

ON_ITS_WAY: Final = frozenset(
    {
        Reason.CONFIG_PENDING,
        Reason.CONNECTING,
        Reason.DAEMONS_STARTING,
        Reason.KEY_PENDING,
        Reason.ACCOUNTS_PENDING,
        Reason.PARTITION_IN_USE,
        Reason.NODES_IN_USE,
        Reason.GRES_IN_USE,
        Reason.WAITING_FOR_JOBS,
        Reason.CLAIM_GROWING,
        Reason.RESERVATION_PENDING,
        Reason.DELETING,
    }
)
"""Reasons that need no action."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What needs somebody's help."""

    reason: Reason
    message: str
    in_summary: bool = False
    """Whether the column STATUS names its reason while Slurm serves."""

    local: str = ""
    """What that column says instead of a problem that only some NodeSets or nodes have."""


class Part:
    """A part of a Cluster; by default one that reads and shows nothing.

    Attributes
    ----------
    name
        Its folder in `parts`.
    condition
        The condition that it answers for, if any.
    degrades
        Whether the Cluster is degraded while the condition is False and needs help.
    """

    name: str
    condition: ClusterCondition | None = None
    degrades: bool = False

    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterable[str]:
        """Names of the Secrets that it reads.

        Parameters
        ----------
        node_sets
            NodeSets of the Cluster, as the API server has them.
        """
        _ = cluster, node_sets
        return ()

    def shown(self, state: PassState) -> Shown | None:
        """Status, reason and message of its condition; `None` if the Cluster has no such condition."""
        _ = state
        return None

    def because(self, state: PassState) -> Iterable[str]:
        """What explains its condition while that is not True, before its message."""
        _ = state
        return ()

    def problems(self, state: PassState) -> Iterable[Problem]:
        """What needs somebody's help, for `Degraded`; beside its condition."""
        _ = state
        return ()

    def blockers(self, state: PassState) -> Iterable[tuple[Reason, str]]:
        """Why Slurm cannot serve, for `Ready`: whatever Slurm answers is a symptom of it."""
        _ = state
        return ()

    def ongoing(self, state: PassState) -> Iterable[tuple[Reason, str]]:
        """What is in progress without anybody's help, for `Progressing`."""
        _ = state
        return ()

    def stuck(self, state: PassState) -> Iterable[DaemonTrouble]:
        """Why pods of daemons do not start."""
        _ = state
        return ()

    def remark(self, state: PassState) -> str:
        """What the column STATUS says of it if nothing is wrong with the Cluster; empty if nothing."""
        _ = state
        return ""

    def fields(self, state: PassState) -> Mapping[str, Any]:
        """The fields of the status that it answers for, by their names in `ClusterStatus`."""
        _ = state
        return {}
