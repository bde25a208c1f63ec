"""Which nodes run which checks: new ones run on one node until they have passed there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slinky_operator.nodeset.health.check_trial import CheckTrial
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.slurm.health_checks import tables
from tests.unit.nodeset.builders import nodeset
from tests.unit.nodeset.health.checked import after, chosen, own, seen, stored, told

OLD, NEW = [own("disk")], [own("disk"), own("gpu")]
CHANGED = [own("disk", "exit 1")]


def test_a_nodeset_without_checks_reads_nothing() -> None:
    snapshot = seen(OLD, [""], known=None)

    assert chosen(replace(snapshot, nodeset=nodeset(health={"defaults": True}))) == CheckTrial()
    assert chosen(snapshot) == CheckTrial(is_wanted=True, must_read=True)


def test_the_first_checks_run_on_one_node_then_on_all() -> None:
    known = StoredChecks()
    found = chosen(seen(OLD, ["", ""], known=known))
    assert (found.begins, found.node, found.changed) == (True, "a-0", ("disk",))
    known = after(known, found)
    assert (known.approved.lines, known.node) == ({}, "a-0")

    found = chosen(seen(OLD, ["", ""], known=known))
    assert (found.data, found.begins, found.has_reported) == (None, False, False)

    found = chosen(seen(OLD, [told(OLD), ""], known=known))
    assert (found.approves, found.begins) == (True, False)
    known = after(known, found)
    assert (list(known.approved.lines), known.trial) == (["disk"], None)

    found = chosen(seen(OLD, [told(OLD), ""], known=known))
    assert (found.data, found.changed, found.node) == (None, (), "")


@pytest.mark.parametrize("wanted", [NEW, CHANGED])
def test_while_one_node_tries_the_others_run_what_they_ran(wanted: list[dict[str, str]]) -> None:
    known = after(stored(OLD), chosen(seen(wanted, [told(OLD)] * 3, known=stored(OLD))))

    assert known.approved == stored(OLD).approved
    assert known.trial is not None
    assert known.trial.lines.keys() == {one["name"] for one in wanted}
    assert known.approved.files | known.trial.files == known.data.keys() - {tables.APPROVED, tables.TRIAL}


def test_a_late_report_of_other_checks_approves_nothing() -> None:
    found = chosen(seen(NEW, [told(OLD)], known=stored(OLD, NEW, "a-0")))

    assert (found.approves, found.has_reported) == (False, False)


def test_a_check_that_fails_where_it_is_tried_stays_there() -> None:
    found = chosen(seen(NEW, [told(NEW, "gpu failed lost"), told(OLD)], known=stored(OLD, NEW, "a-0")))

    assert (found.data, found.approves, found.failed) == (None, False, {"gpu": "lost"})


def test_one_that_drains_nothing_may_fail_where_it_is_tried() -> None:
    quiet = [own("gpu", onFail="Nothing")]

    assert chosen(seen(quiet, [told(quiet, "gpu failed lost")], known=stored(OLD, quiet, "a-0"))).approves


@pytest.mark.parametrize("result", ["gpu unknown exit code 127", "gpu pending"])
def test_one_that_could_not_be_run_has_not_passed(result: str) -> None:
    found = chosen(seen(NEW, [told(NEW, result)], known=stored(OLD, NEW, "a-0")))

    assert (found.data, found.approves) == (None, False)


@pytest.mark.parametrize("words", ["IDLE+DRAIN+DYNAMIC_NORM", "DOWN+DYNAMIC_NORM", "IDLE+NOT_RESPONDING+DYNAMIC_NORM"])
def test_another_node_tries_if_that_one_is_out_of_service(words: str) -> None:
    comments = [told(NEW, "gpu failed lost"), told(OLD)]
    found = chosen(seen(NEW, comments, known=stored(OLD, NEW, "a-0"), words={0: words}))

    assert (found.begins, found.node, found.failed) == (True, "a-1", {})
    assert after(stored(OLD, NEW, "a-0"), found).node == "a-1"


def test_without_a_node_nothing_is_tried() -> None:
    for known in (stored(OLD), stored(OLD, NEW, "a-0")):
        found = chosen(seen(NEW, [], known=known))
        assert (found.begins, found.approves, found.node) == (False, False, "")
        assert after(known, found).trial is None


def test_a_pod_without_the_volume_is_no_place_to_try() -> None:
    snapshot = seen(NEW, ["", ""], known=stored(OLD))
    pods = (replace(snapshot.pods[0], revision="earlier"), snapshot.pods[1])

    assert chosen(replace(snapshot, pods=pods)).node == "a-1"


def test_what_was_tried_and_is_taken_back_is_not_tried_again() -> None:
    found = chosen(seen(OLD, [told(NEW, "gpu failed lost")], known=stored(OLD, NEW, "a-0")))

    assert after(stored(OLD, NEW, "a-0"), found).trial is None
    assert found.changed == ()


def test_a_script_that_changes_during_its_trial_is_tried_anew() -> None:
    found = chosen(seen(CHANGED, [told(NEW)], known=stored(OLD, NEW, "a-0")))

    assert (found.begins, found.approves, found.node) == (True, False, "a-0")


def test_what_becomes_of_a_failure_is_no_other_check() -> None:
    quiet = [own("disk", onFail="Nothing")]

    assert chosen(seen(quiet, [told(OLD)], known=stored(OLD))).changed == ()


def test_checks_that_cannot_be_run_are_told_by_node() -> None:
    comments = [told(OLD, "disk unknown exit code 127"), told(OLD), told(OLD, "disk unknown hangs", "gone unknown x")]

    found = chosen(seen(OLD, comments, known=stored(OLD)))

    assert found.not_run == {"disk": {"a-0": "exit code 127", "a-2": "hangs"}}


def test_the_configmap_is_read_again_after_a_while_and_made_again() -> None:
    assert chosen(replace(seen(OLD, [told(OLD)], known=stored(OLD)), checks_are_old=True)).must_read
    # It was deleted: what has passed on a node before passes there again.
    found = chosen(seen(OLD, [told(OLD)], known=StoredChecks()))
    assert (found.begins, found.approves) == (True, False)
