"""The checks by name: what runs, what runs concurrently, and how it is counted."""

from __future__ import annotations

import re
import tempfile
from contextlib import nullcontext
from pathlib import Path
from threading import Thread
from typing import cast

import pytest

from hack import check
from hack.check import PREPARED, Tally
from hack.localkube.errors import LocalKubeError
from hack.testing.preparing import Preparation
from hack.testing.suites import SUITES, Call, Suite, twice

PYTEST = """\
#!/bin/sh
# Called with `-m pytest WHAT …`: says so, and reports three tests, of which as many fail as the arguments say; one that
# is a file fails if there is a folder of that name below $FAILING.
for word in "$@"; do case $word in --junitxml=*) report=${word#--junitxml=};; esac; done
echo "ran $3 with $HISTORIES"
[ "$2" = linter ] && exit 3
[ "$3" = none ] && exit 5
number=${3#fails-} module=suite.test_daemon.Class
case $3 in *.py) number=0; [ -e "$FAILING" ] && number=1;; esac
case $3 in lost-*) number=${3#lost-} module=;; esac
{
  echo "<testsuites><testsuite tests='3' failures='$number' errors='0' skipped='0'>"
  for one in $(seq "$number"); do
    echo "<testcase classname='$module' name='test_$one'><failure message='gone $one&#10;more'/></testcase>"
  done
  echo "</testsuite></testsuites>"
} > $report
[ "$number" = 0 ] || exit ${STATUS:-$number}
"""


MARKED_FULL = {
    "e2e": (
        "accounting", "api_away", "bridge", "closed_partitions", "configuration_faults", "configuration_files",
        "converted_sites", "daemon_settings", "faults", "identity", "interruptions", "keys", "labels", "left_out",
        "limits", "login", "mended", "metal", "neighbours", "nonsense", "old_job_kinds", "older_slurm", "options",
        "places", "prometheus", "registration", "replacement", "samples", "skip_drain", "slinky_manifests",
        "slurmctld_elsewhere", "slurmjobs", "succession", "tokens", "unresolvable", "updates", "virtual_nodes",
        "what_a_cluster_shows",
    ),
    "integration": (
        "bridge/test_crashes", "bridge/test_devices", "cluster/test_cluster", "cluster/test_hostile_servers",
        "cluster/test_keys", "cluster/test_succession",
        "exporter/test_dashboards_of_others", "images/test_image_rules", "kube/test_memory", "kube/test_two_releases",
        "release/test_charts_and_manifests", "release/test_olm", "release/test_orders", "release/test_provenance",
        "release/test_wheels", "slurm_client/conftest", "slurm_conf/test_key_orders", "virtual_nodes/test_outages",
    ),
}  # fmt: skip
"""Files with tests that are left to `make test-full`, all or some."""


@pytest.fixture(autouse=True)
def _pytest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text(PYTEST)
    program.chmod(0o700)
    monkeypatch.setattr(check, "PYTHON", str(program))
    monkeypatch.setattr(check, "REPORTS", tmp_path / "reports")
    monkeypatch.setenv("HISTORIES", "many")
    # Where the lock of end-to-end tests is: a run of them beside these tests holds that of the user.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one file of tests of daemons, which fail again while the path returned exists."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "test_daemon.py").touch()
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setenv("STATUS", "1")
    monkeypatch.setenv("FAILING", str(tmp_path / "failing"))
    return tmp_path / "failing"


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


