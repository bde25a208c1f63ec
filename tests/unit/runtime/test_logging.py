"""Log lines name their object and contain no secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from slinky_operator.runtime.logging import about, configure

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJzbHVybSJ9.c2lnbmF0dXJlLXNpZ25hdHVyZQ"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


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


def test_libraries_are_quiet_unless_debugging() -> None:
    configure(level="INFO", stream=io.StringIO())
    assert not logging.getLogger("kopf.objects").isEnabledFor(logging.INFO)
    configure(level="DEBUG", stream=io.StringIO())
    assert logging.getLogger("kopf.objects").isEnabledFor(logging.DEBUG)
    configure(level="INFO", stream=io.StringIO())
