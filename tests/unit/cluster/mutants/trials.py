"""Mutants that write what was not tried, forget what waits, or disturb the trials of others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_operator.cluster.memory.rollout import Outcome, Verdict
from slinky_operator.cluster.rollout.config import writing
from slinky_operator.cluster.rollout.preflight import attempts, decision, replacement, single_trial, state_copy
from slinky_operator.cluster.rollout.preflight.replacement import Replacement
from slinky_operator.cluster.trials import engine
from slinky_operator.cluster.trials.engine import Stage, Trial
from slinky_operator.cluster.view import View


def goes_live_without_trial(patch: pytest.MonkeyPatch) -> None:
    """A change is written although no disposable daemon has read it."""
    patch.setattr(decision, "trial", lambda *_, **__: Trial(Stage.PASSED))


def no_result_is_a_good_one(patch: pytest.MonkeyPatch) -> None:
    """A trial that was evicted, or never scheduled, has passed."""
    real = attempts.outcome_of

    def outcome(*args: Any) -> Verdict | None:
        found = real(*args)
        return replace(found, outcome=Outcome.PASSED) if found is not None else None

    patch.setattr(attempts, "outcome_of", outcome)


def jobs_are_not_tried(patch: pytest.MonkeyPatch) -> None:
    """A change that takes away what jobs refer to is not tried with a copy of them."""
    patch.setattr(writing, "_with_jobs", lambda *_: Trial(Stage.PASSED))


def forgets_what_waits(patch: pytest.MonkeyPatch) -> None:
    """A key that waits for jobs is not tried until they have ended."""
    patch.setattr(writing, "_waits", lambda _: False)


def deletes_the_trial_of_another(patch: pytest.MonkeyPatch) -> None:
    """The trial of what goes live takes the trial of what waits for a leftover."""
    patch.setattr(writing, "_later", lambda *_: ())


def leaves_trials_behind(patch: pytest.MonkeyPatch) -> None:
    """Pods and ConfigMaps of trials stay."""
    patch.setattr(engine, "leftovers", lambda *_: ())


def one_holds_up_all(patch: pytest.MonkeyPatch) -> None:
    """A NodeSet whose text is refused is not held back alone."""
    patch.setattr(writing, "changed", lambda *_: [])


def left_out_for_good(patch: pytest.MonkeyPatch) -> None:
    """A slurmd that could not be tried is never tried again."""
    patch.setattr(single_trial, "again", lambda *_: Trial(Stage.PASSED))


def replaced_without_rehearsal(patch: pytest.MonkeyPatch) -> None:
    """slurmctld's pod is replaced by one that has never started."""
    patch.setattr(replacement, "_look", lambda *_: Replacement(replacement.Stage.FREE))


def state_is_not_tried(patch: pytest.MonkeyPatch) -> None:
    """slurmctld of another release gets the state without reading a copy first."""
    patch.setattr(state_copy, "trial", lambda *_: Trial(Stage.PASSED))


def remembers_nothing(patch: pytest.MonkeyPatch) -> None:
    """What a trial has shown is forgotten: it is made again and again."""
    real = engine.follow

    def follow(view: View, *rest: Any) -> Trial:
        memory = view.snapshot.memory
        memory = replace(memory, rollout=replace(memory.rollout, verdicts={}))
        return real(replace(view, snapshot=replace(view.snapshot, memory=memory)), *rest)

    patch.setattr(engine, "follow", follow)