def second(arguments: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Run one call of tests of daemons: exit status and lines."""
    monkeypatch.setattr(check, "Preparation", lambda *_: nullcontext(Built()))
    monkeypatch.setattr(check, "SUITES", suite((twice("daemons", arguments, "-x"),)))
    return check.main(["suite"]), capfd.readouterr().out.splitlines()


def test_a_few_failed_tests_are_run_again_and_named(
    failing: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    status, lines = second("fails-2", monkeypatch, capfd)
    assert status == 0
    assert "ran suite/test_daemon.py with many" in lines
    named = lines.index("=== passed the second time")
    assert lines[named + 1 : named + 3] == [
        "suite.test_daemon.Class::test_1 - gone 1",
        "suite.test_daemon.Class::test_2 - gone 2",
    ]
    assert "=== failed" not in lines
    assert lines[-1] == "3 passed, 0 failed, 2 passed the second time only"


def test_what_fails_again_has_failed(
    failing: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    failing.touch()
    status, lines = second("fails-2", monkeypatch, capfd)
    assert status == 1
    assert "suite.test_daemon.Class::test_1 - gone 1 (not all passed the second time)" in lines
    assert lines[-1] == "2 passed, 1 failed"


@pytest.mark.parametrize("arguments", [f"fails-{check.FEW + 1}", "lost-1"])
def test_many_failures_and_lost_workers_are_not_run_again(
    arguments: str, failing: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    status, lines = second(arguments, monkeypatch, capfd)
    assert status == 1
    assert not [line for line in lines if line.startswith("ran suite/")]
    assert lines[-1].endswith(f" {arguments.rpartition('-')[2]} failed")


def test_the_quick_suites_have_one_time_only(
    failing: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "SUITES", suite((call(1, "one"),)))
    tally = Tally()
    assert check.run_suite("suite", tally) == 1
    assert "suite/" not in capfd.readouterr().out
    with_second = {name for name in SUITES for step in SUITES[name].steps for one in step if one.has_second_time}
    assert with_second == {*SUITES} - {"unit-quick", "smoke", "unit-full"}


class Built:
    """A preparation that has built all but what some suites need."""

    def __init__(self, *missing: str) -> None:
        self.missing = missing

    def wait_for(self, suite: str) -> None:
        if suite in self.missing:
            raise LocalKubeError(f"no program for {suite}")


def closing(names: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run checks as the command does: exit status and what it printed."""
    missing = ("integration",) if "unbuilt" in names else ()
    monkeypatch.setattr(check, "Preparation", lambda *_: nullcontext(Built(*missing)))
    suites = {
        "good": Suite("unit", ((call(0, "good"),),)),
        "bad": Suite("unit", ((call(2, "bad"),),)),
        "unbuilt": Suite("integration", ((call(0, "unbuilt"),),)),
        "crashing": Suite("e2e", ((Call("crashing", ("none",)),),)),
    }
    monkeypatch.setattr(check, "SUITES", suites)
    monkeypatch.setattr(check, "lint_commands", lambda: [[check.PYTHON, "-m", "linter", "none"]] * 2)
    status = check.main(names)
    return status, capfd.readouterr().out


def test_a_failure_hides_no_other_suite(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    status, said = closing(["bad", "good", "crashing"], monkeypatch, capfd)
    assert status == 2
    assert "ran fails-0" in said
    assert said.splitlines()[-3:] == ["bad failed (status 2)", "crashing failed (status 5)", "4 passed, 3 failed"]


def test_a_profile_follows_each_check_if_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    status, said = closing(["--profile", "lint", "bad"], monkeypatch, capfd)
    assert status == 3
    assert re.search(r"=== profile of lint\nCPU: \d+ s, processors busy for \d+ % of the time\n", said)
    assert "slowest tests, with what they set up" in said.split("=== profile of bad")[1]
    assert "profile" not in closing(["bad"], monkeypatch, capfd)[1]


def test_nothing_failed_is_said_by_the_status_too(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    status, said = closing(["good"], monkeypatch, capfd)
    assert (status, said.splitlines()[-1]) == (0, "3 passed, 0 failed")
    assert "failed (status" not in said


@pytest.mark.parametrize("name", ["lint", "unbuilt", "crashing"])
def test_a_check_that_fails_without_a_test_counts_as_one_failure(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    status, said = closing([name, "good"], monkeypatch, capfd)
    assert status != 0
    assert said.splitlines()[-1] == "3 passed, 1 failed"


def test_a_full_folder_of_temporary_files_is_named_before_tests_fail_of_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "NEEDS_MIB", 2**40)
    monkeypatch.setattr(
        check,
        "SUITES",
        suite(
            (call(0, "never"),),
        ),
    )
    tally = Tally()
    assert check.run_check("suite", tally, cast("Preparation", Built())) == 1
    said = capfd.readouterr()
    assert "ran" not in said.out
    assert re.search(rf"check: {re.escape(tempfile.gettempdir())} has \d+ MiB free, {2**40} MiB are needed", said.err)


def test_end_to_end_tests_wait_for_those_of_another_run(
    capfd: pytest.CaptureFixture[str],
) -> None:
    order: list[str] = []

    def second() -> None:
        with check.alone("e2e"):
            order.append("second")

    other = Thread(target=second)
    with check.alone("e2e"):
        other.start()
        while "waiting for its end" not in capfd.readouterr().err:
            assert other.is_alive()
        order.append("first")
    other.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize("name", SUITES)
def test_each_suite_is_prepared_and_none_overwrites_a_report(name: str) -> None:
    reports = [one.report for step in SUITES[name].steps for one in step]
    assert SUITES[name].needs in PREPARED
    assert len(set(reports)) == len(reports)


def test_no_test_is_left_out_by_the_suites_of_make_test_but_those_for_make_test_full() -> None:
    places = [one.arguments for name in PREPARED for step in SUITES[name].steps for one in step]
    assert {one[0] for one in places if "-m" not in one} == {"tests/unit", "tests/e2e/campaign"}
    assert sorted((one[0], one[one.index("-m") + 1]) for one in places if "-m" in one) == [
        ("tests/e2e", "alone and not full"),
        ("tests/e2e/ground", "not alone"),
        ("tests/e2e/operator", "not alone and not full"),
        ("tests/integration", "not full"),
    ]
    folders = {path.parent.name for path in (check.ROOT / "tests" / "e2e").glob("*/test_*.py")}
    assert folders == {"campaign", "ground", "operator"}
    full = [one.arguments for name in PREPARED for step in SUITES[f"{name}-full"].steps for one in step]
    assert not [one for one in full if "not full" in one or "--one-in=8" in one]
    assert sorted(one[one.index("-m") + 1] for one in full if "-m" in one) == ["alone", "not alone", "not alone"]


def test_what_is_left_for_make_test_full_is_decided_elsewhere() -> None:
    """CONTRIBUTING.md says where."""
    tests = check.ROOT / "tests"
    marked = {str(one.relative_to(tests)) for one in tests.rglob("*.py") if "pytest.mark.full" in one.read_text()}
    assert marked - {"unit/test_check.py", "support/slurm_series.py"} == {
        *(f"e2e/operator/test_{name}.py" for name in MARKED_FULL["e2e"]),
        "e2e/ground/test_kubernetes.py",
        "e2e/ground/test_plain_slurm.py",
        *(f"integration/{name}.py" for name in MARKED_FULL["integration"]),
    }
