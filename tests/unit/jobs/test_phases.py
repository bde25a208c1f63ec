"""Every state of every data parser has a phase; the ends have reasons of their own."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.jobs.phases import ENDS, LONGEST, Phase, Reason, Shown, shown
from slurm_client import wire
from slurm_client.models.job import ExitCode, JobState

PLACES = ("JobStateItem", "JobInfoJobStateItem", "JobStateCurrentItem")
WORDS = sorted({word for parser in wire.PARSERS for place in PLACES for word in wire.words(parser, place)})


def of(
    *words: str,
    code: int | None = None,
    signal: int | None = None,
    why: str = "",
    hold: bool = False,
    restarts: int = 0,
) -> Shown:
    exit_code = None if code is None and signal is None else ExitCode(return_code=code, signal=signal)
    return shown(JobState.from_words(words), exit_code=exit_code, slurms_reason=why, hold=hold, restarts=restarts)


CASES = [
    ("PENDING", "Pending", "Queued"),
    ("PENDING REQUEUED", "Pending", "Requeued"),
    ("PENDING REQUEUE_FED", "Pending", "Requeued"),
    ("PENDING EXPEDITING", "Pending", "Requeued"),
    ("REQUEUED", "Pending", "Requeued"),
    ("FAILED REQUEUED", "Pending", "Requeued"),
    ("PENDING REQUEUE_HOLD", "Pending", "RequeuedAndHeld"),
    ("REQUEUE_HOLD", "Pending", "RequeuedAndHeld"),
    ("PENDING SPECIAL_EXIT", "Pending", "SpecialExit"),
    ("PENDING RESV_DEL_HOLD", "Pending", "ReservationDeleted"),
    ("PENDING LAUNCH_FAILED", "Pending", "LaunchFailed"),
    ("PENDING REVOKED", "Pending", "Revoked"),
    ("PENDING POWER_UP_NODE", "Pending", "Starting"),
    ("RUNNING CONFIGURING", "Pending", "Starting"),
    ("RUNNING", "Running", "Running"),
    ("RUNNING RESIZING", "Running", "Running"),
    ("RUNNING SIGNALING", "Running", "Running"),
    ("RUNNING STOPPED", "Suspended", "Stopped"),
    ("SUSPENDED", "Suspended", "Suspended"),
    ("RUNNING COMPLETING", "Ending", "Completing"),
    ("TIMEOUT COMPLETING", "Ending", "Completing"),
    ("PENDING REQUEUED COMPLETING", "Ending", "Completing"),
    ("COMPLETED STAGE_OUT", "Ending", "StagingOut"),
    ("COMPLETED", "Succeeded", "Completed"),
    ("COMPLETED UPDATE_DB", "Succeeded", "Completed"),
    ("FAILED", "Failed", "Failed"),
    ("FAILED LAUNCH_FAILED", "Failed", "LaunchFailed"),
    ("FAILED RECONFIG_FAIL", "Failed", "Failed"),
    ("TIMEOUT", "Failed", "Timeout"),
    ("DEADLINE", "Failed", "Deadline"),
    ("OUT_OF_MEMORY", "Failed", "OutOfMemory"),
    ("NODE_FAIL", "Failed", "NodeFail"),
    ("BOOT_FAIL", "Failed", "BootFail"),
    ("PREEMPTED", "Failed", "Preempted"),
    ("CANCELLED", "Failed", "Cancelled"),
    ("CANCELLED REVOKED", "Failed", "Revoked"),
    ("SOMETHING_NEW", "Unknown", "UnknownState"),
    ("", "Unknown", "UnknownState"),
]


@pytest.mark.parametrize(("words", "phase", "reason"), CASES)
def test_a_state_has_a_phase_and_a_reason(words: str, phase: str, reason: str) -> None:
    found = of(*words.split())
    assert (found.phase, found.reason) == (phase, reason)
    assert found.message
    assert found.is_finished == (phase in {"Succeeded", "Failed"})


def test_every_word_of_every_data_parser_is_in_a_case_above() -> None:
    shown_words = {word for words, _, _ in CASES for word in words.split()}
    assert len(WORDS) > 25
    assert set(WORDS) <= shown_words
    assert {reason for _, _, reason in CASES} | {
        "Held", "DependencyNeverSatisfied", "NonZeroExitCode", "Signaled", "FileNotOpened", "Lost",
    } == {reason.value for reason in Reason}  # fmt: skip


@pytest.mark.parametrize(
    ("why", "hold", "reason", "message"),
    [
        ("JobHeldUser", False, Reason.HELD, "the job is held by its user"),
        ("JobHeldAdmin", True, Reason.HELD, "the job is held by an administrator"),
        ("", True, Reason.HELD, "the job is held"),
        ("Resources", False, Reason.QUEUED, "the job is in the queue, waiting for: Resources"),
        ("None", False, Reason.QUEUED, "the job is in the queue"),
        ("a\nb", False, Reason.QUEUED, "the job is in the queue, waiting for: a b"),
        ("DependencyNeverSatisfied", False, Reason.DEPENDENCY_NEVER_SATISFIED, "a job that this one waits for"),
    ],
)
def test_a_pending_job_says_why_in_slurms_words(why: str, hold: bool, reason: Reason, message: str) -> None:
    found = of("PENDING", why=why, hold=hold)
    assert (found.phase, found.reason) == (Phase.PENDING, reason)
    assert found.message.startswith(message)


@pytest.mark.parametrize(
    ("word", "code", "signal", "phase", "reason", "message"),
    [
        ("COMPLETED", 0, None, Phase.SUCCEEDED, Reason.COMPLETED, "the script ended with exit code 0"),
        ("COMPLETED", 0, 0, Phase.SUCCEEDED, Reason.COMPLETED, "the script ended with exit code 0"),
        ("COMPLETED", 1, None, Phase.FAILED, Reason.EXIT_CODE, "the script ended with exit code 1"),
        ("FAILED", 3, None, Phase.FAILED, Reason.EXIT_CODE, "the script ended with exit code 3"),
        ("FAILED", 0, 9, Phase.FAILED, Reason.SIGNALED, "the script was ended by signal 9"),
        ("TIMEOUT", 0, 15, Phase.FAILED, Reason.TIMEOUT, "the job reached its time limit"),
        ("OUT_OF_MEMORY", 0, 125, Phase.FAILED, Reason.OUT_OF_MEMORY, "the job used more memory than it had asked for"),
    ],
)
def test_an_end_keeps_exit_code_and_signal(
    word: str, code: int, signal: int | None, phase: Phase, reason: Reason, message: str
) -> None:
    assert of(word, code=code, signal=signal) == Shown(phase, reason, message, code, signal or None)


def test_a_job_that_was_requeued_says_so_without_flags() -> None:
    assert of("PENDING", restarts=1, why="BeginTime").reason is Reason.REQUEUED
    assert of("PENDING", restarts=1, why="JobHeldUser").reason is Reason.REQUEUED_AND_HELD
    assert of("PENDING", restarts=1, hold=True).reason is Reason.REQUEUED_AND_HELD
    assert of("PENDING", "SPECIAL_EXIT", restarts=1, why="JobHeldUser").reason is Reason.SPECIAL_EXIT
    assert of("RUNNING", restarts=1).reason is Reason.RUNNING


def test_no_pair_of_words_is_unknown_but_flags_without_a_base() -> None:
    bases = sorted(JobState.BASES)
    for base, flag in itertools.product(bases, sorted(JobState.FLAGS)):
        assert of(base, flag).phase != Phase.UNKNOWN, (base, flag)


def test_the_reasons_of_ends_are_those_that_ends_have() -> None:
    codes = (ExitCode(), ExitCode(return_code=0), ExitCode(return_code=3), ExitCode(signal=9), ExitCode(signal=53))
    found = {
        one.reason
        for pair in itertools.product(WORDS, repeat=2)
        for code in codes
        if (one := shown(JobState.from_words(pair), exit_code=code)).is_finished
    }
    assert found == ENDS


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=300)), max_size=4), st.text(max_size=1000))
def test_any_words_are_shown_within_bounds(words: list[str], why: str) -> None:
    found = of(*words, why=why)
    assert len(found.message) < LONGEST + 150
    assert "\n" not in found.message


def test_a_file_that_slurm_cannot_open_is_named() -> None:
    exit_code = ExitCode(signal=53)
    found = shown(JobState("FAILED"), exit_code=exit_code, files="output /etc/out")
    assert (found.phase, found.reason, found.signal) == (Phase.FAILED, Reason.FILE_NOT_OPENED, 53)
    assert "output /etc/out;" in found.message
    assert of("FAILED", signal=53).reason is Reason.FILE_NOT_OPENED
    assert of("CANCELLED", signal=53).reason is Reason.CANCELLED
