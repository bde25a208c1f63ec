"""What is wrong with a tree as a whole is said by field, and nothing is written then."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from slinky_api.v1alpha1.cluster.accounting_tree import AccountTree
from slinky_operator.cluster.parts.accounts.faults import MOST_FAULTS, found
from tests.support.account_database import AccountDatabase
from tests.unit.cluster.parts.accounts.trees import apply

TREE = "spec.accounting.tree"


def account(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown parent": (
        {"accounts": [account("a", parent="z")]},
        f"{TREE}.accounts[a].parent: there is no account z in the tree",
    ),
    "circle": (
        {"accounts": [account("a", parent="b"), account("b", parent="c"), account("c", parent="a")]},
        "a is below b is below c is below a: an account cannot be below itself",
    ),
    "itself": ({"accounts": [account("a", parent="a")]}, "a is below a"),
    "root": ({"accounts": [account("root")]}, f"{TREE}.accounts[root]: root is Slurm's own account"),
    "unknown QOS": (
        {"accounts": [account("a", qos=["fast"])]},
        f"{TREE}.accounts[a].qos: there is no QOS fast in the tree",
    ),
    "unknown QOS that is preempted": (
        {"qos": [{"name": "fast", "preempts": ["slow"]}]},
        f"{TREE}.qos[fast].preempts: there is no QOS slow",
    ),
    "QOS preempts itself": ({"qos": [{"name": "fast", "preempts": ["fast"]}]}, "cannot preempt itself"),
    "default QOS that may not be used": (
        {"qos": [{"name": "fast"}], "accounts": [account("a", qos=["normal"], defaultQos="fast")]},
        f"{TREE}.accounts[a].defaultQos: fast is not among the QOS",
    ),
    "unknown account of a user": (
        {"users": [{"name": "u", "associations": [{"account": "z", "partition": "gpu"}]}]},
        f"{TREE}.users[u].associations[z, gpu].account: there is no account z",
    ),
    "user twice in an account": (
        {"accounts": [account("a", users=["u"])], "users": [{"name": "u", "associations": [{"account": "a"}]}]},
        f"{TREE}.users[u]: there are 2 entries for account a",
    ),
    "default account of others": (
        {"accounts": [account("a")], "users": [{"name": "u", "defaultAccount": "a"}]},
        f"{TREE}.users[u].defaultAccount: u is not in account a",
    ),
    "unknown coordinator": (
        {"accounts": [account("a", coordinators=["u"])]},
        f"{TREE}.accounts[a].coordinators: there is no user u",
    ),
    "resource twice": (
        {"accounts": [account("a", limits={"grpTresMins": "cpu=1,mem=2G,cpu=3"})]},
        f"{TREE}.accounts[a].limits.grpTresMins: cpu is there twice",
    ),
    "too deep": (
        {"accounts": [account("a0"), *(account(f"a{n}", parent=f"a{n - 1}") for n in range(1, 66))]},
        "more than 64 accounts above one another",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_named_with_its_field_and_stops_all_writes(case: str) -> None:
    tree, words = FAULTS[case]
    problems = found(AccountTree.model_validate(tree))
    assert any(words in problem for problem in problems), problems
    database = AccountDatabase()
    made = apply(database, tree)
    assert made.outcome.problems == problems
    assert (database.writes, made.done) == ([], ())


def test_only_the_first_faults_are_named() -> None:
    accounts = [account(f"a{number}", parent="z") for number in range(50)]
    assert len(found(AccountTree.model_validate({"accounts": accounts}))) == MOST_FAULTS


@pytest.mark.parametrize(
    ("tree", "field"),
    [
        ({"accounts": [account("Physics")]}, "accounts.0.name"),
        ({"accounts": [account("no")]}, "accounts.0.name"),
        ({"accounts": [account("0123")]}, "accounts.0.name"),
        ({"accounts": [account("a", users=["Alice"])]}, "accounts.0.users.0"),
        ({"accounts": [account("a", users=["a,b"])]}, "accounts.0.users.0"),
        ({"accounts": [account("a", description="x\ny")]}, "accounts.0.description"),
        ({"accounts": [account("a", limits={"maxJobs": -2})]}, "accounts.0.limits.maxJobs"),
        ({"accounts": [account("a", limits={"maxWall": "90"})]}, "accounts.0.limits.maxWall"),
        ({"accounts": [account("a", limits={"grpTres": "cpu"})]}, "accounts.0.limits.grpTres"),
        ({"qos": [{"name": "fast", "flags": ["Bogus"]}]}, "qos.0.flags.0"),
    ],
)
def test_what_slurm_would_change_or_not_take_is_refused_at_apply_time(tree: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        AccountTree.model_validate(tree)
    assert [".".join(map(str, one["loc"])) for one in caught.value.errors()] == [field]
