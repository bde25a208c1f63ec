"""When the tree is compared with slurmdbd, and what the Cluster says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slinky_operator.cluster.actions import Action, EmitEvent, asks
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.parts.accounting.question import AccountingAnswer, AccountingQuestion
from slinky_operator.cluster.parts.accounts.part import AGAIN_AFTER, GO_ON_AFTER, LOOK_EVERY
from slinky_operator.cluster.parts.accounts.question import AccountsQuestion
from slinky_operator.slurm.conf import TextSource
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World, cluster_object

TREE = {"accounts": [{"name": "physics", "users": ["alice", "bob"]}]}
# A slurmdbd elsewhere, so that no pod of it needs to be ready here.
ACCOUNTING = {"external": {"host": "there"}, "tree": TREE}


def compared(world: World) -> list[Action]:
    return [one for one in world.plan().actions if asks(one, AccountsQuestion)]


def with_tree(**spec: Any) -> World:
    return settled({"accounting": ACCOUNTING, **spec})


def test_a_tree_is_applied_once_slurmdbd_answers_and_then_looked_at_now_and_then() -> None:
    world = with_tree()
    shown = world.condition("AccountsApplied")
    assert (shown["status"], shown["reason"]) == ("True", "AsExpected")
    assert shown["message"] == "slurmdbd has 1 accounts, 2 users, 0 QOS of the tree"
    assert world.raw["status"]["accounting"]["associations"] == 3
    assert compared(world) == []
    world.now = world.answer(AccountsQuestion).at + LOOK_EVERY - 1
    assert compared(world) == []
    world.now += 1
    assert len(compared(world)) == 1


def test_another_spec_is_applied_at_once() -> None:
    world = with_tree()
    metadata = {**world.raw["metadata"], "generation": 2}
    world.raw = {**world.raw, "metadata": metadata}
    assert len(compared(world)) == 1


def test_changes_that_are_left_go_on_soon_and_one_without_an_answer_is_tried_again() -> None:
    world = with_tree()
    last = world.answer(AccountsQuestion)
    for outcome, pause in ((replace(last, left=3), GO_ON_AFTER), (replace(last, why="gone"), AGAIN_AFTER)):
        world.memory.answers.note(AccountsQuestion, outcome)
        world.now = last.at + pause - 0.1
        assert compared(world) == []
        world.now += 0.2
        assert len(compared(world)) == 1
    world.now = last.at + 0.5
    slurmdbd = world.answer(AccountingQuestion)
    world.memory.answers.note(AccountingQuestion, replace(slurmdbd, doubted_at=world.now))
    assert len(compared(world)) == 1


def test_an_expensive_comparison_is_made_less_often() -> None:
    world = with_tree()
    world.memory.answers.note(AccountsQuestion, replace(world.answer(AccountsQuestion), cost=3.0))
    world.now = world.answer(AccountsQuestion).at + 500
    assert compared(world) == []
    world.now += 200
    assert len(compared(world)) == 1


def test_nothing_is_asked_or_written_while_slurmdbd_is_away_or_another_one() -> None:
    for answer in (AccountingAnswer(0.0, why="slurmdbd: gone"), AccountingAnswer(0.0)):
        world = with_tree()
        world.accounting = answer
        world.memory.answers.note(AccountsQuestion, None)
        world.memory.answers.note(AccountingQuestion, replace(answer, at=world.now))
        assert compared(world) == []
        world.settle()
        shown = world.condition("AccountsApplied")
        assert (shown["status"], shown["reason"]) == ("Unknown", "AccountingDown")
        assert "nothing is changed in slurmdbd meanwhile" in shown["message"]


def test_an_operator_that_has_just_started_keeps_what_was_known() -> None:
    world = with_tree()
    before = world.condition("AccountsApplied")
    world.memory = Memory("cluster-uid")
    world.slurm = None
    world.step()
    assert world.condition("AccountsApplied") == before


def test_what_is_refused_degrades_the_cluster_and_is_told() -> None:
    accounting = {**ACCOUNTING, "tree": {"accounts": [{"name": "a", "parent": "z"}]}}
    world = World(cluster_object({"accounting": accounting}))
    log = world.settle()
    shown = world.condition("AccountsApplied")
    assert (shown["status"], shown["reason"]) == ("False", "AccountsRefused")
    assert "spec.accounting.tree.accounts[a].parent" in shown["message"]
    assert world.condition("Degraded")["message"] == f"AccountsApplied: {shown['message']}"
    assert world.condition("Ready")["status"] == "True"
    told = [one.reason for one in log if isinstance(one, EmitEvent)]
    assert told.count("AccountsRefused") == 1


def test_what_jobs_use_and_what_is_left_is_said() -> None:
    world = with_tree()
    last = world.answer(AccountsQuestion)
    world.memory.answers.note(AccountsQuestion, replace(last, held=("account old: job 7 uses it",)))
    world.step()
    assert world.condition("AccountsApplied")["reason"] == "WaitingForJobs"
    assert world.condition("Degraded")["status"] == "False"
    world.memory.answers.note(AccountsQuestion, replace(last, too_many="400 of 400 users"))
    world.step()
    assert world.condition("AccountsApplied")["reason"] == "TooManyDeletions"
    assert world.condition("AccountsApplied")["message"] == "400 of 400 users"
    assert world.condition("Degraded")["message"] == "AccountsApplied: 400 of 400 users"
    world.memory.answers.note(AccountsQuestion, replace(last, counts=replace(last.counts, unmanaged=4)))
    world.step()
    assert world.condition("AccountsApplied")["message"].endswith("; 4 others are left as they are")
    world.memory.answers.note(AccountsQuestion, replace(last, left=12))
    world.step()
    assert world.condition("AccountsApplied")["reason"] == "AccountsPending"
    assert world.raw["status"]["accounting"]["pending"] == 12


def test_users_whom_passwd_does_not_have_are_named_and_left_out_until_it_has_them() -> None:
    world = World(
        cluster_object({"accounting": ACCOUNTING, "identity": {"passwd": {"configMapRef": {"name": "users"}}}})
    )

    def users(*names: str) -> None:
        lines = "".join(f"{name}:x:{2000 + place}:2000::/home/{name}:/bin/sh\n" for place, name in enumerate(names))
        world.texts["users"] = TextSource("users", exists=True, texts={"passwd": lines, "group": "all:x:2000:\n"})

    users("alice")
    world.settle()
    shown = world.condition("AccountsApplied")
    assert (shown["status"], shown["reason"]) == ("False", "UsersUnknown")
    assert "spec.identity.passwd does not have bob: left out; all else is applied" in shown["message"]
    assert world.raw["status"]["accounting"]["users"] == 1
    users("alice", "bob")
    world.settle()
    assert world.condition("AccountsApplied")["status"] == "True"
    assert world.raw["status"]["accounting"]["users"] == 2


def test_without_a_tree_there_is_no_condition_and_nothing_is_compared() -> None:
    world = with_tree()
    accounting = {"external": {"host": "there"}}
    world.raw = {**world.raw, "spec": {"accounting": accounting}}
    world.settle()
    assert compared(world) == []
    assert not [one for one in world.raw["status"]["conditions"] if one["type"] == "AccountsApplied"]
    assert "accounting" not in world.raw["status"]
