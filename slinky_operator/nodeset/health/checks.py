"""What the health checks of a node say of it, by the report in its comment in Slurm.

A check that has failed makes its node bad at once; the budget decides whether it is drained (`choice`). One that could
not be run proves nothing: no drain begins for it, and a drain for that check does not end. A check that is new or
changed counts only where all nodes run it (`check_trial`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from slinky_api.v1alpha1.nodeset.checks import Check, OnFail
from slinky_operator.nodeset.health.rules import EVER, Match, Verdict
from slinky_operator.nodeset.model import kubernetes_nodes
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.nodeset.model.member import Member
from slinky_operator.slurm.health_checks import reports

MOST_NAMED: Final = 4
"""Checks of one node that are named as failed: a reason has room for no more."""

_IN_REASON: Final = re.compile(r"[:;] check (?P<name>[a-z0-9-]+):")


def draining(checks: Iterable[Check]) -> frozenset[str]:
    """Names of the checks for which nodes are drained."""
    return frozenset(check.name for check in checks if check.on_fail is OnFail.DRAIN)


def judge(
    member: Member, wanted: frozenset[str], stored: StoredChecks | None, clear_seconds: int, now: datetime
) -> Verdict:
    """Judge a node by its checks.

    Parameters
    ----------
    member
        The pod with its node.
    wanted
        Names of the checks for which nodes are drained.
    stored
        Which nodes run which; None if that is not known yet, and then nothing is proven.
    clear_seconds
        Seconds for which no check may have failed.
    now
        The time; timezone-aware.
    """
    node = member.record
    if not wanted or node is None:
        return Verdict(is_well=True)
    drained_for = wanted.intersection(_IN_REASON.findall(node.reason)) if member.drained_for else frozenset[str]()
    report = reports.read(node.comment)
    if report is None or stored is None:
        return Verdict(is_well=not drained_for)
    failed = [name for name in sorted(report.failed) if name in wanted and _counts(stored, report.revision, name)]
    matches = tuple(
        Match(
            f"check {name}",
            report.since,
            kubernetes_nodes.one_line(f"check {name}: {report.failed[name]}"),
            is_check=True,
        )
        for name in failed[:MOST_NAMED]
    )
    if matches or not drained_for.isdisjoint({*report.unknown, *report.pending, *report.failed}):
        return Verdict(matches)
    # The clock of a node may be wrong, and then no time has to pass by it.
    age = (now - (report.since or EVER)).total_seconds()
    left = clear_seconds - age if 0 <= age < clear_seconds else 0
    return Verdict(is_well=not left, well_in=left or None)


def both(one: Verdict, other: Verdict) -> Verdict:
    """What two verdicts say together."""
    matches = tuple(sorted((*one.matches, *other.matches), key=lambda match: (match.since or EVER, match.type)))
    bad_in = [later for later in (one.bad_in, other.bad_in) if later is not None]
    well_in = [later for later in (one.well_in, other.well_in) if later is not None]
    may_be_well = all(verdict.is_well or verdict.well_in is not None for verdict in (one, other))
    return Verdict(
        matches,
        is_well=one.is_well and other.is_well,
        bad_in=None if matches else min(bad_in, default=None),
        well_in=max(well_in, default=None) if may_be_well else None,
    )


def _counts(stored: StoredChecks, revision: str, name: str) -> bool:
    """Whether a check has been tried already, in the version that a node with this revision runs.

    A report of any other revision is late: of checks that have changed since, or of a trial that was given up.
    """
    approved, trial = stored.approved.lines.get(name), stored.trial
    if approved is None or revision == stored.approved.revision:
        return approved is not None
    return trial is not None and revision == trial.revision and approved == trial.lines.get(name)
