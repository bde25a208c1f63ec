"""Keeps accounts in slurmdbd: reads what is there, lets the rules compare, and makes changes until time is up.

Every write is read back by the client library. A change that Slurm refuses is remembered, so that the others are made;
an answer that does not come ends the batch, since whatever was asked may still be done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from slinky_api.v1alpha1.cluster.accounting_tree import AccountTree
from slinky_operator.cluster.parts.accounts import difference, pruning, wanted
from slinky_operator.cluster.parts.accounts.changes import (
    Change,
    Create,
    Delete,
    DeleteAssociation,
    Kind,
    Update,
    place,
    subject,
    told,
)
from slinky_operator.cluster.parts.accounts.comparison import Comparison, Counts
from slinky_operator.cluster.parts.accounts.present import Present
from slinky_operator.cluster.parts.accounts.pruning import Usage
from slinky_operator.cluster.parts.accounts.wanted import Wanted
from slinky_operator.kube.cache.weight import run_in_thread
from slinky_operator.reconcile.text import cut
from slinky_operator.runtime.threads import Key
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import SlurmClient, errors
from slurm_client.models import AccountSpec, Association, AssociationSpec, QosSpec, UserSpec

logger = logging.getLogger(__name__)

TIMEOUT: Final = 15.0
"""Seconds for one call."""

BATCH: Final = 3.0
"""Seconds after which no other change is begun in a pass: other Clusters wait for theirs."""

LONGEST_BATCH: Final = 10.0
"""The same where reading takes longer than a batch: most of the time is to go into changes."""

LONGEST: Final = 300
"""Characters of an error of Slurm that are kept."""

MOST_KEPT: Final = 20
"""Refusals whose words are kept; all of them are counted."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class AccountsRequest:
    """What slurmdbd is to have."""

    version: str
    """Identifies spec and users, for the outcome."""

    tree: AccountTree
    cluster: str
    """`ClusterName`."""

    unknown: tuple[str, ...] = ()
    """Users of the tree whom the Cluster does not know."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of a batch, and what was done in it."""

    outcome: Comparison
    done: tuple[str, ...] = ()
    """Changes, for people."""


async def apply_accounts(
    client: ClusterClient | None, request: AccountsRequest, before: Comparison | None, clock: Clock
) -> Applied:
    """Compare a tree with slurmdbd and make a batch of changes.

    Parameters
    ----------
    before
        What came of the last time; the same changes are not tried in vain twice in a row.
    clock
        Monotonic seconds.
    """
    began = clock()
    nothing = Comparison(request.version, began)
    if client is None:
        return Applied(replace(nothing, why="there is no connection with Slurm"))
    key = client.namespace, "accounts", client.uid
    asked = await run_in_thread(key, wanted.wanted, request.tree, request.cluster, request.unknown)
    if asked.problems:
        return Applied(replace(nothing, at=clock(), problems=asked.problems))
    try:
        present = await _read(client.client, asked, key)
        usage = (
            await _usage(client.client, key) if await run_in_thread(key, pruning.is_needed, asked, present) else Usage()
        )
    except errors.SlurmError as error:
        return Applied(replace(nothing, at=clock(), why=_words(error)))
    draft = await run_in_thread(key, _compare, asked, present, usage)
    read = clock() - began
    carries_on = before is not None and before.version == request.version and before.left > 0
    refused = before.refused if before is not None and carries_on else frozenset()
    until = clock() + min(LONGEST_BATCH, max(BATCH, read))
    batch = _Batch(client.client, present, clock, until, refused, before.problems if before and carries_on else ())
    await batch.make(draft.changes)
    outcome = Comparison(
        request.version,
        clock(),
        cost=read,
        counts=draft.counts,
        left=batch.left,
        why=batch.why,
        problems=(*draft.problems, *(one for one in batch.problems if one not in draft.problems)),
        refused=batch.refused,
        held=draft.held,
        too_many=draft.too_many,
        settled=not (batch.left or batch.why or batch.refused or draft.held or draft.too_many),
    )
    return Applied(outcome, tuple(batch.done))


@dataclass(frozen=True, slots=True)
class _Draft:
    changes: tuple[Change, ...]
    held: tuple[str, ...]
    too_many: str
    problems: tuple[str, ...]
    counts: Counts


def _compare(asked: Wanted, present: Present, usage: Usage) -> _Draft:
    """All rules at once; they may run in a thread."""
    pruned = pruning.prune(asked, present, usage)
    counts = Counts(
        len(asked.accounts),
        len(asked.users),
        len(asked.associations),
        len(asked.qos),
        sum(map(len, pruning.unmanaged(asked, present))),
    )
    changes = (*difference.changes(asked, present), *pruned.changes)
    return _Draft(changes, pruned.held, pruned.too_many, tuple(difference.unmovable(asked, present)), counts)


async def _read(client: SlurmClient, asked: Wanted, key: Key) -> Present:
    database = client.db
    qos = await database.qos_list(timeout=TIMEOUT)
    accounts = await database.accounts(coordinators=True, timeout=TIMEOUT)
    users = await database.users(timeout=TIMEOUT)
    # To delete an account or a user, all that other clusters have of it must be known.
    cluster = None if asked.prune else asked.cluster
    associations = await database.associations(cluster=cluster, inherited=False, timeout=TIMEOUT)
    return await run_in_thread(
        key,
        lambda: Present(
            {one.name: one for one in qos},
            {one.name: one for one in accounts},
            {one.name: one for one in users},
            {one.key: one for one in associations},
        ),
    )


