"""A failed program becomes an error that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.images.errors import KeyringTooOld, NetworkFailed, StepFailed, classify
from hack.images.tools.run import Runner


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("W: Failure trying to run: chroot", StepFailed),
        ("E: Failed getting release file http://mirror/dists/sid/Release", NetworkFailed),
        ("Temporary failure resolving 'mirror'", NetworkFailed),
        ("E: Release signed by unknown key (key id 762F67A0B2C39DE4)", KeyringTooOld),
    ],
)
def test_the_cause_is_read_from_the_output(output: str, kind: type[StepFailed]) -> None:
    error = classify("debootstrap sid", 1, output, Path("/log"))
    assert type(error) is kind
    assert output in str(error)
    assert "/log" in str(error)


def test_only_the_last_lines_are_shown_and_all_are_in_the_log(tmp_path: Path) -> None:
    runner = Runner(tmp_path / "log", lambda _line: None)
    with pytest.raises(StepFailed) as caught:
        runner.run("count", ["sh", "-c", "seq 1 100; exit 3"])
    assert caught.value.status == 3
    assert "100" in caught.value.tail
    assert "50" not in caught.value.tail
    assert (tmp_path / "log").read_text().splitlines()[0] == "1"
