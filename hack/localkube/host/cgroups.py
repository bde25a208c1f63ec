"""A cgroup per Node, so that each kubelet manages a tree of its own, under version 1 or version 2.

Version 1 has a tree per controller, version 2 one for all. What is made here is removed by `remove`, the pods' groups
below included; nothing else in the cgroup file system is touched.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from hack.localkube.errors import LocalKubeError, Unsupported

ROOT = Path("/sys/fs/cgroup")
NEEDED_V1 = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids")
NEEDED_V2 = ("cpu", "cpuset", "memory", "pids")

WEIGHTS = {"cpu.shares": "4096", "cpu.weight": "400"}
"""Of all pods of all clusters together, under version 1 and version 2: four times the default.

Every session of the machine has the default weight: each kubelet, each shim, a run of tests with all its kubectl. On
two processors that were slow and always busy, pods had a third of the machine at that weight: slurmrestd answered in
1.9 s, and a quarter of the end-to-end tests took 19 minutes; with more weight 0.1 s, and the next quarter 9 minutes.
With eight times the default the API server needed a second for a write."""


def is_v2(root: Path = ROOT) -> bool:
    """Whether the machine has the unified hierarchy only."""
    return (root / "cgroup.controllers").exists()


def check(root: Path = ROOT) -> None:
    """Check that a kubelet can work here.

    Raises
    ------
    Unsupported
        Controllers are missing; the text names them.
    """
    if is_v2(root):
        available = (root / "cgroup.controllers").read_text().split()
        missing = [controller for controller in NEEDED_V2 if controller not in available]
        layout = "cgroup v2"
    else:
        missing = [controller for controller in NEEDED_V1 if not (root / controller / "cgroup.procs").exists()]
        layout = "cgroup v1"
    if missing:
        raise Unsupported(f"{layout} at {root} lacks the controllers {', '.join(missing)}")


def create(path: str, root: Path = ROOT) -> None:
    """Make the group `path` (``localkube/<cluster>/<node>``) under every controller.

    A cpuset of version 1 is born without processors and memory nodes and would refuse every process: both are copied
    from above. Under version 2 each level has to hand its controllers down. The first level has a weight (`WEIGHTS`).
    """
    parts = Path(path).parts
    for tree in _trees(root):
        for depth in range(1, len(parts) + 1):
            group = tree.joinpath(*parts[:depth])
            group.mkdir(exist_ok=True)
            if is_v2(root):
                controllers = (group.parent / "cgroup.controllers").read_text().split()
                enable = " ".join(f"+{name}" for name in controllers)
                (group.parent / "cgroup.subtree_control").write_text(enable)
            elif (group / "cpuset.cpus").exists():
                for file in ("cpuset.cpus", "cpuset.mems"):
                    if not (group / file).read_text().strip():
                        (group / file).write_text((group.parent / file).read_text())
        for file, weight in WEIGHTS.items():
            if (tree / parts[0] / file).exists():
                (tree / parts[0] / file).write_text(weight)


def remove(path: str, root: Path = ROOT, timeout: float = 60.0) -> None:
    """Remove the group `path` and all below it, and its parents if they are empty then.

    Raises
    ------
    LocalKubeError
        Processes are still in it after `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    for tree in _trees(root):
        top = tree / path
        while top.exists():
            groups = sorted((g for g in top.rglob("*") if g.is_dir()), key=lambda g: len(g.parts), reverse=True)
            try:
                for group in [*groups, top]:
                    group.rmdir()
            except OSError as error:
                if time.monotonic() > deadline:
                    raise LocalKubeError(f"the cgroup {error.filename} is still in use") from error
                time.sleep(0.1)
        for parent in list(Path(path).parents)[:-1]:
            group = tree / parent
            if group.exists() and not any(entry.is_dir() for entry in group.iterdir()):
                group.rmdir()


def _trees(root: Path) -> Iterator[Path]:
    if is_v2(root):
        yield root
        return
    seen: set[Path] = set()
    for entry in sorted(root.iterdir()):
        # cpu and cpuacct are often links to one tree.
        real = entry.resolve()
        if real not in seen and (real / "cgroup.procs").exists():
            seen.add(real)
            yield real
