"""The step about accounts: when slurmdbd is compared with `spec.accounting.tree`. Pure.

It costs a few calls, so it is done for a reason: another spec or other users, a slurmdbd that is back, changes that are
left; and otherwise now and then, for what others have changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from slinky_operator.cluster.actions import Action, Ask
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import known_users, variants
from slinky_operator.cluster.parts.accounting.question import doubted_at, last_answer
from slinky_operator.cluster.parts.accounts.apply import AccountsRequest
from slinky_operator.cluster.parts.accounts.condition import slurmdbd_serves
from slinky_operator.cluster.parts.accounts.question import AccountsQuestion
from slinky_operator.cluster.pass_state import PassState

LOOK_EVERY: Final = 120.0
"""Seconds between two comparisons if nothing happens."""

SHARE: Final = 0.005
"""Maximum fraction of time spent on comparisons."""

LONGEST: Final = 3600.0
"""Seconds between two comparisons at most, however long they take."""

GO_ON_AFTER: Final = 1.0
"""Seconds until the next batch of changes."""

AGAIN_AFTER: Final = 15.0
"""Seconds until the next attempt after one without an answer."""


def keep_accounts(state: PassState) -> Iterator[Action]:
    """Compare the tree with slurmdbd, and change what differs, if it is time to."""
    snapshot = state.snapshot
    accounting = variants.wanted(snapshot.cluster)
    tree = accounting.tree if accounting is not None else None
    if tree is None or snapshot.cluster.deleting or not _may_write(snapshot):
        return
    unknown = known_users.unknown(snapshot, tree)
    if unknown is None:
        return
    version = _version(snapshot, unknown)
    due = _due(snapshot, version) - state.now
    if due <= 0:
        yield Ask(AccountsQuestion(AccountsRequest(version, tree, snapshot.cluster.slurm_name, unknown)))
    else:
        state.wake_up(due)


def _may_write(snapshot: Snapshot) -> bool:
    """Whether the slurmdbd that answers is known to be that of this Cluster."""
    answer = last_answer(snapshot.memory.answers)
    if answer is None or answer.why or not answer.controller or not snapshot.slurm_answers:
        return False
    return slurmdbd_serves(snapshot)


def _version(snapshot: Snapshot, unknown: tuple[str, ...]) -> str:
    """Identify what is asked for: the spec by its generation, and the users who are left out."""
    digest = hashlib.sha256("\n".join(unknown).encode()).hexdigest()[:16]
    return f"{snapshot.cluster.metadata.generation}-{digest}"


def _due(snapshot: Snapshot, version: str) -> float:
    """When the next comparison is due, in monotonic seconds."""
    last = snapshot.memory.answers.of(AccountsQuestion)
    if last is None or last.version != version or doubted_at(snapshot.memory.answers) > last.at:
        return float("-inf")
    if last.why:
        return last.at + AGAIN_AFTER
    if last.left:
        return last.at + GO_ON_AFTER
    return last.at + min(LONGEST, max(LOOK_EVERY, last.cost / SHARE))
