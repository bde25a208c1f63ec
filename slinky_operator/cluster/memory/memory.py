"""All that is remembered about one Cluster."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.memory.keys import KeyMemory
from slinky_operator.cluster.memory.rollout import RolloutMemory
from slinky_operator.cluster.memory.writes import WriteMemory
from slinky_operator.cluster.question import Answers
from slinky_operator.kube.cache.parse_cache import ParseCache


@dataclass(slots=True)
class Memory:
    """About one Cluster, by uid."""

    uid: str
    answers: Answers = field(default_factory=Answers)
    """What questions of parts were answered last."""

    rollout: RolloutMemory = field(default_factory=RolloutMemory)
    keys: KeyMemory = field(default_factory=KeyMemory)
    writes: WriteMemory = field(default_factory=WriteMemory)
    node_sets: ParseCache[NodeSet] = field(default_factory=lambda: ParseCache(NodeSet))
    """Its NodeSets as last parsed."""

    rest: float = 0.0
    """Seconds for which changes are batched before the next pass: the last plan took long, or there are many nodes."""

    counts_written_at: float = float("-inf")
    slurmd_pods_left: tuple[tuple[str, ...], float] = ((), float("-inf"))
    """Pods of NodeSets that the API server showed when the Cluster was to be deleted, and when that was."""

    last_events: dict[str, str] = field(default_factory=dict)
    """The text of the last Event of each reason about the Cluster."""

    adopted: tuple[str, ...] = ()
    """What was taken over from a former Cluster of this name and not yet reported in an Event."""

    def frozen(self) -> Memory:
        """A copy that later passes do not change."""
        return replace(
            self,
            answers=self.answers.copy(),
            rollout=self.rollout.frozen(),
            keys=self.keys.frozen(),
            writes=self.writes.frozen(),
            last_events=dict(self.last_events),
        )
