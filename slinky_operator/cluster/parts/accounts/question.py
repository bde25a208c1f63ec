"""The question whether slurmdbd has the accounts of a tree; what differs is changed at once, with an Event."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from typing_extensions import override

from slinky_api.events import EventReason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext, reference
from slinky_operator.cluster.parts.accounting.question import doubted_at
from slinky_operator.cluster.parts.accounts.apply import AccountsRequest, apply_accounts
from slinky_operator.cluster.parts.accounts.comparison import Comparison
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.kube.events import EventType
from slinky_operator.reconcile.text import cut, joined

LONGEST_EVENT: Final = 900
"""Characters of an Event: Kubernetes takes 1024."""


@dataclass(frozen=True, slots=True)
class AccountsQuestion(Question[Comparison]):
    """Whether slurmdbd has what a tree of accounts asks for: compares both, and makes a batch of changes."""

    request: AccountsRequest

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> Comparison:
        before = answers.of(AccountsQuestion)
        applied = await apply_accounts(context.clients.get(cluster.uid), self.request, before, context.clock)
        if applied.done:
            same = before is not None and before.settled and before.version == self.request.version
            foreign = same and before is not None and doubted_at(answers) <= before.at
            reason = EventReason.ACCOUNTS_PUT_BACK if foreign else EventReason.ACCOUNTS_CHANGED
            changes = joined(applied.done)
            told = f"changed by somebody else, and put back: {changes}" if foreign else changes
            kind = EventType.WARNING if foreign else EventType.NORMAL
            context.recorder.event(reference(cluster), kind, reason, cut(told, LONGEST_EVENT))
        return applied.outcome

    @override
    def is_news(self, before: Comparison | None, answer: Comparison | None) -> bool:
        if before is None or answer is None:
            return True
        return replace(before, at=0.0, cost=0.0) != replace(answer, at=0.0, cost=0.0)
