"""The log of the server has a bound, however many processes write to it."""

from __future__ import annotations

import os

import pytest

from slinky_operator.pod_programs.joblogs.log import LONGEST, MINUTE, Log


def test_a_minute_has_so_many_lines_and_the_next_one_says_how_many_are_missing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    now = 1000.0
    log = Log(3, lambda: now)
    for number in range(10):
        log(f"line {number}")
    assert capfd.readouterr().err.splitlines() == [f"job-log-server: line {number}" for number in range(3)]
    now += MINUTE
    log("line 10")
    assert capfd.readouterr().err.splitlines() == [
        "job-log-server: 7 more lines like these were left out",
        "job-log-server: line 10",
    ]


def test_processes_share_the_bound(capfd: pytest.CaptureFixture[str]) -> None:
    log = Log(3)
    for number in range(10):
        child = os.fork()
        if not child:
            try:
                log(f"line {number}")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    assert capfd.readouterr().err.count("\n") == 3


def test_nobody_forges_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    Log()("file /a\njob-log-server: forged\x1b[2J" + "x" * 5000)
    said = capfd.readouterr().err
    assert said.startswith("job-log-server: file /a?job-log-server: forged?[2Jxxx")
    assert said.count("\n") == 1
    assert len(said) <= LONGEST + 20


def test_a_fault_has_its_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    try:
        int("what was wrong")
    except ValueError:
        Log().fault("it has failed")
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "job-log-server: it has failed"
    assert said[1] == "job-log-server: Traceback (most recent call last):"
    assert said[-1] == "job-log-server: ValueError: invalid literal for int() with base 10: 'what was wrong'"
