"""Which nodes run which health checks: a new or changed check is tried on one node, and then runs on the others.

The ConfigMap of the NodeSet has the table that all nodes run, and, during a trial, a second one with the name of the
node that tries it. Once that node has reported that all checks of the second table pass, it becomes the first. A check
that fails in the trial, or cannot be run, drains nothing and stays on its node: either the node is bad or the check is,
and a person can tell. Another node tries it if that one is drained or goes.

The report of a node has the revision of the table that it has run, so a late one is not taken for the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from slinky_api.v1alpha1.nodeset.checks import OnFail
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slinky_operator.slurm.health_checks import reports, tables
from slinky_operator.slurm.health_checks.reports import Report
from slinky_operator.slurm.health_checks.tables import Table

AGAIN: Final = 600.0
"""Seconds after which the ConfigMap is read again: somebody may have changed or deleted it."""


@dataclass(frozen=True, slots=True)
class CheckTrial:
    """Which nodes run which checks, and what stands in the way."""

    is_wanted: bool = False
    """Whether the NodeSet has checks."""
    must_read: bool = False
    """Whether the ConfigMap has to be read first."""
    data: Mapping[str, str] | None = None
    """What the ConfigMap has to have; None if it has that, or nothing is decided."""
    begins: bool = False
    """Whether that begins a trial."""
    approves: bool = False
    """Whether that ends one: all nodes run what one has tried."""
    changed: tuple[str, ...] = ()
    """Names of the checks that are new, changed or removed, during a trial."""
    node: str = ""
    """The node that tries them; empty if there is none that could, or no trial."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Checks that have failed in the trial, and why."""
    not_run: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Checks that could not be run: why, by name of the node."""
    has_reported: bool = False
    """Whether the node of the trial has reported it."""


def choose(snapshot: Snapshot, live: Sequence[Member]) -> CheckTrial:
    """Choose who runs which checks.

    Parameters
    ----------
    snapshot
        The snapshot.
    live
        The pods that are neither being deleted nor ended.
    """
    health = snapshot.nodeset.spec.health
    if health is None or not health.checks or snapshot.nodeset.deleting:
        return CheckTrial()
    stored = snapshot.checks
    if stored is None:
        return CheckTrial(is_wanted=True, must_read=True)
    wanted, files = tables.table(health.checks)
    reported = {member.pod.node_name: report for member in live if (report := _report(member)) is not None}
    if wanted.revision == stored.approved.revision:
        return CheckTrial(
            is_wanted=True,
            must_read=snapshot.checks_are_old,
            data=_data(stored, files, wanted),
            not_run=_not_run(reported, wanted.lines),
        )
    node = stored.node if stored.node in (able := _able(snapshot, live, reported)) else min(able, default="")
    report = reported.get(node)
    if report is not None and report.revision != wanted.revision:
        report = None
    is_tried = stored.trial is not None and (stored.trial.revision, stored.node) == (wanted.revision, node)
    ignored = {check.name for check in health.checks if check.on_fail is OnFail.NOTHING}
    failed = {name: text for name, text in report.failed.items() if name not in ignored} if report is not None else {}
    lacking = _not_run({node: report}, wanted.lines) if report is not None else {}
    changed = tuple(
        name
        for name in sorted({*wanted.lines, *stored.approved.lines})
        if wanted.lines.get(name) != stored.approved.lines.get(name)
    )
    approves = is_tried and report is not None and not failed and not lacking and not report.pending
    return CheckTrial(
        is_wanted=True,
        must_read=snapshot.checks_are_old,
        data=_data(stored, files, wanted) if approves else _data(stored, files, stored.approved, wanted, node),
        begins=not approves and bool(node) and not is_tried,
        approves=approves,
        changed=changed,
        node=node,
        failed=failed,
        not_run=lacking,
        has_reported=report is not None,
    )


def _able(snapshot: Snapshot, live: Iterable[Member], reported: Mapping[str, Report]) -> frozenset[str]:
    """Nodes that could try checks: up, drained by nobody, with a pod that has the volume or that has reported."""
    return frozenset(
        member.pod.node_name
        for member in live
        if (node := member.record) is not None
        and member.ownership is RecordOwnership.OURS
        and not (node.is_drain or node.is_down or node.is_not_responding)
        and (member.pod.revision == snapshot.revision.hash or member.pod.node_name in reported)
    )


def _report(member: Member) -> Report | None:
    node = member.record
    return reports.read(node.comment) if node is not None and member.ownership is RecordOwnership.OURS else None


def _not_run(reported: Mapping[str, Report], known: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for node, report in sorted(reported.items()):
        for name, text in report.unknown.items():
            if name in known:
                found.setdefault(name, {})[node] = text
    return found


def _data(
    stored: StoredChecks, files: Mapping[str, str], approved: Table, trial: Table | None = None, node: str = ""
) -> Mapping[str, str] | None:
    """What the ConfigMap has to have; None if it has."""
    known = {**stored.data, **files}
    wanted = {tables.APPROVED: approved.text()}
    if trial is not None and node:
        wanted[tables.TRIAL] = trial.text(node)
    names = approved.files | (trial.files if trial is not None and node else frozenset())
    wanted |= {name: known[name] for name in sorted(names) if name in known}
    return None if stored.uid and wanted == stored.data else wanted
