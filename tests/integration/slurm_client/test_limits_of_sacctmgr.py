"""Each limit of associations and QOS is the one that sacctmgr means, read and written, and writes do what they say."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from slurm_client import MintedToken, SlurmClient, errors
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
from tests.integration.slurm_client.conftest import PARSERS
from tests.support.accounting_host import CLUSTER, AccountingHost
from tests.support.mariadb_host import MariadbHost

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OF_ASSOCIATIONS = {
    "max_jobs": "MaxJobs",
    "max_jobs_accrue": "MaxJobsAccrue",
    "max_submit_jobs": "MaxSubmitJobs",
    "max_wall_per_job": "MaxWallDurationPerJob",
    "max_tres_per_job": "MaxTRESPerJob",
    "max_tres_per_node": "MaxTRESPerNode",
    "max_tres_minutes_per_job": "MaxTRESMinsPerJob",
    "group_jobs": "GrpJobs",
    "group_jobs_accrue": "GrpJobsAccrue",
    "group_submit_jobs": "GrpSubmitJobs",
    "group_wall": "GrpWall",
    "group_tres": "GrpTRES",
    "group_tres_minutes": "GrpTRESMins",
    "group_tres_run_minutes": "GrpTRESRunMins",
}
"""Names of sacctmgr; it has none for `max_tres_run_minutes` and `min_priority_threshold`."""

OF_QOS = {
    "max_jobs_per_user": "MaxJobsPerUser",
    "max_jobs_per_account": "MaxJobsPerAccount",
    "max_submit_jobs_per_user": "MaxSubmitJobsPerUser",
    "max_submit_jobs_per_account": "MaxSubmitJobsPerAccount",
    "max_jobs_accrue_per_user": "MaxJobsAccruePerUser",
    "max_jobs_accrue_per_account": "MaxJobsAccruePerAccount",
    "max_wall_per_job": "MaxWallDurationPerJob",
    "max_tres_per_job": "MaxTRESPerJob",
    "max_tres_per_node": "MaxTRESPerNode",
    "max_tres_per_user": "MaxTRESPerUser",
    "max_tres_per_account": "MaxTRESPerAccount",
    "max_tres_minutes_per_job": "MaxTRESMinsPerJob",
    "max_tres_run_minutes_per_user": "MaxTRESRunMinsPerUser",
    "max_tres_run_minutes_per_account": "MaxTRESRunMinsPerAccount",
    "min_tres_per_job": "MinTRESPerJob",
    "group_jobs": "GrpJobs",
    "group_jobs_accrue": "GrpJobsAccrue",
    "group_wall": "GrpWall",
    "group_tres": "GrpTRES",
    "group_tres_minutes": "GrpTRESMins",
    "group_tres_run_minutes": "GrpTRESRunMins",
    "min_priority_threshold": "MinPrioThresh",
}
COUNTED = "AccountingStorageTRES=gres/gpu,gres/gpu:h100"
"""GPUs are among the resources that slurmdbd counts, in all and by kind."""

CASES = [(series, version) for series, versions in PARSERS.items() for version in versions]


@pytest.fixture(scope="module")
def hosts() -> Iterator[Mapping[str, AccountingHost]]:
    """A cluster with accounting of each release."""
    with (
        MariadbHost(ensure_mariadb()) as mariadb,
        AccountingHost(ensure("24.11"), database=mariadb.database("old"), extra_conf=COUNTED) as old,
        AccountingHost(ensure("26.05"), database=mariadb.database("new"), extra_conf=COUNTED) as new,
    ):
        yield {"24.11": old, "26.05": new}


def different(kind: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a value for each limit, no two with the same number; of resources, every kind that slurmdbd counts."""
    kinds = {each.name: each.metadata["kind"] for each in dataclasses.fields(kind)}
    make: dict[str, Any] = {
        "count": lambda number: number,
        "minutes": lambda number: timedelta(minutes=number),
        "tres": lambda number: Tres.parse(
            f"cpu={number},mem={100 + number}M,node={200 + number},gres/gpu={300 + number},gres/gpu:h100={400 + number}"
        ),
    }
    return {name: make[kinds[name]](number) for number, name in enumerate(names, 11)}


