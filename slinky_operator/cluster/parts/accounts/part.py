"""The part about accounts: has them compared and applied, and shows how far slurmdbd has them. Pure.

A comparison costs a few calls, so it is done for a reason: another spec or other users, a slurmdbd that is back,
changes that are left; and otherwise now and then, for what others have changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_api.v1alpha1.cluster.accounting_tree import AccountTree
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.status import AccountCounts
from slinky_operator.cluster.actions import Action, Ask
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.accounting import known_users, variants
from slinky_operator.cluster.parts.accounting.condition import of_accounting
from slinky_operator.cluster.parts.accounting.question import doubted_at, last_answer
from slinky_operator.cluster.parts.accounts import faults
from slinky_operator.cluster.parts.accounts.apply import AccountsRequest
from slinky_operator.cluster.parts.accounts.comparison import Comparison
from slinky_operator.cluster.parts.accounts.question import AccountsQuestion
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.reconcile.text import joined, named

Word = Literal["True", "False", "Unknown"]

AWAY: Final = "nothing is changed in slurmdbd meanwhile"

MOST_NAMED: Final = 10
"""Users who are named in a message."""


def tree_of(cluster: Cluster) -> AccountTree | None:
    """The tree of a Cluster with accounting."""
    accounting = variants.wanted(cluster)
    return accounting.tree if accounting is not None else None


def of_accounts(snapshot: Snapshot) -> tuple[Word, Reason, str] | None:
    """Status, reason and message of `AccountsApplied`; `None` for a Cluster without a tree."""
    tree = tree_of(snapshot.cluster)
    if tree is None:
        return None
    last = snapshot.memory.answers.of(AccountsQuestion)
    if last is not None and last.problems and not last.left and not last.why:
        return "False", Reason.ACCOUNTS_REFUSED, _with_unknown(joined(last.problems), snapshot, tree)
    if not slurmdbd_serves(snapshot):
        return "Unknown", Reason.ACCOUNTING_DOWN, f"slurmdbd cannot be asked (see AccountingReady); {AWAY}"
    return _not_compared(snapshot) if last is None else _compared(snapshot, tree, last)


def slurmdbd_serves(snapshot: Snapshot) -> bool:
    """Whether the slurmdbd that answers is known to be that of this Cluster, whatever its next configuration is."""
    found = of_accounting(snapshot, ())
    return found is not None and found[0] == "True"


def counts(snapshot: Snapshot) -> AccountCounts | None:
    """What the status says of the tree; what it said before, while nothing is known."""
    tree = tree_of(snapshot.cluster)
    if tree is None:
        return None
    last = snapshot.memory.answers.of(AccountsQuestion)
    if last is None or last.why or not last.version:
        return snapshot.cluster.status.accounting
    found = last.counts
    return AccountCounts(
        accounts=found.accounts,
        users=found.users,
        associations=found.associations,
        qos=found.qos,
        pending=last.pending,
        unmanaged=found.unmanaged,
    )


def _not_compared(snapshot: Snapshot) -> tuple[Word, Reason, str]:
    """What there is to say before the first comparison of this operator."""
    known = find(snapshot.cluster.status.conditions, ClusterCondition.ACCOUNTS_APPLIED)
    if (
        known is not None
        and known.status == "True"
        and known.observed_generation == snapshot.cluster.metadata.generation
    ):
        # An operator that has just started knows nothing yet.
        return "True", Reason.AS_EXPECTED, known.message
    return "Unknown", Reason.CONNECTING, "slurmdbd has not been compared with the tree yet"


def _compared(snapshot: Snapshot, tree: AccountTree, last: Comparison) -> tuple[Word, Reason, str]:
    """What the last comparison has shown."""
    if last.why:
        return "Unknown", Reason.ACCOUNTING_DOWN, f"{last.why}; {AWAY}"
    if last.left:
        words = "slurmdbd is being changed; status.accounting.pending counts what is left"
        return "False", Reason.ACCOUNTS_PENDING, words
    unknown = _unknown(snapshot, tree)
    if unknown:
        return "False", Reason.USERS_UNKNOWN, unknown
    if last.too_many:
        return "False", Reason.TOO_MANY_DELETIONS, last.too_many
    if last.held:
        return "False", Reason.WAITING_FOR_JOBS, f"not deleted, since it is used: {joined(last.held)}"
    rest = f"; {last.counts.unmanaged} others are left as they are" if last.counts.unmanaged else ""
    sizes = f"{last.counts.accounts} accounts, {last.counts.users} users, {last.counts.qos} QOS"
    return "True", Reason.AS_EXPECTED, f"slurmdbd has {sizes} of the tree{rest}"


def _with_unknown(words: str, snapshot: Snapshot, tree: AccountTree) -> str:
    return "; ".join(filter(None, (words, _unknown(snapshot, tree))))


def _unknown(snapshot: Snapshot, tree: AccountTree) -> str:
    """Users whom the Cluster does not know, in a sentence; empty without one."""
    names = known_users.unknown(snapshot, tree)
    if not names:
        return ""
    source = "spec.identity.passwd"
    return (
        f"{faults.TREE}: {source} does not have {named(sorted(names), MOST_NAMED)}: left out; all else is applied. Add "
        "them there, or take them out of the tree"
    )


class AccountsPart(Part):
    """The accounts, users and limits of `spec.accounting.tree`."""

    name = "accounts"
    condition = ClusterCondition.ACCOUNTS_APPLIED
    degrades = True

    @override
    def shown(self, state: PassState) -> Shown | None:
        return of_accounts(state.snapshot)

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        return {"accounting": counts(state.snapshot)}


ACCOUNTS: Final = AccountsPart()


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
