"""Cgroups for Nodes, with a simulated cgroup file system of either version."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.localkube.errors import Unsupported
from hack.localkube.host import cgroups

GROUP = "localkube/test/node-1"


@pytest.fixture
def version1(tmp_path: Path) -> Path:
    for controller in cgroups.NEEDED_V1:
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").touch()
    for file, content in (("cpuset.cpus", "0-1\n"), ("cpuset.mems", "0\n")):
        (tmp_path / "cpuset" / file).write_text(content)
    return tmp_path


@pytest.fixture
def version2(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (tmp_path / "cgroup.subtree_control").touch()
    return tmp_path


def test_both_versions_are_told_apart(tmp_path: Path) -> None:
    assert not cgroups.is_v2(tmp_path)
    (tmp_path / "cgroup.controllers").touch()
    assert cgroups.is_v2(tmp_path)


def test_a_machine_that_has_everything_passes(version1: Path) -> None:
    cgroups.check(version1)


@pytest.mark.parametrize("missing", cgroups.NEEDED_V1)
def test_a_missing_controller_is_named(version1: Path, missing: str) -> None:
    (version1 / missing / "cgroup.procs").unlink()
    with pytest.raises(Unsupported, match=rf"cgroup v1 .* lacks the controllers {missing}$"):
        cgroups.check(version1)


def test_missing_controllers_of_version_2_are_named(version2: Path) -> None:
    (version2 / "cgroup.controllers").write_text("cpu io\n")
    with pytest.raises(Unsupported, match=r"cgroup v2 .* lacks the controllers cpuset, memory, pids"):
        cgroups.check(version2)


def test_version_1_makes_the_group_under_every_controller_and_removes_it(version1: Path) -> None:
    cgroups.create(GROUP, version1)
    assert all((version1 / controller / GROUP).is_dir() for controller in cgroups.NEEDED_V1)
    cgroups.remove(GROUP, version1)
    assert not any((version1 / controller / "localkube").exists() for controller in cgroups.NEEDED_V1)


def test_removing_one_cluster_spares_another(version1: Path) -> None:
    cgroups.create("localkube/one/node-1", version1)
    cgroups.create("localkube/two/node-1", version1)
    (version1 / "cpu" / "localkube/one/node-1/kubepods/pod1").mkdir(parents=True)
    cgroups.remove("localkube/one", version1)
    assert not (version1 / "cpu/localkube/one").exists()
    assert (version1 / "cpu/localkube/two/node-1").is_dir()


def test_removing_what_is_not_there_is_nothing(version1: Path) -> None:
    cgroups.remove("localkube/none", version1)
    assert not (version1 / "cpu/localkube").exists()


def test_all_pods_together_have_more_weight_than_a_session_of_the_machine(version1: Path) -> None:
    (version1 / "cpu/localkube").mkdir()
    (version1 / "cpu/localkube/cpu.shares").write_text("1024\n")

    cgroups.create(GROUP, version1)

    assert (version1 / "cpu/localkube/cpu.shares").read_text() == "4096"
    assert not list((version1 / "memory").rglob("cpu.*"))


def test_under_version_2_all_pods_together_have_more_weight_too(version2: Path) -> None:
    (version2 / "localkube").mkdir()
    for group in ("localkube", "localkube/test"):
        (version2 / group).mkdir(exist_ok=True)
        (version2 / group / "cgroup.controllers").write_text("cpu memory\n")
    (version2 / "localkube/cpu.weight").write_text("100\n")

    cgroups.create(GROUP, version2)

    assert (version2 / "localkube/cpu.weight").read_text() == "400"