def plain(value: Any) -> str:
    """Write a limit as sacctmgr takes it; a length in minutes."""
    return str(int(value.total_seconds() // 60)) if isinstance(value, timedelta) else str(value)


def shown(host: AccountingHost, entity: list[str], names: Mapping[str, str]) -> list[str]:
    """Return the limits of an object as sacctmgr writes them."""
    (row,) = host.sacctmgr("show", *entity, "format=" + ",".join(names.values())) or [[]]
    # Resources in any order, and memory times minutes without a unit.
    return [written(Tres.parse(cell)) if "=" in cell else cell for cell in row]


def written(value: Any) -> str:
    """Write a limit as sacctmgr shows it, resources in the order of their names."""
    if isinstance(value, Tres):
        return ",".join(sorted(map(str, value)))
    return f"00:{int(value.total_seconds() // 60):02}:00" if isinstance(value, timedelta) else str(value)


@pytest.mark.parametrize(("series", "version"), CASES)
async def test_limits_mean_what_sacctmgr_means(hosts: Mapping[str, AccountingHost], series: str, version: str) -> None:
    host = hosts[series]
    account = f"lim{version[-2:]}"
    in_association = different(AssociationLimits, OF_ASSOCIATIONS)
    old = version in {"v0.0.40", "v0.0.41"}  # These do not have this limit.
    names = {each: name for each, name in OF_QOS.items() if not (old and each == "group_tres_minutes")}
    in_qos = different(QosLimits, names)
    run = host.sacctmgr
    await asyncio.to_thread(
        run,
        *("add", "account", account),
        *(f"{OF_ASSOCIATIONS[each]}={plain(value)}" for each, value in in_association.items()),
    )
    await asyncio.to_thread(
        run, *("add", "qos", account), *(f"{OF_QOS[each]}={plain(value)}" for each, value in in_qos.items())
    )
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root"), api_version=version) as slurm:
        key = AssociationKey(account, CLUSTER)
        limits = (await slurm.db.association(key)).limits
        assert {each: getattr(limits, each) for each in in_association} == in_association
        of_qos = (await slurm.db.qos(account)).limits
        assert {each: getattr(of_qos, each) for each in in_qos} == in_qos

        # The other way round: made and then changed through the client, as sacctmgr shows it.
        made = f"made{version[-2:]}"
        await slurm.db.create_account(AccountSpec(name=made, description="d"))
        wanted = AssociationLimits(**in_association)
        await slurm.db.create_association(
            AssociationSpec(account=made, cluster=CLUSTER, limits=wanted, shares=5, comment="c")
        )
        entity = ["assoc", "where", f"account={made}", f"cluster={CLUSTER}", "user="]
        assert await asyncio.to_thread(shown, host, entity, OF_ASSOCIATIONS) == list(
            map(written, in_association.values())
        )
        changed = AssociationLimits(max_jobs=INFINITE, group_tres=Tres(), group_jobs=99)
        await slurm.db.update_association(AssociationSpec(account=made, cluster=CLUSTER, limits=changed))
        after = in_association | {"max_jobs": "", "group_tres": "", "group_jobs": 99}
        assert await asyncio.to_thread(shown, host, entity, OF_ASSOCIATIONS) == list(map(written, after.values()))
        # Limits of resources are kept by a change of others, and inherited ones do not become a user's own.
        below = AssociationSpec(account=made, cluster=CLUSTER, user=f"below{version[-2:]}", shares=2)
        await slurm.db.create_association(below)
        assert (await slurm.db.association(below.key)).limits.max_tres_per_job == wanted.max_tres_per_job
        await slurm.db.update_association(dataclasses.replace(below, shares=3))
        entity = ["assoc", "where", f"user={below.user}", "format=user,fairshare,maxtresperjob,maxtrespernode"]
        assert await asyncio.to_thread(host.sacctmgr, "show", *entity, "wopl") == [[below.user, "3", "", ""]]
        await slurm.db.create_qos(QosSpec(name=made, limits=QosLimits(**in_qos), flags=["DENY_LIMIT"]))
        await slurm.db.update_qos(QosSpec(name=made, description="d", limits=QosLimits(group_jobs=INFINITE)))
        row = await asyncio.to_thread(shown, host, ["qos", made], names)
        assert row == list(map(written, (in_qos | {"group_jobs": ""}).values()))
        assert "DENY_LIMIT" in (await slurm.db.qos(made)).flags
        await slurm.db.delete_qos(made)
        with pytest.raises(errors.NotFound):
            await slurm.db.delete_qos(made)


@pytest.mark.parametrize(("series", "version"), CASES)
async def test_accounts_and_users_live_and_die(hosts: Mapping[str, AccountingHost], series: str, version: str) -> None:
    host = hosts[series]
    account, user = f"acc{version[-2:]}", f"user{version[-2:]}"
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root"), api_version=version) as slurm:
        db = slurm.db
        await db.create_account(AccountSpec(name=account))
        with pytest.raises(errors.Conflict):
            await db.create_account(AccountSpec(name=account))
        with pytest.raises(errors.NotFound):
            await db.update_account(AccountSpec(name="none"))
        own, of_user = AssociationKey(account, CLUSTER), AssociationKey(account, CLUSTER, user)
        with pytest.raises(errors.NotFound, match="made no association"):
            await db.create_association(AssociationSpec(account=account, cluster=CLUSTER, user=user))
        with pytest.raises(errors.NotFound):
            await db.user(user)
        await db.create_association(AssociationSpec(account=account, cluster=CLUSTER))
        await db.create_association(
            AssociationSpec(account=account, cluster=CLUSTER, user=user, limits=AssociationLimits(max_jobs=2))
        )
        await db.update_user(UserSpec(name=user, administrator_level="Operator", default_account=account))
        await db.update_account(AccountSpec(name=account, coordinators=[user], description="x"))
        found = await db.account(account)
        assert [each.name for each in found.coordinators] == [user]
        assert {each.user for each in found.associations} == {"", user}
        listed = {each.name: each for each in await db.accounts(associations=True, coordinators=True)}
        assert listed[account] == found
        known = await db.user(user)
        assert (known.administrator_level, known.default_account) == ("Operator", account)
        assert (await db.association(of_user)).limits.max_jobs == 2
        with pytest.raises(errors.Conflict, match="below"):
            await db.delete_association(own)
        await db.create_wckey(f"key{version[-2:]}", cluster=CLUSTER, user=user)
        with pytest.raises(errors.InvalidRequest):
            await db.create_wckey("key", cluster="none", user=user)
        await db.delete_user(user)
        with pytest.raises(errors.NotFound):
            await db.association(of_user)
        assert {each.account for each in await db.associations(account="root")} == {"root"}
        await db.delete_association(own)
        await db.delete_account(account)
        for call in (db.delete_account(account), db.delete_user(user), db.delete_association(own)):
            with pytest.raises(errors.NotFound):
                await call
