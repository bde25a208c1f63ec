"""The question whether slurmdbd answers, and which slurmctld it knows: one small call through slurmrestd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.reconcile.text import cut
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import errors

TIMEOUT: Final = 15.0
"""Seconds for the call."""

LONGEST: Final = 400
"""Maximum characters of an error that are kept."""


@dataclass(frozen=True, slots=True)
class AccountingAnswer:
    """What slurmdbd has answered when it was last asked for the Cluster."""

    at: float
    """Monotonic seconds."""

    controller: str = ""
    """Address of the slurmctld that has registered; empty if none has."""

    why: str = ""
    """Why there was no answer."""

    again: bool = False
    """Whether the answer before it had the same address."""

    is_asked: bool = True
    """Whether slurmdbd could be asked at all."""

    doubted_at: float = float("-inf")
    """When it was last asked after a time in which it did not answer: what was known of it may have changed since."""


@dataclass(frozen=True, slots=True)
class AccountingQuestion(Question[AccountingAnswer]):
    """Whether slurmdbd answers, and which slurmctld it knows."""

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> AccountingAnswer:
        known, before = answers.of(AccountingQuestion), last_answer(answers)
        answer = await ask_accounting(context.clients.get(cluster.uid), cluster.slurm_name, context.clock, before)
        doubted_at = known.doubted_at if known is not None else float("-inf")
        if before is not None and before.why:
            doubted_at = context.clock()
        if answer is None:
            return AccountingAnswer(context.clock(), is_asked=False, doubted_at=doubted_at)
        return replace(answer, doubted_at=doubted_at)

    @override
    def is_news(self, before: AccountingAnswer | None, answer: AccountingAnswer | None) -> bool:
        if answer is None or not answer.is_asked:
            return False
        return (
            before is None
            or not before.is_asked
            or replace(answer, at=before.at, doubted_at=before.doubted_at) != before
        )


def last_answer(answers: Answers) -> AccountingAnswer | None:
    """What slurmdbd answered last; `None` if it could not be asked."""
    known = answers.of(AccountingQuestion)
    return known if known is not None and known.is_asked else None


def doubted_at(answers: Answers) -> float:
    """When slurmdbd was last asked after a time in which it did not answer, in monotonic seconds."""
    known = answers.of(AccountingQuestion)
    return known.doubted_at if known is not None else float("-inf")


async def ask_accounting(
    client: ClusterClient | None, name: str, clock: Callable[[], float], before: AccountingAnswer | None = None
) -> AccountingAnswer | None:
    """Ask slurmdbd for its record of a cluster; `None` if slurmrestd cannot be asked, or lacks the calls so far.

    Parameters
    ----------
    name
        `ClusterName`.
    before
        The last answer.
    """
    if client is None:
        return None
    try:
        record = await client.client.db.cluster(name, timeout=TIMEOUT)
    except errors.NotSupported:
        # Its pod is about to be replaced by one with the calls of slurmdbd.
        return None
    except errors.NotFound:
        return AccountingAnswer(clock())
    except errors.SlurmError as error:
        return AccountingAnswer(clock(), why=cut(f"slurmdbd: {str(error) or type(error).__name__}", LONGEST))
    address = cut(record.controller_host, LONGEST)
    return AccountingAnswer(clock(), address, again=before is not None and before.controller == address)
