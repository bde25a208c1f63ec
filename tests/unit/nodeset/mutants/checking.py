"""Mutants that take reports of health checks for more than they prove."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from slinky_operator.nodeset.health import check_trial, checks
from slinky_operator.nodeset.health.check_trial import CheckTrial
from slinky_operator.nodeset.health.rules import Verdict
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.slurm.health_checks import tables
from slinky_operator.slurm.health_checks.reports import Report


def what_cannot_be_run_passes(patch: pytest.MonkeyPatch) -> None:
    """A check that could not be run in its trial is run everywhere."""
    patch.setattr(check_trial, "_not_run", lambda *_: {})


def late_reports_count(patch: pytest.MonkeyPatch) -> None:
    """A report of the checks before is taken for that of the trial."""
    real, report = check_trial.choose, check_trial._report

    def choose(snapshot: Snapshot, live: Any) -> CheckTrial:
        health = snapshot.nodeset.spec.health
        revision = tables.table(health.checks)[0].revision if health is not None else ""

        def read(member: Member) -> Report | None:
            found = report(member)
            return dataclasses.replace(found, revision=revision) if found is not None else None

        patch.setattr(check_trial, "_report", read)
        return real(snapshot, live)

    patch.setattr(check_trial, "choose", choose)


def no_trial(patch: pytest.MonkeyPatch) -> None:
    """A changed check runs on all nodes at once."""
    real = check_trial.choose

    def choose(snapshot: Snapshot, live: Any) -> CheckTrial:
        found, health = real(snapshot, live), snapshot.nodeset.spec.health
        if found.data is None or health is None or snapshot.checks is None:
            return found
        wanted, files = tables.table(health.checks)
        return dataclasses.replace(found, data=check_trial._data(snapshot.checks, files, wanted))

    patch.setattr(check_trial, "choose", choose)


def _reading(patch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    real = checks.judge

    def judge(member: Member, *rest: Any) -> Verdict:
        if member.record is None:
            return real(member, *rest)
        record = dataclasses.replace(member.record, comment=change(member.record.comment))
        return real(dataclasses.replace(member, record=record), *rest)

    patch.setattr(checks, "judge", judge)


def unknown_is_passed(patch: pytest.MonkeyPatch) -> None:
    """A node is well whose check could not be run."""
    _reading(patch, lambda comment: re.sub(r"\|[a-z]+ unknown[^|]*", "", comment))


def silence_is_passed(patch: pytest.MonkeyPatch) -> None:
    """A node is well that does not report any more."""
    real = checks.judge

    def judge(member: Member, wanted: Any, stored: Any, clear_seconds: int, now: datetime) -> Verdict:
        found = real(member, wanted, stored, clear_seconds, now)
        return found if found.matches else Verdict(is_well=True)

    patch.setattr(checks, "judge", judge)


def trials_drain(patch: pytest.MonkeyPatch) -> None:
    """A check counts on the node that tries it."""
    patch.setattr(checks, "_counts", lambda *_: True)
