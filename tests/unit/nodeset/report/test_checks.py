"""What a NodeSet shows of its health checks: which are tried where, and which cannot be run."""

from __future__ import annotations

from dataclasses import replace

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.common import Condition
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.nodeset.model.pod_state import Ready
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import checks, status
from slinky_operator.nodeset.report.status import Report
from tests.unit.nodeset.builders import NOW, nodeset
from tests.unit.nodeset.health.checked import chosen, own, seen, stored, told

OLD, NEW = [own("disk")], [own("disk"), own("gpu")]


def report(snapshot: Snapshot) -> Report:
    states = {pod.name: Ready() for pod in snapshot.pods}
    found = Decisions(Layout(len(snapshot.pods)), states=states, checks=chosen(snapshot))
    return status.report(snapshot, found, NOW)


def shown(snapshot: Snapshot, kind: str = checks.KIND) -> Condition | None:
    return next((one for one in report(snapshot).status.conditions if one.type == kind), None)


def words(snapshot: Snapshot, kind: str = checks.KIND) -> tuple[str, str, str]:
    found = shown(snapshot, kind)
    assert found is not None
    return found.status, found.reason, found.message


def test_checks_that_all_nodes_run() -> None:
    assert words(seen(OLD, [told(OLD)] * 2, known=stored(OLD))) == ("True", "AsExpected", "1 check runs on all nodes")


def test_a_trial_names_the_node_and_the_checks_and_what_may_be_missing() -> None:
    snapshot = seen(NEW, [told(OLD)] * 2, known=stored(OLD, NEW, "a-0"))
    holds, reason, message = words(snapshot)

    assert (holds, reason) == ("False", "ChecksOnTrial")
    assert message.startswith("new, changed or removed checks: gpu. a-0 tries them first, and has not reported yet.")
    assert "/run/slurm/conf/checks-prolog" in message
    assert not report(snapshot).troubles


def test_without_a_node_it_says_so() -> None:
    _, reason, message = words(seen(NEW, [], known=stored(OLD)))

    assert (reason, "They wait for a node to be tried on" in message) == ("ChecksOnTrial", True)


def test_a_check_that_fails_in_its_trial_is_a_trouble_and_the_nodeset_is_ready() -> None:
    snapshot = seen(NEW, [told(NEW, "gpu failed GPU 3 is lost"), told(OLD)], known=stored(OLD, NEW, "a-0"))

    told_of = (
        "on a-0, which tries new or changed checks first: check gpu: GPU 3 is lost. No other node runs them, and they "
        "drain nothing. If the check is wrong, correct it; if the node is bad, drain it, and another one tries"
    )
    assert words(snapshot) == ("False", "CheckFailedOnTrial", told_of)
    (trouble,) = report(snapshot).troubles
    assert (trouble.reason, trouble.names) == (Reason.CHECK_FAILED_ON_TRIAL, frozenset({"a-0"}))
    assert words(snapshot, "Degraded")[:2] == ("True", "CheckFailedOnTrial")
    assert "checks fail on a-0" in report(snapshot).status.summary
    ready = shown(snapshot, "Ready")
    assert ready is not None
    assert "CheckFailedOnTrial" not in ready.reason


def test_checks_that_cannot_be_run_are_told_with_the_nodes() -> None:
    comments = [told(OLD, "disk unknown exit code 127")] * 500

    holds, reason, message = words(seen(OLD, comments, known=stored(OLD)))

    assert (holds, reason) == ("False", "CheckNotRun")
    assert message.startswith("could not be run: check disk on a-0, a-1, a-10 and 497 more: exit code 127.")
    assert len(message) < 500


def test_until_it_is_known_who_runs_what_the_last_condition_stands() -> None:
    snapshot = seen(OLD, [told(OLD)], known=None)
    assert shown(snapshot) is None
    conditions = report(replace(snapshot, checks=stored(OLD))).status.conditions
    before = snapshot.nodeset.status.model_copy(update={"conditions": conditions})
    later = replace(snapshot, nodeset=snapshot.nodeset.model_copy(update={"status": before}))

    assert words(later)[:2] == ("True", "AsExpected")


def test_without_checks_there_is_no_condition() -> None:
    assert shown(replace(seen(OLD, [""], known=StoredChecks()), nodeset=nodeset(health={"defaults": True}))) is None
