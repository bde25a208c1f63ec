"""The program that runs checks on a node, in a real shell: what it reports, and that nothing can hold it up."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.unit.slurm.health_checks.nodes import FakeNode, own

PATIENCE = 120


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path)


def test_a_node_without_checks_says_nothing(node: FakeNode) -> None:
    node.runs()

    assert node.told == []
    assert not (node.folder / "state").exists()


def test_what_passes_and_what_fails_is_told_with_the_revision(node: FakeNode) -> None:
    revision = node.gives("approved", own("good", "exit 0"), own("bad", "echo 'GPU 3 is lost'; echo more; exit 1"))

    node.runs()

    found = node.report()
    assert (found.revision, found.failed) == (revision, {"bad": "GPU 3 is lost"})
    assert not found.unknown
    assert not found.pending
    assert found.since is not None


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("no-such-tool", "exit code 127, a program is missing: "),
        ("exit 2", "exit code 2: it says nothing"),
        ("echo half; exit 226", "exit code 226: half"),
        ("kill -9 $$", "did not end within 20 s"),
        ("(", "exit code 2: "),
    ],
)
def test_a_check_that_could_not_be_run_has_not_failed(node: FakeNode, script: str, said: str) -> None:
    node.gives("approved", own("odd", script))

    node.runs()

    assert node.report().failed == {}
    assert node.report().unknown["odd"].startswith(said.strip())


def test_an_interpreter_that_is_missing_is_no_failure(node: FakeNode) -> None:
    node.gives("approved", {"name": "odd", "script": "#!/no/such/shell\nexit 1\n"})

    node.runs()

    assert list(node.report().unknown) == ["odd"]


def test_megabytes_are_read_and_not_kept(node: FakeNode) -> None:
    node.gives("approved", own("loud", "head -c 20000000 /dev/zero | tr '\\0' x; exit 1"))

    node.runs()

    assert node.report().failed == {"loud": "x" * 100}
    kept = sum(one.stat().st_size for one in (node.folder / "state").rglob("*") if one.is_file())
    assert kept < 10_000


def test_a_check_cannot_write_a_report_of_others(node: FakeNode) -> None:
    node.gives("approved", own("sly", "printf 'a|good failed x\\033[31m\"$(id)\\n'; exit 1"))

    node.runs()

    assert node.report().failed == {"sly": "agood failed x31m(id)"}


def test_a_check_that_takes_too_long_is_ended(node: FakeNode) -> None:
    node.gives("approved", own("slow", "sleep 3000", timeoutSeconds=1), own("good", "exit 0"))

    node.runs()

    assert node.report().unknown == {"slow": "did not end within 1 s"}


def test_a_check_that_cannot_be_ended_is_not_started_again_and_told(node: FakeNode) -> None:
    """It has left a process that keeps its output: like one that the kernel does not let end."""
    leaves = 'setsid sleep 300 & echo $! > "$CHECK_PID"; exit 0'
    node.gives("approved", own("stuck", leaves, timeoutSeconds=3, parameters={"PID": str(node.folder / "pid")}))
    state = node.folder / "state"
    node.program.write_text(node.program.read_text().replace("longest_wait=40", "longest_wait=1"))
    try:
        node.runs()
        assert node.report().pending == {"stuck"}
        (state / "work" / "stuck.began").write_text(f"{int(time.time()) - 100}\n")
        node.program.write_text(node.program.read_text().replace("longest_wait=1", "longest_wait=40"))

        node.runs()

        assert list(node.report().unknown) == ["stuck"]
        assert node.report().unknown["stuck"].startswith("has not ended ")
    finally:
        os.kill(int((node.folder / "pid").read_text()), signal.SIGKILL)


def test_nothing_is_told_twice_but_what_is_new(node: FakeNode) -> None:
    word = node.folder / "word"
    node.gives("approved", own("disk", f"test -e {word} || {{ date +%N; exit 1; }}"))

    node.runs()
    node.runs()
    assert len(node.told) == 1

    word.touch()
    node.runs()
    assert len(node.told) == 2
    assert node.report().failed == {}


def test_what_fails_is_told_again_after_minutes_and_what_passes_a_few_times(node: FakeNode) -> None:
    """slurmctld forgets its last seconds when it is killed."""
    for script, most in (("exit 1", 6), ("exit 0", 3)):
        node.gives("approved", own("one", script))
        before = len(node.told)
        for _ in range(6):
            node.runs()
            reported = node.folder / "state" / "reported"
            since, sent, _, *sign = reported.read_text().split()
            reported.write_text(f"{since} {sent} 0 {' '.join(sign)}\n")
        assert len(node.told) - before == most
        assert len({line.split("|")[0] for line in node.told[before:]}) == 1


def test_a_slurmctld_that_is_away_is_told_later(node: FakeNode) -> None:
    node.gives("approved", own("one", "exit 1"))
    away = node.folder / "away"
    away.touch()
    node.program.write_text(node.program.read_text().replace("sleep 3\n", "sleep 0.2\n"))

    node.runs()
    assert node.told == []
    away.unlink()
    until = time.monotonic() + PATIENCE
    while not node.told and time.monotonic() < until:
        time.sleep(0.05)

    assert node.report().failed == {"one": "it says nothing"}


def test_a_trial_runs_on_its_node_alone(node: FakeNode) -> None:
    approved = node.gives("approved", own("old", "exit 0"))
    trial = node.gives("trial", own("new", "exit 0"), node="gpu-1")

    node.runs()
    assert node.report().revision == approved

    assert node.gives("trial", own("new", "exit 0"), node="gpu-0") == trial
    node.runs()
    assert node.report().revision == trial


def test_a_check_runs_in_its_contexts_and_its_last_result_stays(node: FakeNode) -> None:
    node.gives("approved", own("start", "exit 1", contexts=["Prolog", "Epilog"]), own("always", "exit 0"))

    node.runs()
    assert node.report().failed == {}
    node.runs("prolog_slurmd")
    assert node.report().failed == {"start": "it says nothing"}
    node.runs()
    assert len(node.told) == 2
    node.runs("epilog_slurmd")
    assert len(node.told) == 2


def test_the_result_of_another_version_of_a_check_counts_for_nothing(node: FakeNode) -> None:
    node.gives("approved", own("start", "exit 1", contexts=["Prolog"]))
    node.runs("prolog_slurmd")
    assert list(node.report().failed) == ["start"]

    node.gives("approved", own("start", "exit 0", contexts=["Prolog"]))
    node.runs()

    assert node.report().failed == {}


def test_parameters_are_variables_whatever_is_in_them(node: FakeNode) -> None:
    value = "a b=c $(touch x) `id` \"q\" 'p' *"
    node.gives(
        "approved",
        own(
            "told",
            f"test \"$CHECK_WORDS\" = '{value.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}' && exit 0; exit 1",
            parameters={"WORDS": value},
        ),
    )

    node.runs()

    assert node.report().failed == {}
    assert not node.report().unknown
