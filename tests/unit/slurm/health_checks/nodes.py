"""A folder that stands for a node: its ConfigMap with checks, its results, and the programs in its path."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from slinky_api.v1alpha1.nodeset.checks import Check
from slinky_operator.slurm.health_checks import programs, reports, tables
from slinky_operator.slurm.health_checks.reports import Report

NAME: Final = "gpu-0"

SCONTROL: Final = """\
#!/bin/sh
if [ -e "{folder}/away" ]; then exit 1; fi
printf '%s\\n' "$*" >> "{folder}/told"
"""


class FakeNode:
    """A node whose slurmctld records what it receives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.given, self.bin = folder / "given", folder / "bin"
        for one in (self.given, self.bin):
            one.mkdir()
        self.put("scontrol", SCONTROL.format(folder=folder))
        path = "PATH=/usr/local/sbin"
        text = programs.program(str(self.given), str(folder / "state"))
        assert text.count(path) == 1
        self.program = folder / programs.PROLOG
        self.program.write_text(text.replace(path, f"PATH={self.bin}:/usr/local/sbin"))

    def put(self, name: str, text: str) -> None:
        """Put a program into the path."""
        program = self.bin / name
        program.write_text(text)
        program.chmod(0o755)

    def gives(self, name: str, *checks: dict[str, Any], node: str = "") -> str:
        """Bring a table, as the kubelet does; returns its revision."""
        table, files = tables.table(map(Check.model_validate, checks))
        (self.given / name).write_text(table.text(node))
        for file, text in files.items():
            (self.given / file).write_text(text)
            (self.given / file).chmod(0o500)
        return table.revision

    def runs(self, context: str = "", *words: str) -> subprocess.CompletedProcess[str]:
        """Run the program as slurmd does; it always ends well."""
        env = {"SLURMD_NODENAME": NAME, **({"SLURM_SCRIPT_CONTEXT": context} if context else {})}
        found = subprocess.run(
            ["/bin/sh", self.program, *words], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert (found.returncode, found.stdout) == (0, "")
        return found

    @property
    def told(self) -> list[str]:
        """Everything that slurmctld was told."""
        told = self.folder / "told"
        return told.read_text().splitlines() if told.exists() else []

    def report(self) -> Report:
        """The last report."""
        words, _, comment = self.told[-1].partition(" Comment=")
        assert words == f"update NodeName={NAME}"
        found = reports.read(comment)
        assert found is not None
        return found


def own(name: str, script: str, **given: Any) -> dict[str, Any]:
    """A check of the user's own."""
    return {"name": name, "script": f"#!/bin/sh\n{script}\n", **given}


def run_script(
    name: str, path: Path, replaced: Mapping[str, str] | None = None, /, **parameters: str
) -> tuple[int, str]:
    """Run a check that comes with the operator with fake tools in its path; returns its code and its first line."""
    text = programs.script(name)
    for old, new in (replaced or {}).items():
        assert old in text
        text = text.replace(old, new)
    env = {"PATH": f"{path}:{os.defpath}", **{f"CHECK_{key}": value for key, value in parameters.items()}}
    words: Sequence[str] = ["/bin/sh", "-c", text]
    found = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert found.stderr == ""
    return found.returncode, found.stdout.partition("\n")[0]
