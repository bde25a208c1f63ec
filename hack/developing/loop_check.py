"""``make skaffold-check``: skaffold renders every profile, and a saved Python file runs in the operator in seconds.

It works on a copy of the tree, in a local Kubernetes of its own, which it ends.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hack.developing import tools
from hack.developing.errors import DevelopingError
from hack.images.errors import ImagesError
from hack.localkube.cluster import Cluster
from hack.localkube.errors import LocalKubeError
from hack.localkube.kubectl import wait_for
from hack.localkube.programs import build
from hack.machine import neutral_start
from hack.machine.progress import say, step
from hack.packaging.render import ROOT

PROFILES: Final[Mapping[str, Sequence[str]]] = {
    ".": ("docker", "local", "sync", "local-sync", "debug"),
    "helm/slurm-operator": ("docker", "local", "sync", "local-sync", "debug"),
    "helm/slurm": ("docker", "local", "sync", "local-sync", "debug"),
}
"""Profiles by the folder of their skaffold.yaml."""

CHANGED: Final = "slinky_operator/app.py"
ROUNDS: Final = 3
PATIENCE: Final = 300.0


def main() -> int:
    """Render, then measure; returns 1 after saying what failed."""
    build.ensure(tools.SKAFFOLD, tools.CRANE, build.HELM, build.KUBERNETES)
    cluster = Cluster("skaffold")
    try:
        with TemporaryDirectory(prefix="skaffold-check-") as folder:
            tree = Path(folder) / "tree"
            copy_tree(tree)
            environment = {
                **os.environ,
                "PATH": f"{build.bin_folder()}:{os.environ['PATH']}",
                "SKAFFOLD_UPDATE_CHECK": "false",
                # No context: rendering asks no cluster.
                "KUBECONFIG": str(Path(folder) / "none"),
            }
            with step("skaffold render, every profile, without a cluster"):
                for place, profiles in PROFILES.items():
                    for profile in profiles:
                        render(tree / place, profile, environment)
            cluster.up(nodes=1)
            measure(tree, cluster, {**environment, "KUBECONFIG": str(cluster.paths.kubeconfig)})
    except (DevelopingError, ImagesError, LocalKubeError) as error:
        say(f"error: {error}")
        return 1
    finally:
        cluster.down(quiet=True)
    return 0


def copy_tree(tree: Path) -> None:
    """Copy what git knows or would add, and what `make values-dev` writes."""
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in files.stdout.splitlines():
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    for values in (ROOT / "hack" / "developing" / "values").glob("*.yaml"):
        shutil.copy2(values, tree / "helm" / values.stem / "values-dev.yaml")


def render(folder: Path, profile: str, environment: Mapping[str, str]) -> str:
    """Render one profile; returns the manifests.

    Raises
    ------
    DevelopingError
        skaffold refuses, or gives nothing.
    """
    command = ["skaffold", "render", f"--profile={profile}", "--digest-source=tag", "--offline=true"]
    run = subprocess.run(
        [*command, "--interactive=false"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if run.returncode != 0 or "kind:" not in run.stdout:
        raise DevelopingError(f"`{' '.join(command)}` in {folder.name}: {run.stderr.strip() or 'nothing rendered'}")
    return run.stdout


def measure(tree: Path, cluster: Cluster, environment: Mapping[str, str]) -> None:
    """Save a file several times under ``skaffold dev``; print how long the running operator took to have it."""
    log = tree.parent / "dev.log"
    with _developing(tree, log, environment):
        with step("skaffold dev: build, load, install"):
            wait_for(
                "an operator that leads, and skaffold watching",
                lambda: "became leader" in (text := _text(log)) and "Watching for changes" in text,
                timeout=PATIENCE,
            )
        changed = tree / CHANGED
        source = changed.read_text(encoding="utf-8")
        for number in range(1, ROUNDS + 1):
            running, leading = save(changed, source, f"skaffold-check {number}", log)
            say(f"  ok   save {number}: the file runs after {running:.1f} s, and leads after {leading:.1f} s")
        restarts = cluster.kubectl(
            *("get", "pods", "--namespace=slurm-operator"),
            "--output=jsonpath={.items[*].status.containerStatuses[*].restartCount}",
        )
        if restarts != "0":
            raise DevelopingError(f"the operator's container was restarted: {restarts}")


def save(file: Path, source: str, mark: str, log: Path) -> tuple[float, float]:
    """Save a file with a line that logs a mark; return the seconds until it runs, and until the operator leads."""
    again = re.compile(f"{mark}.*became leader", re.DOTALL)
    saved = time.monotonic()
    file.write_text(f"{source}\nlogging.getLogger(__name__).warning('{mark}')\n", encoding="utf-8")
    wait_for("the saved file to run", lambda: mark in _text(log), timeout=PATIENCE, poll=0.02)
    running = time.monotonic() - saved
    wait_for("the operator to lead", lambda: again.search(_text(log)) is not None, timeout=PATIENCE, poll=0.02)
    return running, time.monotonic() - saved


@contextmanager
def _developing(tree: Path, log: Path, environment: Mapping[str, str]) -> Iterator[None]:
    command = ["skaffold", "dev", "--profile=local-sync", "--interactive=false", "--port-forward=false"]
    with log.open("w") as output:
        skaffold = subprocess.Popen(
            command, cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            yield
        except LocalKubeError as error:
            raise DevelopingError(f"{error}; the last lines of skaffold:\n{_text(log)[-2000:]}") from error
        finally:
            skaffold.send_signal(signal.SIGINT)
            skaffold.wait()


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


if __name__ == "__main__":
    neutral_start.begin()
    sys.exit(main())
