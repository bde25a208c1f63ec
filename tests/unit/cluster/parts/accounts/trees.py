"""Trees, at random and by hand, and one pass of applying them."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from slinky_api.v1alpha1.cluster.accounting_tree import AccountTree
from slinky_operator.cluster.parts.accounts import apply as accounts
from slinky_operator.cluster.parts.accounts.apply import AccountsRequest
from slinky_operator.cluster.parts.accounts.comparison import Comparison
from tests.support.account_database import CLUSTER, AccountDatabase

ACCOUNTS = ("a", "b", "c", "d")
USERS = ("alice", "bob", "carol")
QOS = ("fast", "slow")
LEVELS = st.sampled_from((None, "None", "Operator", "Administrator"))


def some(values: tuple[str, ...]) -> st.SearchStrategy[list[str] | None]:
    return st.none() | st.lists(st.sampled_from(values), min_size=1, unique=True)


def without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "maxJobs": st.sampled_from((-1, 0, 5)),
        "maxWall": st.sampled_from(("none", "30m", "1d12h")),
        "grpTres": st.sampled_from(("none", "cpu=4", "cpu=8,mem=4G,gres/gpu:h100=2")),
    },
)


@st.composite
def trees(draw: st.DrawFn, *, prune: bool = False) -> dict[str, Any]:
    """A tree without faults."""
    listed = [name for name in QOS if draw(st.booleans())]
    qos = [
        without_none(
            {
                "name": name,
                "priority": draw(st.sampled_from((None, 0, 10))),
                "flags": draw(st.sampled_from((None, [], ["DenyOnLimit"]))),
                "preempts": ["normal", *listed[:place]] if draw(st.booleans()) else None,
                "preemptMode": draw(st.sampled_from((None, "requeue"))),
                "limits": draw(st.sampled_from(({}, {"maxJobsPerUser": 3}, {"maxTres": "none"}))),
            }
        )
        for place, name in enumerate(listed)
    ]
    usable = ("normal", *listed)
    names = draw(st.lists(st.sampled_from(ACCOUNTS), unique=True))
    entries: dict[tuple[str, str], str] = {}
    for user in USERS:
        for account in names:
            where = draw(st.sampled_from(("", "account", "user")))
            if where:
                entries[user, account] = where
    accounts = [
        without_none(
            {
                "name": name,
                "parent": draw(st.sampled_from(("root", *names[:place]))),
                "description": draw(st.sampled_from((None, "x", "y"))),
                "fairshare": draw(st.sampled_from((None, 1, 2147483647))),
                "qos": draw(some(usable)),
                "coordinators": [user for user in USERS if (user, name) in entries] if draw(st.booleans()) else None,
                "limits": draw(LIMITS),
                "users": [user for user in USERS if entries.get((user, name)) == "account"],
            }
        )
        for place, name in enumerate(names)
    ]
    users: list[dict[str, Any]] = []
    for user in USERS:
        own = [account for account in names if (user, account) in entries]
        associations: list[dict[str, Any]] = [
            {"account": account, "limits": draw(LIMITS), "fairshare": draw(st.sampled_from((0, 3)))}
            for account in own
            if entries[user, account] == "user"
        ]
        has_entry: bool = draw(st.booleans())
        if associations or has_entry:
            default = draw(st.sampled_from((None, *own)))
            level = draw(LEVELS)
            found = {"name": user, "defaultAccount": default, "adminLevel": level, "associations": associations}
            users.append(without_none(found))
    return {"prune": prune, "qos": qos, "accounts": draw(st.permutations(accounts)), "users": users}


class Clock:
    """Time that passes when it is looked at."""

    def __init__(self, step: float = 0.0) -> None:
        self.now, self.step = 100.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def apply(
    database: AccountDatabase,
    tree: dict[str, Any],
    before: Comparison | None = None,
    *,
    version: str = "1",
    unknown: tuple[str, ...] = (),
    step: float = 0.0,
) -> accounts.Applied:
    """One pass; rules run here instead of in a thread, of which hundreds of passes would need as many."""
    action = AccountsRequest(version, AccountTree.model_validate(tree), CLUSTER, unknown)
    with patch.object(accounts, "run_in_thread", _decide):
        return asyncio.run(accounts.apply_accounts(database.client(), action, before, Clock(step)))


async def _decide(_key: Any, rules: Any, *args: Any) -> Any:
    return rules(*args)
