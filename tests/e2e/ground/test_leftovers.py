"""A cluster leaves the machine as it was when it ends, however it was interrupted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.localkube.cluster import Cluster
from hack.localkube.errors import LocalKubeError
from hack.localkube.host import cgroups, sysctls
from hack.localkube.kubectl import wait_for
from hack.localkube.paths import PROJECT, state_root

pytestmark = pytest.mark.timeout(900)
NAME = "leftovers"


def traces() -> dict[str, set[str]]:
    """What a cluster could leave on the machine."""
    processes = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            namespace = str((entry / "ns/pid").readlink())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended while we looked, or is none of ours
        if NAME in command and "pytest" not in command:
            processes.add(command)
        # Containers do not name the cluster, but live in its pid namespaces.
        processes.add(namespace)
    interfaces = subprocess.run(["ip", "-brief", "address"], capture_output=True, text=True, check=True).stdout
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
    groups = [path for tree in cgroups._trees(cgroups.ROOT) for path in tree.glob("localkube/**/")]
    return {
        "processes": processes,
        "mounts": set(Path("/proc/self/mounts").read_text().splitlines()),
        "interfaces": set(interfaces.splitlines()),
        # Counters and comments differ from call to call.
        "rules": {line for line in rules.splitlines() if line.startswith("-A")},
        "cgroups": {str(path) for path in groups},
        "sysctls": {f"{name}={value}" for name, value in sysctls.originals([]).items()},
        "files": {str(path) for path in state_root().glob(f"{NAME}*")},
    }


def new(before: dict[str, set[str]]) -> dict[str, set[str]]:
    after = traces()
    return {kind: after[kind] - before[kind] for kind in after if after[kind] - before[kind]}


def wait_until_nothing_is_left(before: dict[str, set[str]]) -> None:
    # Ended processes are collected by the machine's init in its own time.
    try:
        wait_for("nothing left", lambda: new(before) == {}, timeout=240)
    except LocalKubeError:
        assert new(before) == {}


@pytest.fixture
def other(cluster: Cluster) -> Iterator[Cluster]:
    """A second cluster beside the one of the test run, whose images it shares."""
    instance = Cluster(NAME)
    instance.down(quiet=True)
    yield instance
    instance.down(quiet=True)


def test_down_leaves_nothing_and_the_other_cluster_alone(cluster: Cluster, other: Cluster) -> None:
    before = traces()
    other.up(nodes=1)
    assert new(before).keys() >= {"processes", "interfaces", "cgroups", "files"}
    assert other.node_names() == ["node-1"]
    other.down()
    wait_until_nothing_is_left(before)
    wait_for("the other's Nodes", lambda: len(cluster.status()["ready"]) == 2, timeout=120)


@pytest.mark.parametrize("moment", ["control-plane/pid", "node-1/pid", "node-2/kubelet.log"])
def test_down_cleans_up_after_a_killed_up(other: Cluster, moment: str) -> None:
    before = traces()
    up = subprocess.Popen(
        [sys.executable, "-m", "hack.localkube", f"--name={NAME}", "up"],
        cwd=PROJECT,
        stderr=subprocess.DEVNULL,
    )
    wait_for(moment, (other.paths.root / moment).exists, timeout=120, poll=0.01)
    up.kill()
    up.wait()
    other.down()
    wait_until_nothing_is_left(before)


def test_up_recovers_from_a_killed_up(other: Cluster) -> None:
    up = subprocess.Popen(
        [sys.executable, "-m", "hack.localkube", f"--name={NAME}", "up", "--nodes=1"],
        cwd=PROJECT,
        stderr=subprocess.DEVNULL,
    )
    wait_for("the Node", (other.paths.root / "node-1/pid").exists, timeout=120, poll=0.01)
    up.kill()
    up.wait()
    other.up(nodes=1)
    wait_for("its Node", lambda: other.status()["ready"] == ["node-1"], timeout=120)


def test_a_cluster_that_is_not_up_says_how_to_start_it() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "hack.localkube", "--name=nowhere", "kubeconfig"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "is not up: start it with `make up`" in run.stderr
