"""The plugin as one file has all that it imports, and nothing that needs a library in C."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from hack.release import plugin

LIBRARIES = {"click", "httpx", "rich", "typing_extensions", "yaml"}
"""Those of requirements/plugin.txt that are imported by name."""


def test_it_imports_what_it_has_and_the_standard_library() -> None:
    roots = {
        name.split(".")[0]
        for path in plugin.modules()
        if not path.is_relative_to(plugin.ROOT / "slurm_client")
        for name in plugin.imported(path)
    }
    assert roots - sys.stdlib_module_names - LIBRARIES <= set(plugin.OURS)


def test_each_library_is_pinned() -> None:
    pinned = {line.split("==")[0] for line in plugin.REQUIREMENTS.read_text().splitlines() if "==" in line}
    assert {"click", "httpx", "rich", "typing-extensions", "pyyaml"} <= pinned


def test_the_operators_part_is_a_few_pure_rules() -> None:
    places = {str(path.relative_to(plugin.ROOT)) for path in plugin.modules() if "slinky_operator" in path.parts}
    assert "slinky_operator/slurm/nodes/drain_reasons.py" in places
    assert len(places) < 60
    assert Path("slinky_operator/process.py").as_posix() not in places


def test_krew_is_told_where_the_archive_will_be(tmp_path: Path) -> None:
    archive = tmp_path / "kubectl-slurm-1.2.3.tar.gz"
    archive.write_bytes(b"")
    described = yaml.safe_load(plugin.described(archive, "https://git.example.com/s/releases/download/v1.2.3"))
    (platform,) = described["spec"]["platforms"]
    assert platform["uri"] == f"https://git.example.com/s/releases/download/v1.2.3/{archive.name}"
    assert "example.com" not in Path(plugin.__file__).read_text(encoding="utf-8")
