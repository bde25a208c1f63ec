"""Accounts, users, associations, QOS and WCKeys by the same typed calls, on real slurmdbds and on the fake."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from slurm_client import errors
from slurm_client.models import (
    INFINITE,
    AccountSpec,
    AssociationKey,
    AssociationLimits,
    AssociationSpec,
    QosLimits,
    QosSpec,
    UserSpec,
)
from slurm_client.notation.tres import Tres

if TYPE_CHECKING:
    from tests.integration.slurm_client.accounting.clusters import AccountingCluster

pytestmark = pytest.mark.long

_serial = itertools.count(1)


async def test_an_account_and_its_users_from_the_first_to_the_last(accounting: AccountingCluster, version: str) -> None:
    number = next(_serial)
    account, user = f"lab{number}", f"mia{number}"
    own, of_user = AssociationKey(account, accounting.cluster), AssociationKey(account, accounting.cluster, user)
    async with accounting.client(version) as slurm:
        db = slurm.db
        with pytest.raises(errors.NotFound):
            await db.create_association(AssociationSpec(account=account, cluster=accounting.cluster))
        await db.create_account(AccountSpec(name=account, description="d", organization="o"))
        with pytest.raises(errors.Conflict):
            await db.create_account(AccountSpec(name=account))
        found = await db.account(account)
        assert (found.description, found.organization, found.associations) == ("d", "o", ())
        with pytest.raises(errors.NotFound, match="made no association"):
            await db.create_association(AssociationSpec(account=account, cluster=accounting.cluster, user=user))
        await db.create_association(AssociationSpec(account=account, cluster=accounting.cluster, shares=7))
        with pytest.raises(errors.Conflict):
            await db.create_association(AssociationSpec(account=account, cluster=accounting.cluster))
        limits = AssociationLimits(max_jobs=2)
        await db.create_association(
            AssociationSpec(account=account, cluster=accounting.cluster, user=user, shares=3, limits=limits)
        )
        made = await db.association(of_user)
        assert (made.shares, made.limits.max_jobs, made.is_default) == (3, 2, True)
        assert (await db.association(own)).shares == 7
        await db.update_user(UserSpec(name=user, administrator_level="Operator"))
        known = await db.user(user)
        assert (known.administrator_level, known.default_account) == ("Operator", account)
        assert {each.account for each in known.associations} == {account}
        await db.update_account(AccountSpec(name=account, coordinators=[user], description="x"))
        found = await db.account(account)
        assert (found.description, [each.name for each in found.coordinators]) == ("x", [user])
        with pytest.raises(errors.Conflict, match="below"):
            await db.delete_association(own)
        await db.delete_user(user)
        with pytest.raises(errors.NotFound):
            await db.association(of_user)
        await db.delete_association(own)
        await db.delete_account(account)
        for call in (db.delete_account(account), db.delete_user(user), db.delete_association(own), db.account(account)):
            with pytest.raises(errors.NotFound):
                await call


async def test_limits_are_set_kept_and_taken_away(accounting: AccountingCluster, version: str) -> None:
    account = f"limits{next(_serial)}"
    tres = Tres.parse("cpu=8,mem=4G,node=2")
    async with accounting.client(version) as slurm:
        db = slurm.db
        await db.create_account(AccountSpec(name=account))
        spec = AssociationSpec(account=account, cluster=accounting.cluster)
        await db.create_association(spec)
        changes = (
            AssociationLimits(group_jobs=4, max_wall_per_job=timedelta(hours=1), group_tres=tres),
            AssociationLimits(max_jobs=3),
            AssociationLimits(group_jobs=INFINITE, group_tres=Tres.parse("cpu=8")),
        )
        for limits in changes:
            await db.update_association(AssociationSpec(account=account, cluster=accounting.cluster, limits=limits))
        found = (await db.association(spec.key)).limits
        assert found.group_jobs in {None, INFINITE}
        assert (found.max_jobs, found.max_wall_per_job) == (3, timedelta(hours=1))
        assert found.group_tres == Tres.parse("cpu=8")
        await db.delete_association(spec.key)
        await db.delete_account(account)


async def test_a_qos_from_the_first_to_the_last(accounting: AccountingCluster, version: str) -> None:
    name = f"urgent{next(_serial)}"
    async with accounting.client(version) as slurm:
        db = slurm.db
        limits = QosLimits(max_jobs_per_user=2, max_tres_per_user=Tres.parse("cpu=8,mem=1G"))
        await db.create_qos(
            QosSpec(name=name, priority=9, preempts=["normal"], grace_time=timedelta(seconds=30), limits=limits)
        )
        with pytest.raises(errors.Conflict):
            await db.create_qos(QosSpec(name=name))
        await db.update_qos(QosSpec(name=name, grace_time=timedelta(), description="d"))
        found = await db.qos(name)
        assert (found.priority, found.preempts, found.grace_time) == (9, ("normal",), timedelta())
        assert (found.limits.max_jobs_per_user, found.limits.max_tres_per_user) == (2, limits.max_tres_per_user)
        await db.delete_qos(name)
        for call in (db.delete_qos(name), db.update_qos(QosSpec(name=name)), db.qos(name)):
            with pytest.raises(errors.NotFound):
                await call


async def test_wckeys_are_deleted_by_name_and_nobody_elses_unasked(accounting: AccountingCluster, version: str) -> None:
    number = next(_serial)
    users, shared, own = (f"kay{number}", f"lee{number}"), f"shared{number}", f"own{number}"
    async with accounting.client(version) as slurm:
        db = slurm.db
        for user in users:
            await db.create_user(UserSpec(name=user))
            await db.create_wckey(shared, cluster=accounting.cluster, user=user)
        await db.create_wckey(own, cluster=accounting.cluster, user=users[0])
        with pytest.raises(errors.Conflict):
            await db.create_wckey(own, cluster=accounting.cluster, user=users[0])
        with pytest.raises(errors.NotFound):
            await db.delete_wckey(own, cluster=accounting.cluster, user=users[1])
        with pytest.raises(errors.Conflict, match="by name alone"):
            await db.delete_wckey(shared, cluster=accounting.cluster, user=users[0])
        await db.delete_wckey(own, cluster=accounting.cluster, user=users[0])
        assert sum(each.name == shared for each in await db.wckeys()) == 2
        assert await db.delete_wckeys(shared) == 2
        assert not {shared, own} & {each.name for each in await db.wckeys()}
        for call in (db.delete_wckeys(shared), db.delete_wckey(own, cluster=accounting.cluster, user=users[0])):
            with pytest.raises(errors.NotFound):
                await call
        for user in users:
            await db.delete_user(user)
