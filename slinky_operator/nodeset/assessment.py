"""What a plan found of a NodeSet, for status, Events and the time of the next look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slinky_operator.nodeset.disruption.repairs import UnregisteredPod
from slinky_operator.nodeset.drain import deadline
from slinky_operator.nodeset.model.pod_state import State
from slinky_operator.nodeset.slurm_nodes.drains import Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What a plan found, for status and Events."""

    desired: int | None
    """Pods that are wanted; None where the mode is not served."""
    states: Mapping[str, State] = field(default_factory=dict)
    """State of each pod, by name."""
    causes: Mapping[str, frozenset[Cause]] = field(default_factory=dict)
    """What each pod's node is to be drained for, by name."""
    victims: tuple[str, ...] = ()
    """Pods that are too many, in the order in which they were chosen."""
    blocked: Mapping[str, str] = field(default_factory=dict)
    """Names of nodes whose pods cannot be created yet, and why."""
    waiting_for_slurm: tuple[str, ...] = ()
    """Nodes without a pod that Slurm itself must give up first."""
    skip_drain: bool = False
    overdue: Mapping[str, deadline.Overdue] = field(default_factory=dict)
    """Nodes whose drain has taken longer than the spec allows, by name."""
    conflicts: Mapping[str, str] = field(default_factory=dict)
    """Nodes that cannot be made because their name is somebody else's, and whose."""
    misplaced: tuple[str, ...] = ()
    """Pods on Kubernetes Nodes that no longer match."""
    held: int = 0
    """How many pods are not made yet because too many others are starting."""
    waits: Mapping[str, UnregisteredPod] = field(default_factory=dict)
    """Pods that run and have not registered, by name."""
    known: frozenset[str] = frozenset()
    """Names of the pods that Slurm knows although that is not written on them yet."""
