"""The cost of finding that a real slurmdbd has a tree of accounts. Prints, asserts nothing.

Run it alone: ``pytest tests/bench/accounts --capture=no --override-ini=testpaths=tests/bench``. The longest turn is CPU
time of the event loop's thread; the other times are by the clock, and by the CPU of the process.
"""

from __future__ import annotations

import os
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from slinky_api.v1alpha1.cluster.accounting_tree import AccountTree
from slinky_operator.cluster.parts.accounts.apply import AccountsRequest, apply_accounts
from slinky_operator.cluster.parts.accounts.comparison import Comparison
from slinky_operator.runtime.garbage_collection import freeze_caches, relax_collector
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import MintedToken, SlurmClient
from tests.bench.figures import Figures
from tests.support.accounting_host import CLUSTER, AccountingHost
from tests.support.mariadb_host import MariadbHost
from tests.support.turns import Turns

USERS = int(os.environ.get("BENCH_USERS", "2000"))
ACCOUNTS = 20
ROUNDS = 5


def tree(members: list[list[str]]) -> dict[str, Any]:
    accounts = [
        {"name": f"group{place}", "limits": {"grpTres": "cpu=64,mem=256G"}, "users": names}
        for place, names in enumerate(members)
    ]
    users = [{"name": name, "defaultAccount": f"group{place}"} for place, names in enumerate(members) for name in names]
    return {"accounts": accounts, "users": users}


@pytest.mark.timeout(1800)
async def test_accounts(figures: Figures) -> None:
    members = [[f"user{number}" for number in range(place, USERS, ACCOUNTS)] for place in range(ACCOUNTS)]
    turns = Turns()
    relax_collector()
    with MariadbHost(ensure_mariadb()) as mariadb:
        host = AccountingHost(ensure("26.05"), database=mariadb.database("bench"))
        with host:
            async with SlurmClient(host.url, MintedToken(host.jwt_key)) as client:
                connection = cast("ClusterClient", SimpleNamespace(client=client, namespace="ns", uid="uid"))
                last: Comparison | None = None

                async def settle(wanted: dict[str, Any]) -> tuple[float, float, float]:
                    """Apply a tree to the end; returns seconds, of CPU too, and the longest turn."""
                    nonlocal last
                    action = AccountsRequest("1", AccountTree.model_validate(wanted), CLUSTER)
                    turns.begin()
                    began, cpu = time.monotonic(), time.process_time()
                    while True:
                        last = (await apply_accounts(connection, action, last, time.monotonic)).outcome
                        assert (last.why, last.problems) == ("", ())
                        if not last.left:
                            return time.monotonic() - began, time.process_time() - cpu, turns.longest()

                _ = await settle(tree([[] for _ in members]))
                for place, names in enumerate(members):
                    # By sacctmgr, which makes many with one call.
                    host.sacctmgr("add", "user", ",".join(names), f"account=group{place}")
                _ = await settle(tree(members))
                freeze_caches()
                for _ in range(ROUNDS):
                    clock, cpu, turn = await settle(tree(members))
                    print(
                        f"\n{USERS} users: {clock * 1e3:.0f} ms, CPU {cpu * 1e3:.0f} ms, turn {turn * 1e3:.0f} ms",
                        end="",
                    )
                    figures.note("a comparison of accounts", "users", USERS, clock * 1e3, "ms")
                    figures.note("a comparison of accounts: CPU", "users", USERS, cpu * 1e3, "ms")
                    figures.note("a comparison of accounts: longest turn", "users", USERS, turn * 1e3, "ms of CPU")
                one = tree(members)
                one["accounts"].append({"name": "more", "users": [f"more{number}" for number in range(20)]})
                clock, cpu, _ = await settle(one)
                print(f"\n22 more writes: {clock:.1f} s, CPU {cpu:.2f} s")
