"""The findings of a plan, for status, Events and the time of the next pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slinky_operator.nodeset.disruption.repairs import UnregisteredPod
from slinky_operator.nodeset.drain import deadline
from slinky_operator.nodeset.model.pod_state import State
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.slurm.node_references import References


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The findings of a plan, for status and Events."""

    desired: int | None
    """Desired number of pods; None if the mode is not supported."""
    states: Mapping[str, State] = field(default_factory=dict)
    """State of each pod, by name."""
    causes: Mapping[str, frozenset[Cause]] = field(default_factory=dict)
    """The causes for which each pod's node is drained, by name."""
    victims: tuple[str, ...] = ()
    """Surplus pods, in the order in which they were chosen."""
    blocked: Mapping[str, str] = field(default_factory=dict)
    """Names of nodes whose pods cannot be created yet, and why."""
    waiting_for_slurm: tuple[str, ...] = ()
    """Nodes without a pod whose records Slurm itself must release or list first."""
    named: References = field(default_factory=dict)
    """Nodes without a pod whose records stay in Slurm, and what names them."""
    skip_drain: bool = False
    overdue: Mapping[str, deadline.Overdue] = field(default_factory=dict)
    """Nodes whose drain has taken longer than the spec allows, by name."""
    conflicts: Mapping[str, str] = field(default_factory=dict)
    """Nodes that cannot be created because somebody else owns their name, and who."""
    misplaced: tuple[str, ...] = ()
    """Pods on Kubernetes Nodes that no longer match."""
    held: int = 0
    """How many pods are not created yet because too many others are starting."""
    waits: Mapping[str, UnregisteredPod] = field(default_factory=dict)
    """Pods that run and have not registered, by name."""
    known: frozenset[str] = frozenset()
    """Names of the pods that Slurm knows although it is not recorded on them yet."""