async def _usage(client: SlurmClient, key: Key) -> Usage:
    """Ask what jobs and partitions use."""
    jobs = await client.all_jobs(timeout=TIMEOUT)
    partitions = await client.partitions(timeout=TIMEOUT)
    clusters = await client.db.clusters(timeout=TIMEOUT)

    def gather() -> Usage:
        associations: dict[tuple[str, str], tuple[int, ...]] = {}
        of_qos: dict[str, tuple[int, ...]] = {}
        for job in jobs:
            if not job.state.is_finished:
                key = job.account, job.user
                associations[key] = (*associations.get(key, ()), job.id)[:5]
                of_qos[job.qos] = (*of_qos.get(job.qos, ()), job.id)[:5]
        of_partitions: dict[str, tuple[str, ...]] = {}
        for partition in partitions:
            for name in {partition.qos, *partition.allowed_qos.split(",")} - {""}:
                of_partitions[name] = (*of_partitions.get(name, ()), partition.name)
        return Usage(associations, of_qos, of_partitions, len(clusters) > 1)

    return await run_in_thread(key, gather)


class _Overtaken(Exception):
    """What was to be deleted is not what it was when the changes were chosen."""


class _Batch:
    """Changes that are made one after the other."""

    def __init__(
        self,
        client: SlurmClient,
        present: Present,
        clock: Clock,
        until: float,
        refused: frozenset[str],
        problems: Iterable[str],
    ) -> None:
        self._client, self._present, self._clock, self._until = client, present, clock, until
        self.refused = refused
        self.problems = list(problems)
        self.done: list[str] = []
        self.left = 0
        self.why = ""

    async def make(self, changes: Iterable[Change]) -> None:
        """Make changes in order until time is up or there is no answer; count the others."""
        for change in changes:
            about = told(change)
            if about in self.refused:
                continue
            if self.why or self._clock() >= self._until:
                self.left += 1
                continue
            try:
                await self._one(change)
            except _Overtaken:
                # The next comparison sees it, and decides.
                self.left += 1
            except (errors.Unreachable, errors.Unauthorized, errors.DecodeError, errors.ServerError) as error:
                self.why, self.left = f"{subject(change)}: {_words(error)}", self.left + 1
            except errors.SlurmError as error:
                self.refused |= {about}
                if len(self.problems) < MOST_KEPT:
                    self.problems.append(f"{place(change)}: {subject(change)}: {_words(error)}")
            else:
                self.done.append(about)

    async def _one(self, change: Change) -> None:
        match change:
            case Create():
                try:
                    await self._create(change)
                except errors.Conflict:
                    # Somebody else was faster; what differs is seen the next time.
                    logger.info("%s: is there by now", subject(change))
            case Update():
                await self._update(change)
            case Delete() | DeleteAssociation():
                try:
                    await self._delete(change)
                except errors.NotFound:
                    logger.info("%s: is gone by now", subject(change))

    async def _create(self, change: Create) -> None:
        database = self._client.db
        match change.spec:
            case QosSpec():
                await database.create_qos(change.spec, timeout=TIMEOUT)
            case AccountSpec():
                await database.create_account(change.spec, timeout=TIMEOUT)
            case AssociationSpec():
                await database.create_association(change.spec, timeout=TIMEOUT)
            case UserSpec():
                await database.create_user(change.spec, timeout=TIMEOUT)

    async def _update(self, change: Update) -> None:
        database = self._client.db
        match change.spec:
            case QosSpec():
                await database.update_qos(change.spec, timeout=TIMEOUT)
            case AccountSpec():
                await database.update_account(change.spec, timeout=TIMEOUT)
            case AssociationSpec():
                await database.update_association(change.spec, timeout=TIMEOUT)
            case UserSpec():
                await database.update_user(change.spec, timeout=TIMEOUT)

    async def _delete(self, change: Delete | DeleteAssociation) -> None:
        database = self._client.db
        if isinstance(change, DeleteAssociation):
            await database.delete_association(change.key, timeout=TIMEOUT)
        elif change.kind is Kind.QOS:
            # It goes for all clusters.
            if len(await database.clusters(timeout=TIMEOUT)) > 1:
                raise _Overtaken
            await database.delete_qos(change.name, timeout=TIMEOUT)
        elif change.kind is Kind.ACCOUNT:
            self._check(await database.associations(account=change.name, inherited=False, timeout=TIMEOUT))
            await database.delete_account(change.name, timeout=TIMEOUT)
        else:
            self._check(await database.associations(user=change.name, inherited=False, timeout=TIMEOUT))
            await database.delete_user(change.name, timeout=TIMEOUT)

    def _check(self, associations: Iterable[Association]) -> None:
        """Check that nobody has used an account or a user since it was chosen: it goes with all its associations.

        The changes were chosen seconds ago. Meanwhile another cluster of the slurmdbd may have taken it over.

        Raises
        ------
        _Overtaken
            There are associations that were not there.
        """
        if any(one.key not in self._present.associations for one in associations):
            raise _Overtaken


def _words(error: errors.SlurmError) -> str:
    return cut(str(error) or type(error).__name__, LONGEST)
