"""The question about the claim that a missing pod of slurmctld would use, past the caches."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.kube.resources import PERSISTENTVOLUMECLAIMS


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as the API server has shown it."""

    name: str
    at: float
    """Monotonic seconds."""

    deleted: str = ""
    """Since when it is being deleted, as Kubernetes writes times; empty if it is not, or does not exist."""


@dataclass(frozen=True, slots=True)
class ClaimQuestion(Question[Claim]):
    """Whether the claim of a missing pod of slurmctld is being deleted."""

    name: str

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> Claim:
        found = await context.live(PERSISTENTVOLUMECLAIMS, self.name, cluster.namespace)
        deleted = found["metadata"].get("deletionTimestamp") if found is not None else None
        return Claim(self.name, context.clock(), deleted or "")

    @override
    def is_news(self, before: Claim | None, answer: Claim | None) -> bool:
        return answer is not None and bool(answer.deleted)
