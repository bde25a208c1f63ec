"""Log lines name their object and contain no secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from slinky_operator.runtime.logging import LIBRARIES, LevelSwitch, about, configure

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJzbHVybSJ9.c2lnbmF0dXJlLXNpZ25hdHVyZQ"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    libraries = {name: logging.getLogger(name).level for name in LIBRARIES}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in libraries.items():
        logging.getLogger(name).setLevel(before)


def test_json_lines_carry_the_object() -> None:
    stream = io.StringIO()
    configure(form="json", stream=stream)
    with about("NodeSet", "hpc", "compute"):
        logging.getLogger("x").info("scaled to %d", 3)
    logging.getLogger("x").warning("plain", extra={"k8s_ref": {"kind": "Cluster", "namespace": "a", "name": "b"}})
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first | {"time": ""} == {
        "time": "",
        "level": "info",
        "logger": "x",
        "message": "scaled to 3",
        "kind": "NodeSet",
        "namespace": "hpc",
        "name": "compute",
    }
    assert (second["kind"], second["namespace"], second["name"]) == ("Cluster", "a", "b")


def test_text_lines_carry_the_object_too() -> None:
    stream = io.StringIO()
    configure(form="text", stream=stream)
    with about("NodeSet", "hpc", "compute"):
        logging.getLogger("x").info("scaled")
    assert "INFO    x NodeSet hpc/compute: scaled" in stream.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_tokens_never_reach_a_line_not_even_in_a_stack_trace(form: str) -> None:
    stream = io.StringIO()
    configure(form="json" if form == "json" else "text", stream=stream)
    try:
        int(f"X-SLURM-USER-TOKEN: {TOKEN}")
    except ValueError:
        logging.getLogger("x").exception("Authorization: Bearer %s", "s3cret-s3cret")
    text = stream.getvalue()
    assert TOKEN not in text
    assert "s3cret" not in text
    assert "[redacted]" in text


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_text_of_others_is_no_line_of_its_own_and_nothing_that_a_terminal_obeys(form: str) -> None:
    stream = io.StringIO()
    configure(form="json" if form == "json" else "text", stream=stream)
    forged = "a\n2026-11-28T00:00:00.000Z ERROR   x: forged\r\x1b[2J\x9b1m\u202e\u2028\udc80"
    logging.getLogger("x").warning("Slurm says: %s", forged)
    (line,) = stream.getvalue().splitlines()
    assert line.isprintable()
    assert "forged" in line


def test_a_stack_trace_contains_no_line_like_a_record() -> None:
    stream = io.StringIO()
    configure(form="text", stream=stream)

    def fails() -> None:
        raise ValueError("a\n2026-11-28T00:00:00.000Z ERROR   x: forged\x1b[2J")

    try:
        fails()
    except ValueError:
        logging.getLogger("x").exception("a pass failed")
    first, *trace = stream.getvalue().splitlines()
    assert first.endswith("a pass failed")
    assert trace
    assert all(line.startswith("  ") and line.isprintable() for line in trace)


def test_libraries_are_quiet_unless_debugging() -> None:
    configure(level="INFO", stream=io.StringIO())
    assert not logging.getLogger("kopf.objects").isEnabledFor(logging.INFO)
    configure(level="DEBUG", stream=io.StringIO())
    assert logging.getLogger("kopf.objects").isEnabledFor(logging.DEBUG)
    configure(level="INFO", stream=io.StringIO())


def test_a_signal_turns_debug_on_and_off(capsys: pytest.CaptureFixture[str]) -> None:
    configure(level="ERROR")
    switch = LevelSwitch(level="ERROR", form="text")
    shown: list[tuple[int, str]] = []
    for _ in range(2):
        switch.turn()
        logging.getLogger("x").debug("detail")
        shown.append((logging.getLogger().level, capsys.readouterr().err))
    (on, while_on), (off, while_off) = shown
    assert (on, off) == (logging.DEBUG, logging.ERROR)
    assert "log level: DEBUG, until now ERROR" in while_on
    assert "detail" in while_on
    assert "log level: ERROR, until now DEBUG" in while_off
    assert "detail" not in while_off


def test_a_process_that_was_started_at_debug_stays_there() -> None:
    switch = LevelSwitch(level="DEBUG", form="json")
    for _ in range(2):
        switch.turn()
        assert logging.getLogger().level == logging.DEBUG
