"""Images in the local cluster's Nodes under other names, if a test needs another name and not another content."""

from __future__ import annotations

import subprocess

from hack.localkube.cluster import Cluster
from hack.localkube.programs import debian


def tag(cluster: Cluster, image: str, another: str) -> None:
    """Let an image that is loaded into every Node be known by another name, too."""
    for name in cluster.node_names():
        command = cluster.machine(name).inside(
            debian.which("ctr") or "ctr", "--namespace=k8s.io", "images", "tag", "--force", image, another
        )
        subprocess.run(command, check=True, capture_output=True, text=True)
