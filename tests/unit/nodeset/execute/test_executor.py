"""What is still executed of a plan once a part of it has failed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from slinky_operator.nodeset.execute import delete_pods, finalizer, slurm_writes
from slinky_operator.nodeset.execute.context import PassContext, PassOutcome
from slinky_operator.nodeset.execute.executor import Executor
from slinky_operator.nodeset.model.actions import DeletePods, DeleteRecords, Drain, MarkDown, RemoveFinalizer
from slurm_client import errors


@pytest.mark.parametrize(("fails", "let_go"), [(True, 0), (False, 1)])
async def test_a_nodeset_is_not_let_go_in_the_pass_in_which_slurm_goes_away(
    monkeypatch: pytest.MonkeyPatch, fails: bool, let_go: int
) -> None:
    done = []

    async def delete_records(context: PassContext, names: Any) -> None:
        if fails:
            raise errors.Timeout("no answer")

    async def letting_go(context: PassContext, action: RemoveFinalizer) -> None:
        done.append(context)

    monkeypatch.setattr(slurm_writes, "delete_records", delete_records)
    monkeypatch.setattr(finalizer, "remove_finalizer", letting_go)
    context: Any = SimpleNamespace(outcome=PassOutcome(), unseen=False, written_at=None)

    outcome = await Executor(context).carry_out([DeleteRecords(("a-0",)), RemoveFinalizer()])

    assert len(done) == let_go
    assert (outcome.slurm_error is not None) is fails


@pytest.mark.parametrize("error", [errors.Timeout("no answer"), errors.InvalidRequest("no")])
async def test_a_nodeset_whose_jobs_are_given_up_waits_for_no_answer(
    monkeypatch: pytest.MonkeyPatch, error: errors.SlurmError
) -> None:
    done = []

    async def mark_down(context: PassContext, names: Any) -> None:
        raise error

    async def letting_go(context: PassContext, action: RemoveFinalizer) -> None:
        done.append(context)

    monkeypatch.setattr(slurm_writes, "mark_down", mark_down)
    monkeypatch.setattr(finalizer, "remove_finalizer", letting_go)
    context: Any = SimpleNamespace(outcome=PassOutcome(), unseen=False, written_at=None)

    await Executor(context).carry_out([MarkDown(("a-0",)), RemoveFinalizer(anyway=True)])

    assert done == [context]


async def test_a_nodeset_is_let_go_after_slurm_has_taken_jobs_back() -> None:
    context: Any = SimpleNamespace(outcome=PassOutcome(downed=["a-0"]), nodeset=None)

    await finalizer.remove_finalizer(context, RemoveFinalizer())

    assert context.outcome.kept == ["Slurm requeues or fails the jobs of a-0"]


@pytest.mark.parametrize(
    ("error", "refused", "kept"),
    [
        (
            errors.InvalidTransition("Invalid node state transition"),
            ["Slurm refuses: Invalid node state transition"],
            [],
        ),
        (errors.Conflict("Requested nodes are busy"), ["Slurm refuses: Requested nodes are busy"], []),
        (errors.NotFound("Invalid node name"), [], ["Slurm: Invalid node name"]),
    ],
)
async def test_what_slurm_says_no_to_holds_nothing_else_up(
    monkeypatch: pytest.MonkeyPatch, error: errors.SlurmError, refused: list[str], kept: list[str]
) -> None:
    done = []

    async def drain_nodes(context: PassContext, action: Drain) -> None:
        raise error

    async def delete_checked(context: PassContext, pods: Any, *, for_health: bool) -> None:
        done.append(pods)

    monkeypatch.setattr(slurm_writes, "drain_nodes", drain_nodes)
    monkeypatch.setattr(delete_pods, "delete_checked", delete_checked)
    context: Any = SimpleNamespace(outcome=PassOutcome(), unseen=False, written_at=None)

    outcome = await Executor(context).carry_out([Drain(("a-0",), "slurm-operator: scale-in (ns/a)"), DeletePods(())])

    assert len(done) == 1
    assert outcome.slurm_error is None
    assert (outcome.refusals, outcome.kept) == (refused, kept)
