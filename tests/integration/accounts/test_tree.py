"""A tree in a real slurmdbd, through a real slurmrestd, of both releases: made, changed, put back, pruned."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from slinky_api.v1alpha1.cluster.accounting_tree import AccountTree
from slinky_operator.cluster.parts.accounts.apply import AccountsRequest, Applied, apply_accounts
from slinky_operator.cluster.parts.accounts.comparison import Comparison
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import MintedToken, SlurmClient
from tests.support.accounting_host import CLUSTER, AccountingHost
from tests.support.mariadb_host import MariadbHost

SITE: dict[str, Any] = {
    "qos": [
        {"name": "normal", "priority": 5},
        {
            "name": "urgent",
            "description": "for reviews",
            "priority": 100,
            "preempts": ["normal", "slow"],
            "preemptMode": "requeue",
            "graceTime": "90s",
            "flags": ["DenyOnLimit", "OverPartQOS"],
            "usageFactor": 2.5,
            "limits": {"maxJobsPerUser": 4, "maxTresPerUser": "cpu=8", "maxWall": "2h", "grpTres": "mem=8G"},
        },
        {"name": "slow", "usageThreshold": 0.25, "limits": {"maxTres": "cpu=1", "minTres": "cpu=1", "grpJobs": 0}},
    ],
    "accounts": [
        {"name": "physics", "parent": "science", "users": ["alice", "daemon"], "fairshare": 2147483647},
        {
            "name": "science",
            "description": "All of science",
            "organization": "site",
            "coordinators": ["alice"],
            "fairshare": 10,
            "qos": ["normal", "urgent"],
            "defaultQos": "normal",
            "limits": {
                "grpTres": "cpu=8,mem=16G",
                "grpJobs": 20,
                "grpWall": "30d",
                "grpTresMins": "cpu=100000",
                "maxJobs": 5,
                "maxSubmitJobs": 50,
                "maxWall": "1d12h",
                "maxTres": "cpu=4",
                "maxTresPerNode": "cpu=2",
            },
        },
    ],
    "users": [
        {
            "name": "carol",
            "adminLevel": "Operator",
            "defaultAccount": "physics",
            "associations": [
                {"account": "science", "limits": {"maxJobs": -1, "maxTres": "none", "maxSubmitJobs": 7}},
                {"account": "physics", "qos": ["urgent"], "defaultQos": "urgent", "fairshare": 3},
                {"account": "physics", "partition": "all", "limits": {"maxJobs": 0}},
            ],
        }
    ],
}


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbHost]:
    with MariadbHost(ensure_mariadb()) as host:
        yield host


@pytest.fixture(scope="module", params=["26.05", "24.11"])
def host(request: pytest.FixtureRequest, mariadb: MariadbHost) -> Iterator[AccountingHost]:
    series = request.param
    database = mariadb.database(f"tree_{series.replace('.', '_')}")
    with AccountingHost(ensure(series), database=database, enforce="limits") as instance:
        instance.add_node("w-0", cpus=4)
        yield instance


class Operator:
    """What the operator does with a tree, in one process after the other."""

    def __init__(self, host: AccountingHost) -> None:
        self.host = host
        self.last: Comparison | None = None

    async def batch(self, tree: dict[str, Any], version: str = "1") -> Applied:
        async with SlurmClient(self.host.url, MintedToken(self.host.jwt_key)) as client:
            connection = cast("ClusterClient", SimpleNamespace(client=client, namespace="ns", uid="uid"))
            action = AccountsRequest(version, AccountTree.model_validate(tree), CLUSTER)
            made = await apply_accounts(connection, action, self.last, time.monotonic)
        self.last = made.outcome
        return made

    async def apply(self, tree: dict[str, Any]) -> tuple[str, ...]:
        """Go on to the end, and see that nothing is left to do then; returns what was done."""
        made = await self.batch(tree)
        done = list(made.done)
        while made.outcome.left:
            assert not made.outcome.why, made.outcome.why
            made = await self.batch(tree)
            done += made.done
        assert (made.outcome.why, made.outcome.problems) == ("", ())
        again = await self.batch(tree)
        assert again.done == ()
        return tuple(done)


def shown(host: AccountingHost, what: str, *words: str, form: str) -> list[list[str]]:
    return host.sacctmgr("show", what, *words, f"format={form}") or []


async def test_a_tree_is_made_changed_put_back_and_pruned(host: AccountingHost) -> None:
    operator = Operator(host)
    await operator.apply(SITE)
    science = shown(
        host, "assoc", "where", "account=science", "user=", form="parentname,share,grptres,maxjobs,maxwall,qos"
    )
    assert science == [["root", "10", "cpu=8,mem=16G", "5", "1-12:00:00", "normal,urgent"]]
    assert shown(host, "user", "carol", form="admin,defaultaccount") == [["Operator", "physics"]]
    assert ["urgent", "100", "normal,slow", "requeue"] in shown(host, "qos", form="name,priority,preempt,preemptmode")

    # Somebody changes what the tree names, and what it does not name.
    host.sacctmgr("modify", "account", "science", "set", "maxjobs=9", "maxsubmitjobs=-1", "grpjobsaccrue=3")
    host.sacctmgr("modify", "qos", "urgent", "set", "priority=1", "flags-=DenyOnLimit")
    done = await operator.apply(SITE)
    assert len(done) == 2, done
    assert "QOS urgent: priority 1 -> 100" in done[0]
    assert done[1] == "association of account science: maxJobs 9 -> 5, maxSubmitJobs none -> 50"
    kept = shown(host, "assoc", "where", "account=science", "user=", form="grpjobsaccrue,grptres")
    assert kept == [["3", "cpu=8,mem=16G"]]

    # What the tree has not got is left alone, and deleted on request; what a job uses stays until that has ended.
    smaller = {"qos": SITE["qos"][:1], "accounts": [{"name": "science", "qos": ["normal"], "users": ["dave"]}]}
    assert await operator.apply(smaller) == (
        "association of account science: qos normal, urgent -> normal",
        "user dave in account science created",
    )
    assert operator.last is not None
    assert operator.last.counts.unmanaged == 1 + 3 + 2
    job = host.sbatch("sleep 600", "--uid=daemon", "--account=physics", "-n1")
    await operator.apply({**smaller, "prune": True})
    assert operator.last.held[:2] == (f"user daemon: job {job} uses it", f"account physics: job {job} uses it")
    assert {row[0] for row in shown(host, "user", form="user")} == {"root", "dave", "daemon"}
    host.run("scancel", str(job))
    host.wait_for(lambda: host.job_state(job) == "CANCELLED", "the job has ended")
    await operator.apply({**smaller, "prune": True})
    assert operator.last.held == ()
    assert {row[0] for row in shown(host, "user", form="user")} == {"root", "dave"}
    assert {row[0] for row in shown(host, "account", form="account")} == {"root", "science"}
    assert {row[0] for row in shown(host, "qos", form="name")} == {"normal"}


async def test_names_that_slurmrestd_reads_as_values_are_the_ones_that_are_refused(host: AccountingHost) -> None:
    tree = {"accounts": [{"name": "e5", "users": ["x1", "_a.b@c-d"]}, {"name": "none", "parent": "e5"}]}
    operator = Operator(host)
    assert len(await operator.apply(tree)) == 6
