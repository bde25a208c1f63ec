"""The help lists all commands, each with a whole sentence."""

from __future__ import annotations

import pytest

from kubectl_slurm import cli, errors


def test_the_list_of_commands_has_whole_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == errors.OK
    shown = capsys.readouterr().out
    listed = shown.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()

    assert {"status", "drain", "convert"} <= {line.split()[0] for line in listed}
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []
