"""What one pass does in slurmdbd: in batches, without what Slurm refuses, and nothing while it does not answer."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
import yaml

from hack.localkube.paths import PROJECT
from slurm_client import errors
from slurm_client.models import AssociationKey, Job, JobState, Qos
from tests.support.account_database import CLUSTER, AccountDatabase
from tests.unit.cluster.parts.accounts.trees import apply

SITE: dict[str, Any] = {
    "qos": [{"name": "urgent", "priority": 100, "preempts": ["normal"], "graceTime": "5m"}],
    "accounts": [
        {"name": "physics", "parent": "science", "users": ["alice", "bob"], "limits": {"grpTres": "cpu=8,mem=16G"}},
        {"name": "science", "coordinators": ["alice"], "fairshare": 10, "qos": ["normal", "urgent"]},
    ],
    "users": [
        {"name": "carol", "adminLevel": "Operator", "defaultAccount": "science",
         "associations": [
             {"account": "physics", "limits": {"maxJobs": 1, "maxWall": "1d12h"}}, {"account": "science"}]},
    ],
}  # fmt: skip


def settled() -> AccountDatabase:
    database = AccountDatabase()
    assert apply(database, SITE).outcome.settled
    database.writes.clear()
    return database


def test_changes_are_told_in_the_order_in_which_they_work() -> None:
    made = apply(AccountDatabase(), SITE)
    assert made.done == (
        "QOS urgent created",
        "QOS urgent: preempts none -> normal",
        "account science created",
        "association of account science created",
        "account physics created",
        "association of account physics created",
        "user carol in account science created",
        "user carol in account physics created",
        "user alice in account physics created",
        "user bob in account physics created",
        "user carol: adminLevel None -> Operator",
        "account science: coordinators none -> alice",
    )
    found = made.outcome
    assert (found.counts.accounts, found.counts.users, found.counts.associations, found.counts.qos) == (2, 3, 6, 1)
    assert found.counts.unmanaged == found.pending == 0


def test_what_somebody_changed_is_put_back_and_told_with_both_values() -> None:
    database = settled()
    key = AssociationKey("physics", CLUSTER, "carol")
    there = database.all_associations[key]
    limits = type(there.limits)(max_jobs=5, max_wall_per_job=timedelta(hours=1), max_submit_jobs=3)
    database.all_associations[key] = type(there)(account="physics", cluster=CLUSTER, user="carol", limits=limits)
    made = apply(database, SITE)
    assert made.done == ("user carol in account physics: maxJobs 5 -> 1, maxWall 1h -> 1d12h",)
    # What the tree does not name is not touched.
    assert database.all_associations[key].limits.max_submit_jobs == 3


def test_what_the_tree_does_not_name_is_left_and_counted() -> None:
    database = settled()
    database.all_qos["other"] = Qos(name="other")
    made = apply(database, {})
    assert (made.done, database.writes) == ((), [])
    assert made.outcome.counts.unmanaged == 2 + 3 + 2
    assert made.outcome.settled


def test_a_batch_ends_when_time_is_up_and_the_next_one_goes_on() -> None:
    database = AccountDatabase()
    outcome, passes = None, 0
    while outcome is None or outcome.left:
        made = apply(database, SITE, outcome, step=1.0)
        assert len(made.done) <= 3
        outcome, passes = made.outcome, passes + 1
    assert passes > 3
    assert outcome.settled
    assert not apply(database, SITE).done


def test_what_slurm_refuses_is_told_once_with_its_field_and_all_else_is_done() -> None:
    database = AccountDatabase(refuses={"bob": errors.InvalidRequest("no such thing")})
    made = apply(database, SITE)
    assert made.outcome.problems == (
        "spec.accounting.tree.accounts[physics].users[bob]: user bob in account physics: no such thing",
    )
    assert (made.outcome.pending, made.outcome.left, made.outcome.settled) == (1, 0, False)
    assert len(made.done) == 11
    database.writes.clear()
    # It is tried again the next time, and not twice within batches that belong together.
    again = apply(database, SITE, made.outcome)
    assert database.writes == ["create association bob"]
    assert again.outcome.problems == made.outcome.problems


def test_a_refusal_does_not_use_up_the_time_of_the_next_batch() -> None:
    database = AccountDatabase(refuses={"urgent": errors.InvalidRequest("no")})
    tree = {"qos": [{"name": "urgent"}, {"name": "slow"}, {"name": "slower"}, {"name": "slowest"}]}
    first = apply(database, tree, step=1.0)
    assert first.outcome.left
    second = apply(database, tree, first.outcome, step=1.0)
    assert database.writes.count("create QOS urgent") == 1
    assert second.outcome.problems == first.outcome.problems


@pytest.mark.parametrize("error", [errors.DatabaseDown("gone"), errors.Timeout("late"), errors.PermissionDenied("no")])
def test_without_an_answer_nothing_is_written(error: errors.SlurmError) -> None:
    database = AccountDatabase(down=error)
    made = apply(database, SITE)
    assert str(error) in made.outcome.why
    assert (database.writes, made.done) == ([], ())
    assert not made.outcome.settled


def test_a_change_without_an_answer_ends_the_batch() -> None:
    database = AccountDatabase(refuses={"science": errors.DatabaseDown("gone")})
    made = apply(database, SITE)
    assert made.outcome.why.startswith("account science: gone")
    assert database.writes[-1] == "create account science"
    assert made.outcome.left == 10


def test_an_account_below_another_one_is_named_with_what_to_do() -> None:
    database = settled()
    accounts = [{**one, "parent": "root"} for one in SITE["accounts"]]
    made = apply(database, {**SITE, "accounts": accounts})
    assert made.done == ()
    assert "run sacctmgr modify account physics set parent=root" in made.outcome.problems[0]


def test_users_who_are_not_known_are_left_out_and_not_deleted() -> None:
    database = settled()
    made = apply(database, {**SITE, "prune": True}, unknown=("alice",))
    assert AssociationKey("physics", CLUSTER, "alice") in database.all_associations
    assert made.done == ("account science: coordinators alice -> none",)
    fresh = AccountDatabase()
    apply(fresh, SITE, unknown=("alice",))
    assert "alice" not in fresh.all_users
    assert "bob" in fresh.all_users


def test_what_a_job_uses_is_not_deleted_and_the_job_is_named() -> None:
    database = settled()
    job = Job(id=42, state=JobState("RUNNING"), account="physics", user="bob", qos="urgent")
    database.jobs_left = (job,)
    made = apply(database, {"prune": True})
    assert made.outcome.held == (
        "user bob: job 42 uses it",
        "account physics: job 42 uses it",
        "account science: what is below it is kept",
        "QOS urgent: job 42 uses it",
    )
    assert database.all_accounts.keys() == {"root", "physics", "science"}
    assert database.all_users.keys() == {"root", "bob"}
    database.jobs_left = ()
    assert apply(database, {"prune": True}).outcome.settled
    assert database.all_accounts.keys() == {"root"}
    assert database.all_qos.keys() == {"normal"}


def test_of_what_other_clusters_use_only_this_cluster_s_part_goes() -> None:
    database = settled()
    database.others = ("elsewhere",)
    for key in (AssociationKey("physics", CLUSTER), AssociationKey("physics", CLUSTER, "bob")):
        other = AssociationKey(key.account, "elsewhere", key.user)
        database._associate(other, qos=())
    apply(database, {"prune": True})
    assert {"physics", "bob"} <= {*database.all_accounts, *database.all_users}
    assert {key.cluster for key in database.all_associations if key.account == "physics"} == {"elsewhere"}
    assert "urgent" in database.all_qos


@pytest.mark.parametrize("key", [AssociationKey("physics", "elsewhere"), AssociationKey("physics", "elsewhere", "bob")])
def test_what_another_cluster_takes_over_since_the_list_was_read_is_not_deleted(key: AssociationKey) -> None:
    database = settled()
    database.others = ("elsewhere",)

    def take_over() -> None:
        database._associate(key, qos=())

    database.after_reading = take_over
    made = apply(database, {"prune": True})
    assert made.outcome.left
    assert not made.outcome.settled
    assert key in database.all_associations
    assert "physics" in database.all_accounts
    assert ("bob" in database.all_users) or not key.user
    # The next comparison has seen it: this cluster's part goes.
    database.after_reading = lambda: None
    assert apply(database, {"prune": True}, made.outcome).outcome.left == 0
    assert {one.cluster for one in database.all_associations if one.account == "physics"} == {"elsewhere"}


def test_a_qos_stays_if_another_cluster_registers_since_the_list_was_read() -> None:
    database = settled()

    def register() -> None:
        if "delete account science" in database.writes:
            database.others = ("elsewhere",)

    delete = database.delete_account

    async def deleted(name: str, **limits: float) -> None:
        await delete(name, **limits)
        register()

    database.delete_account = deleted  # type: ignore[method-assign]
    made = apply(database, {"prune": True})
    assert "urgent" in database.all_qos
    assert made.outcome.left == 1


def many(count: int, **more: Any) -> dict[str, Any]:
    users = [f"user{number}" for number in range(count)]
    return {"accounts": [{"name": "physics", "users": users}], **more}


def test_a_tree_that_has_lost_its_list_deletes_nothing_until_the_number_is_confirmed() -> None:
    database = AccountDatabase()
    assert apply(database, many(400)).outcome.settled
    made = apply(database, many(0, prune=True))
    assert made.done == ()
    assert made.outcome.too_many == (
        "spec.accounting.tree.prune would delete 400 of 400 users, more than a quarter at once: nothing is deleted. If "
        "the tree is as it is meant to be, set spec.accounting.tree.pruneAtMost to 400; else put back what it has lost"
    )
    assert not made.outcome.settled
    again = apply(database, many(0, prune=True, pruneAtMost=399))
    assert "more than pruneAtMost, which is 399" in again.outcome.too_many
    assert apply(database, many(0, prune=True, pruneAtMost=400)).outcome.settled
    assert database.all_users.keys() == {"root"}


def test_associations_of_users_who_stay_count_too() -> None:
    database = AccountDatabase()
    assert apply(database, many(40)).outcome.settled
    users = [{"name": f"user{number}"} for number in range(40)]
    made = apply(database, {**many(0), "users": users, "prune": True})
    assert "would delete 40 of 40 associations" in made.outcome.too_many


@pytest.mark.parametrize(("there", "going", "goes"), [(10, 10, True), (11, 11, False), (60, 15, True), (60, 16, False)])
def test_a_quarter_may_go_at_once_and_ten_always(there: int, going: int, *, goes: bool) -> None:
    database = AccountDatabase()
    assert apply(database, many(there)).outcome.settled
    made = apply(database, many(there - going, prune=True))
    assert (made.outcome.too_many == "") is goes
    assert len(made.done) == (going if goes else 0)


def test_a_user_gets_another_default_before_it_goes() -> None:
    database = settled()
    users = [{"name": "carol", "associations": [{"account": "physics"}]}]
    made = apply(database, {**SITE, "users": users, "prune": True})
    assert made.done == (
        "user carol in account physics: made the default account instead of science",
        "user carol in account science deleted",
    )


def documented() -> dict[str, Any]:
    """The tree in the documentation of accounts."""
    text = (PROJECT / "docs" / "accounts.md").read_text()
    (found,) = re.findall(r"<!-- tree: [^>]*-->\n```yaml\n(.*?)```", text, flags=re.DOTALL)
    tree: dict[str, Any] = yaml.safe_load(found)["spec"]["accounting"]["tree"]
    return tree


def sample() -> dict[str, Any]:
    """The tree of the sample."""
    text = (PROJECT / "config" / "samples" / "more" / "cluster-accounts.yaml").read_text()
    tree: dict[str, Any] = yaml.safe_load(text)["spec"]["accounting"]["tree"]
    return tree


@pytest.mark.parametrize("tree", [documented(), sample()], ids=["documentation", "sample"])
def test_the_trees_that_are_shown_are_applied_as_they_are(tree: dict[str, Any]) -> None:
    database = AccountDatabase()
    made = apply(database, tree)
    assert made.outcome.settled
    assert not made.outcome.problems
    assert database.all_associations[AssociationKey("physics", CLUSTER)].parent_account == "science"
    assert apply(database, tree).done == ()
