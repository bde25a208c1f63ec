"""Builders for tests of health checks: a NodeSet whose nodes have reported, and its ConfigMap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slinky_api.v1alpha1.nodeset.checks import Check
from slinky_operator.nodeset.health import check_trial
from slinky_operator.nodeset.health.check_trial import CheckTrial
from slinky_operator.nodeset.model import check_tables
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.slurm.health_checks import reports, tables
from tests.unit.nodeset.builders import NOW, a_pod, node, nodeset

SINCE = int(NOW.timestamp()) - 1000


def own(name: str, script: str = "exit 0", **given: Any) -> dict[str, Any]:
    """A check of the user's own."""
    return {"name": name, "script": f"#!/bin/sh\n{script}\n", **given}


def revision_of(checks: Sequence[Mapping[str, Any]]) -> str:
    """Revision of their table."""
    return tables.table(map(Check.model_validate, checks))[0].revision


def told(checks: Sequence[Mapping[str, Any]], *results: str, since: int = SINCE) -> str:
    """The comment of a node that runs these checks."""
    return "|".join((f"{reports.PREFIX}{revision_of(checks)} {since}", *results))


def stored(
    checks: Sequence[Mapping[str, Any]], trial: Sequence[Mapping[str, Any]] | None = None, on: str = ""
) -> StoredChecks:
    """The ConfigMap with which these checks run on all nodes, and others on one."""
    approved, files = tables.table(map(Check.model_validate, checks))
    data = {tables.APPROVED: approved.text(), **files}
    if trial is not None:
        tried, more = tables.table(map(Check.model_validate, trial))
        data |= {tables.TRIAL: tried.text(on), **more}
    return check_tables.read({"metadata": {"name": "x", "uid": "cm", "resourceVersion": "1"}, "data": data})


def seen(
    checks: Sequence[Mapping[str, Any]],
    comments: Sequence[str],
    *,
    known: StoredChecks | None,
    reasons: Mapping[int, str] | None = None,
    words: Mapping[int, str] | None = None,
    **health: Any,
) -> Snapshot:
    """A NodeSet with a node for each comment."""
    of = nodeset(health={"checks": list(checks), **health}, replicas=len(comments))
    pods, records = [], {}
    for number, comment in enumerate(comments):
        name, reason = f"a-{number}", (reasons or {}).get(number, "")
        current = revision.of(of)
        pods.append(a_pod(name=name, ordinal=number, uid=f"u{number}", host=f"h-{number}", revision=current))
        shown = (words or {}).get(number, "IDLE+DRAIN+DYNAMIC_NORM" if reason else "IDLE+DYNAMIC_NORM")
        records[name] = node(shown, name=name, instance_id=f"u{number}", reason=reason, comment=comment)
    return Snapshot(
        of,
        ClusterFacts("c", listed=True),
        SlurmFacts(readable=True, nodes=records),
        Revision(revision.of(of)),
        pods=tuple(pods),
        hosts={},
        checks=known,
    )


def chosen(snapshot: Snapshot) -> CheckTrial:
    """Who runs which checks."""
    return check_trial.choose(snapshot, snapshot.members)


def after(known: StoredChecks, found: CheckTrial) -> StoredChecks:
    """The ConfigMap once it is written."""
    if found.data is None:
        return known
    return check_tables.read({"metadata": {"uid": "cm", "resourceVersion": "2"}, "data": dict(found.data)})
