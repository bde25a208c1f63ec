"""The checks by name: what runs, what runs concurrently, and how it is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack import check
from hack.check import PREPARED, SUITES, Call, Suite, Tally

PYTEST = """\
#!/bin/sh
# Called with `-m pytest WHAT …`: says so, and reports three tests, of which as many fail as the arguments say.
for word in "$@"; do case $word in --junitxml=*) report=${word#--junitxml=};; esac; done
echo "ran $3 with $HISTORIES"
[ "$3" = none ] && exit 5
echo "<testsuites><testsuite tests='3' failures='${3#fails-}' errors='0' skipped='0'/></testsuites>" > $report
exit ${3#fails-}
"""


@pytest.fixture(autouse=True)
def _pytest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text(PYTEST)
    program.chmod(0o700)
    monkeypatch.setattr(check, "PYTHON", str(program))
    monkeypatch.setattr(check, "REPORTS", tmp_path / "reports")
    monkeypatch.setenv("HISTORIES", "many")


def suite(*steps: tuple[Call, ...]) -> dict[str, Suite]:
    return {"suite": Suite("unit", steps)}


def call(failing: int, report: str) -> Call:
    return Call(report, (f"fails-{failing}",))


def test_all_steps_are_run_and_counted_together(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        check, "SUITES", suite((call(0, "first"),), (call(2, "left"), call(0, "right")), (call(1, "last"),))
    )
    tally = Tally()
    assert check.run_suite("suite", tally) == 2
    assert (tally.passed, tally.failed) == (9, 3)
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "ran fails-0 with many"
    assert sorted(lines[1:3]) == ["left: ran fails-2 with many", "right: ran fails-0 with many"]
    assert lines[3] == "ran fails-1 with many"


def test_a_call_has_variables_of_its_own(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(check, "SUITES", suite((Call("one", ("fails-0",), {"HISTORIES": "few"}),)))
    assert check.run_suite("suite", Tally()) == 0
    assert capfd.readouterr().out == "ran fails-0 with few\n"


def test_a_call_without_a_report_counts_by_its_status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "one.xml").write_text("of an earlier run")
    monkeypatch.setattr(check, "SUITES", suite((Call("one", ("none",)), call(0, "other"))))
    tally = Tally()
    assert check.run_suite("suite", tally) == 5
    assert (tally.passed, tally.failed) == (3, 0)


@pytest.mark.parametrize("name", SUITES)
def test_each_suite_is_prepared_and_none_overwrites_a_report(name: str) -> None:
    reports = [one.report for step in SUITES[name].steps for one in step]
    assert SUITES[name].needs in PREPARED
    assert len(set(reports)) == len(reports)


def test_no_test_is_left_out_by_the_suites_of_make_test() -> None:
    places = [one.arguments for name in PREPARED for step in SUITES[name].steps for one in step]
    assert {arguments[0] for arguments in places} == {
        "tests/unit",
        "tests/integration",
        "tests/e2e/ground",
        "tests/e2e/operator",
    }
    chosen = sorted(one[one.index("-m") + 1] for one in places if "-m" in one)
    assert chosen == ["alone", "not alone"]
