"""The question whether slurmctld accepts a key of auth/jwt: by a token that is signed with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.reconcile.text import cut
from slurm_client import MintedToken

WORDS: Final = 200
"""Maximum characters that are kept of why a token was refused."""


@dataclass(frozen=True, slots=True)
class KeyTrial:
    """Whether slurmctld accepts tokens signed with a key."""

    key: bytes = field(repr=False)
    at: float
    """Monotonic seconds of the last attempt."""

    accepted: bool
    attempts: int
    why: str = ""
    """Slurm's words about the last token that it has refused."""


@dataclass(frozen=True, slots=True)
class KeyQuestion(Question[KeyTrial]):
    """Whether slurmctld accepts a token signed with a key; an error is not an answer."""

    key: bytes = field(repr=False)
    lifetime: timedelta

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> KeyTrial:
        token = MintedToken(self.key, lifetime=self.lifetime)
        why = cut(await context.clients.why_refused(cluster.uid, token), WORDS)
        before = answers.of(KeyQuestion)
        attempts = before.attempts if before is not None and before.key == self.key else 0
        return KeyTrial(self.key, context.clock(), not why, attempts + 1, why)

    @override
    def is_news(self, before: KeyTrial | None, answer: KeyTrial | None) -> bool:
        return answer is not None and answer.accepted
