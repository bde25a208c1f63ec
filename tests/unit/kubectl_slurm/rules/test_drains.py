"""`drain`, `undrain`, `conf`, `logs`: whose drains are left alone, and what differs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_slurm import cli, errors
from kubectl_slurm.rules import conf
from kubectl_slurm.rules.nodes import drains
from tests.unit.kubectl_slurm.samples import JOBS, NODES, OPERATOR_DRAIN
from tests.unit.kubectl_slurm.screens import text

ROOT = Path(__file__).parents[4]
PATHS = (ROOT, ROOT / "api")


def test_a_drain_says_who_and_leaves_those_of_others_alone() -> None:
    change = drains.drain(["cpu-0", "cpu-2", "gpu-2", "nosuch", "cpu-0"], NODES, overwrite=False)
    assert change.names == ("cpu-0",)
    assert change.unknown == ("nosuch",)
    assert dict(change.kept)["cpu-2"] == "drained already by root: new fans"
    assert drains.drain(["cpu-2"], NODES, overwrite=True).names == ("cpu-2",)
    assert drains.full(" new fans ", "dev\x1b") == "new fans (dev)"
    shown = text(drains.screen(change, NODES, JOBS, drained=True))
    assert "1 node drained: cpu-0" in shown
    assert "Jobs on them, which go on to their end: 1." in shown


def test_an_undrain_leaves_the_operators_drains_alone_and_shows_the_old_reason() -> None:
    change = drains.undrain(["cpu-1", "cpu-2", "gpu-2"], NODES)
    assert change.names == ("cpu-2",)
    assert set(dict(change.kept)) == {"cpu-1", "gpu-2"}
    assert f"the operator drains it ({OPERATOR_DRAIN})" in dict(change.kept)["gpu-2"]
    assert "cpu-2 was drained by root: new fans" in text(drains.screen(change, NODES, (), drained=False))


@pytest.mark.parametrize("drained", [True, False])
def test_what_changes_nothing_says_so(drained: bool) -> None:
    names = ["cpu-2"] if drained else ["cpu-1"]
    change = drains.drain(names, NODES, overwrite=False) if drained else drains.undrain(names, NODES)
    shown = text(drains.screen(change, NODES, JOBS, drained=drained))
    assert shown.startswith(f"Nothing was changed: no node was {'drained' if drained else 'undrained'}\n")
    assert f"{names[0]} is left alone" in shown
    assert "No job is on them" not in shown


@pytest.mark.parametrize("reason", ["", "  ", "x" * 201, "a\nb", "a\x1b[2J", "slurm-operator: mine"])
def test_reasons_that_would_hide_who_or_why_are_refused(reason: str) -> None:
    assert drains.refusal(reason)
    assert cli.main(["drain", "cpu-0", "--reason", reason]) == errors.USAGE


def test_a_good_reason_is_not_refused() -> None:
    assert drains.refusal("neue Lüfter, Ticket #4711") == ""


@pytest.mark.parametrize("names", ["w-[0-", "w-[0-20000]", "a;b"])
def test_lists_of_nodes_are_read_before_anything_is_asked(names: str) -> None:
    assert cli.main(["undrain", names]) == errors.USAGE


def test_the_difference_of_configurations_names_files() -> None:
    live = {"slurm.conf": "A=1\nB=2\n", "gres.conf": "x"}
    shown = list(conf.difference(live, {"slurm.conf": "A=1\nB=3\n", "gres.conf": "x"}))
    assert shown[:2] == ["--- live/slurm.conf", "+++ rendered/slurm.conf"]
    assert shown[-2:] == ["-B=2", "+B=3"]
    assert list(conf.difference(live, live)) == []
    assert list(conf.texts(live, "gres.conf")) == ["x"]
    assert next(conf.texts(live)) == "# ==> gres.conf <=="


@pytest.mark.parametrize("command", [*cli.slurm.commands])
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "--help"]) == errors.OK
    shown = capsys.readouterr().out
    assert "kubectl slurm " in shown or "kubectl-slurm" in shown or "slurm-operator convert" in shown


def test_completion_is_printed_for_each_shell(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish", "kubectl"):
        assert cli.main(["completion", shell]) == errors.OK
        assert "_KUBECTL_SLURM_COMPLETE" in capsys.readouterr().out


def test_kubectl_completes_the_plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["completion", "kubectl"])
    (tmp_path / "kubectl_complete-slurm").write_text(capsys.readouterr().out)
    (tmp_path / "kubectl-slurm").write_text(f'#!/bin/sh\nexec {sys.executable} -m kubectl_slurm "$@"\n')
    for program in tmp_path.iterdir():
        program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(map(str, PATHS))}

    def completed(*words: str) -> list[str]:
        command = ["kubectl_complete-slurm", *words]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return done.stdout.splitlines()

    assert completed("und") == ["undrain", ":4"]
    assert completed("conf", "") == ["live", "rendered", "diff", ":4"]
    assert completed("submit", "") == [":0"]
