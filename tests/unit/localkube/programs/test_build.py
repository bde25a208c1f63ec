"""What makes the cache build a program again."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hack.localkube.programs.build import COREDNS, HELM, KUBERNETES, KUBERNETES_VERSION, Program, binary, ensure


def test_the_key_of_a_module_changes_with_every_input(tmp_path: Path) -> None:
    files = {"go.mod": "module x", "go.sum": "", "main.go": "package main"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    keys = {Program("x", tmp_path).key()}
    for name in files:
        (tmp_path / name).write_text(f"changed {name}")
        keys.add(Program("x", tmp_path).key())
    keys.add(Program("x", tmp_path, ldflags="-X a=b").key())
    assert len(keys) == 5


def test_a_released_program_is_keyed_by_its_version() -> None:
    assert Program("x", "example.com/x@v1").key() != Program("x", "example.com/x@v2").key()


def test_every_program_is_pinned() -> None:
    assert "@v" in str(HELM.source)
    for program in (KUBERNETES, COREDNS):
        assert isinstance(program.source, Path)
        assert (program.source / "go.sum").exists()


def test_helm_alone_takes_the_cluster_for_the_version_that_is_built_here(tmp_path: Path) -> None:
    ensure(HELM)
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: x\nversion: 1.0.0\n")
    (tmp_path / "templates" / "x.yaml").write_text("is: {{ .Capabilities.KubeVersion.Version }}\n")
    shown = subprocess.run([binary(HELM), "template", tmp_path], capture_output=True, text=True, check=True).stdout
    major_minor = KUBERNETES_VERSION.rpartition(".")[0]
    assert f"is: {major_minor}.0" in shown
