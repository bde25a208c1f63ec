"""Whatever slurmdbd has, and whatever a tree wants: the changes lead there, in an order that works, and end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings

from slinky_api.v1alpha1.cluster.accounting_tree import AccountTree
from slinky_operator.cluster.parts.accounts.faults import found
from slurm_client.models import AssociationKey, Job, JobState
from tests.support.account_database import CLUSTER, AccountDatabase
from tests.unit.cluster.parts.accounts.trees import apply, trees


def settle(database: AccountDatabase, tree: dict[str, Any]) -> None:
    """Apply a tree to the end, and see that nothing is written afterwards."""
    made = apply(database, tree)
    moved = [one for one in made.outcome.problems if "slurmrestd cannot move it" in one]
    assert list(made.outcome.problems) == moved
    assert made.outcome.refused == frozenset()
    database.writes.clear()
    assert apply(database, tree).done == ()
    assert database.writes == []


@settings(max_examples=20, deadline=None)
@given(trees())
def test_a_tree_without_faults_is_there_after_one_pass(tree: dict[str, Any]) -> None:
    assert found(AccountTree.model_validate(tree)) == ()
    database = AccountDatabase()
    settle(database, tree)
    for account in tree["accounts"]:
        own = database.all_associations[AssociationKey(account["name"], CLUSTER)]
        assert own.parent_account == account["parent"]
        if "qos" in account:
            assert set(own.qos) == set(account["qos"])
        for user in account["users"]:
            assert AssociationKey(account["name"], CLUSTER, user) in database.all_associations
    for user in tree["users"]:
        for one in user["associations"]:
            there = database.all_associations[AssociationKey(one["account"], CLUSTER, user["name"])]
            assert there.shares == one["fairshare"]
            if one["limits"].get("maxJobs") == 5:
                assert there.limits.max_jobs == 5
        if "defaultAccount" in user:
            assert database.all_associations[AssociationKey(user["defaultAccount"], CLUSTER, user["name"])].is_default
        if user.get("adminLevel"):
            assert database.all_users[user["name"]].administrator_level == user["adminLevel"]


@settings(max_examples=20, deadline=None)
@given(trees(), trees())
def test_another_tree_takes_over_and_deletes_nothing(first: dict[str, Any], second: dict[str, Any]) -> None:
    database = AccountDatabase()
    settle(database, first)
    before = database.all_associations.keys(), database.all_qos.keys(), database.all_users.keys()
    settle(database, second)
    after = database.all_associations.keys(), database.all_qos.keys(), database.all_users.keys()
    assert all(old <= new for old, new in zip(before, after, strict=True))


@settings(max_examples=25, deadline=None)
@given(trees(), trees(prune=True))
def test_pruning_leaves_what_the_tree_has_and_nothing_else(first: dict[str, Any], second: dict[str, Any]) -> None:
    database = AccountDatabase()
    settle(database, first)
    parents = {key.account: one.parent_account for key, one in database.all_associations.items() if not key.user}
    wanted = {one["name"]: one["parent"] for one in second["accounts"]}
    moved = any(name in wanted and wanted[name] != parent for name, parent in parents.items())
    if moved:
        # What cannot be moved may keep an account that is to go.
        apply(database, second)
    else:
        settle(database, second)
        assert database.all_accounts.keys() == {"root", *wanted}
        # A QOS that another preempts, or that somebody who stays may use, is kept.
        used = {name for one in database.all_qos.values() for name in one.preempts}
        used |= {name for one in database.all_associations.values() for name in (*one.qos, one.default_qos)}
        assert database.all_qos.keys() - used == {"normal", *(one["name"] for one in second["qos"])} - used
    named = {user for one in second["accounts"] for user in one["users"]} | {one["name"] for one in second["users"]}
    members = {key.user for key in database.all_associations} - {""}
    assert members <= {"root", *named}
    assert {"root", *wanted} <= database.all_accounts.keys()
    assert {
        AssociationKey("root", CLUSTER),
        AssociationKey("root", CLUSTER, "root"),
    } <= database.all_associations.keys()


@settings(max_examples=20, deadline=None)
@given(trees(), trees(prune=True))
def test_nothing_is_deleted_under_a_job_or_for_another_cluster(first: dict[str, Any], second: dict[str, Any]) -> None:
    database = AccountDatabase(others=("elsewhere",))
    settle(database, first)
    for key, one in list(database.all_associations.items()):
        if key.cluster == CLUSTER and key.account in {"root", "a"}:
            other = AssociationKey(key.account, "elsewhere", key.user)
            database.all_associations[other] = replace(one, cluster="elsewhere")
    users = sorted(key.user for key in database.all_associations if key.user in {"alice", "bob"})
    held = [key for key in database.all_associations if key.user in users][:1]
    database.jobs_left = tuple(
        Job(id=7, state=JobState("RUNNING"), account=key.account, user=key.user, qos="fast") for key in held
    )
    kept = {key for key in database.all_associations if key in held or key.cluster == "elsewhere"}
    qos = database.all_qos.keys()
    # The model fails at a deletion under a job.
    apply(database, second)
    assert kept <= database.all_associations.keys()
    assert qos <= database.all_qos.keys()
