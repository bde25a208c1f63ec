"""What triggers a rebuild of a cached program, and what is pinned."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from hack.localkube.programs.build import HELM, KUBERNETES, KUBERNETES_VERSION, PROVISIONER, Program, binary, ensure
from hack.localkube.programs.module import FOLDER, HELM_VERSION


def test_the_key_of_a_program_of_ours_changes_with_every_input(tmp_path: Path) -> None:
    files = {"go.mod": "module x", "go.sum": "", "x/main.go": "package main", "x/more.go": "package main"}
    (tmp_path / "x").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    keys = {Program("x", "./x", folder=tmp_path).key()}
    for name in files:
        (tmp_path / name).write_text(f"changed {name}")
        keys.add(Program("x", "./x", folder=tmp_path).key())
    keys.add(Program("x", "./x", ldflags="-X a=b", folder=tmp_path).key())
    assert len(keys) == 6


def test_the_key_of_a_released_program_leaves_out_files_of_ours(tmp_path: Path) -> None:
    for name in ("go.mod", "go.sum", "main.go"):
        (tmp_path / name).write_text(name)
    released = Program("x", "example.com/x", folder=tmp_path)
    before = released.key()
    (tmp_path / "main.go").write_text("changed")
    assert released.key() == before
    (tmp_path / "go.mod").write_text("changed")
    assert released.key() != before


def test_the_module_requires_the_versions_that_the_programs_say() -> None:
    required = {
        line.split()[0]: line.split()[1] for line in (FOLDER / "go.mod").read_text().splitlines() if " v" in line
    }
    assert required["k8s.io/kubernetes"] == KUBERNETES_VERSION
    assert required["helm.sh/helm/v3"] == HELM_VERSION
    assert PROVISIONER.package in required


def test_no_file_of_the_module_names_where_modules_are_fetched_from() -> None:
    for file in (FOLDER / "go.mod", FOLDER / "go.sum"):
        assert not re.search(r"https?://", file.read_text())


def test_a_name_belongs_to_one_program() -> None:
    names = [name for program in (KUBERNETES, HELM, PROVISIONER) for name in program.names]
    assert len(names) == len(set(names))


def test_helm_alone_takes_the_cluster_for_the_version_that_is_built_here(tmp_path: Path) -> None:
    ensure(HELM)
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: x\nversion: 1.0.0\n")
    (tmp_path / "templates" / "x.yaml").write_text("is: {{ .Capabilities.KubeVersion.Version }}\n")
    shown = subprocess.run([binary(HELM), "template", tmp_path], capture_output=True, text=True, check=True).stdout
    major_minor = KUBERNETES_VERSION.rpartition(".")[0]
    assert f"is: {major_minor}.0" in shown


def test_helm_says_its_version() -> None:
    ensure(HELM)
    shown = subprocess.run([binary(HELM), "version", "--short"], capture_output=True, text=True, check=True).stdout
    assert shown.startswith(HELM_VERSION)
