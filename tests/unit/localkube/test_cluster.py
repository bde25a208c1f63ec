"""Leftovers of a killed or another cluster are distinguished from what runs, before the host is changed or restored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hack.localkube.cluster import Cluster
from hack.localkube.host import cgroups, machine, sysctls
from hack.localkube.paths import ClusterPaths, state_root


@pytest.fixture
def put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What was given back to the machine; nothing of it is touched."""
    given: list[dict[str, str]] = []
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(cgroups, "remove", lambda path: None)
    monkeypatch.setattr(sysctls, "put_back", lambda values: given.append(dict(values)))
    return given


def left_behind(name: str, sysctl: str) -> ClusterPaths:
    """A cluster of which only files are there."""
    paths = ClusterPaths(name)
    paths.root.mkdir(parents=True)
    paths.record.write_text(json.dumps({"nodes": ["node-1"], "sysctls": {"kernel/panic": sysctl}}))
    return paths


def test_the_last_cluster_puts_the_settings_back(put_back: list[dict[str, str]]) -> None:
    paths = left_behind("one", "7")
    Cluster("one").down(quiet=True)
    assert put_back == [{"kernel/panic": "7"}]
    assert not paths.root.exists()


def test_a_cluster_beside_another_that_runs_leaves_them(
    put_back: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    left_behind("one", "7")
    running = left_behind("two", "7").machine("control-plane")

    def find(below: Path) -> dict[Path, list[int]]:
        return {running: [1]} if running.is_relative_to(below) else {}

    monkeypatch.setattr(machine, "find", find)
    Cluster("one").down(quiet=True)
    assert put_back == []


@pytest.mark.parametrize("name", ["killed", "api"])
def test_neither_files_nor_a_control_plane_alone_count_as_another(
    put_back: list[dict[str, str]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_behind("one", "7")
    if name == "killed":
        left_behind(name, "7")
    else:
        alone = ClusterPaths(name).machine("control-plane")
        monkeypatch.setattr(machine, "find", lambda below: {alone: [1]} if below == state_root() else {})
    Cluster("one").down(quiet=True)
    assert put_back == [{"kernel/panic": "7"}]


def test_a_cluster_of_which_nothing_was_recorded_is_removed(put_back: list[dict[str, str]]) -> None:
    paths = ClusterPaths("one")
    paths.root.mkdir(parents=True)
    paths.record.with_suffix(".fresh").write_text("")
    Cluster("one").down(quiet=True)
    assert not paths.root.exists()
    assert put_back == []
