"""skaffold's builder without Docker: builds an image of the operator, and loads it into the local Kubernetes.

skaffold names the image in ``IMAGE``, and asks the registry in that name for its digest. Pods name the image with its
digest, so it is loaded under that name, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hack.developing import registry
from hack.developing.errors import DevelopingError
from hack.images import build as images
from hack.images.errors import ImagesError
from hack.images.tools.archive import LAYOUT_NAME, write_archive
from hack.localkube.cluster import Cluster
from hack.localkube.errors import LocalKubeError
from hack.localkube.paths import ClusterPaths, state_root
from hack.localkube.programs import build
from hack.machine.progress import say, step


def main(image_set: str, environment: Mapping[str, str] = os.environ) -> int:
    """Build, push and load the image set that skaffold wants; returns 1 after saying why that failed."""
    try:
        cluster = local_cluster(environment.get("KUBECONFIG", ""))
        cluster.require_up()
        (archive,) = images.ensure([image_set], say)[image_set]
        with tempfile.TemporaryDirectory() as folder:
            layout = Path(folder) / "layout"
            with tarfile.open(archive) as tar:
                tar.extractall(layout, filter="data")
            name = environment["IMAGE"]
            with step(f"load {name}"):
                _push(layout, name)
                loaded = Path(folder) / "image.tar"
                tag, digest = entry(layout)
                write_archive(layout, {tag: [name, pinned(name, digest)]}, loaded)
                cluster.load_images([loaded])
    except (DevelopingError, ImagesError, LocalKubeError) as error:
        say(f"error: {error}")
        return 1
    return 0


def local_cluster(kubeconfig: str) -> Cluster:
    """Return the local Kubernetes that a kubeconfig is of.

    Raises
    ------
    DevelopingError
        It is that of another Kubernetes.
    """
    path = Path(kubeconfig)
    name = path.parent.name
    if not kubeconfig or path != ClusterPaths(name).kubeconfig:
        raise DevelopingError(
            f"KUBECONFIG is {kubeconfig or 'not set'}, no local Kubernetes below {state_root()}: "
            'say `eval "$(.venv/bin/python -m hack.localkube env)"`, or use the profile docker'
        )
    return Cluster(name)


def entry(layout: Path) -> tuple[str, str]:
    """Return the tag and the digest of the one image of a layout."""
    (manifest,) = json.loads((layout / "index.json").read_text(encoding="utf-8"))["manifests"]
    return manifest["annotations"][LAYOUT_NAME], manifest["digest"]


def pinned(name: str, digest: str) -> str:
    """Return the name under which containerd looks for ``repository:tag@digest``."""
    return f"{name.rpartition(':')[0]}@{digest}"


def _push(layout: Path, name: str) -> None:
    registry.ensure()
    push = [str(build.tool("crane")), "push", "--insecure", str(layout), name]
    run = subprocess.run(push, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise DevelopingError(f"`crane push {name}` failed: {run.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
