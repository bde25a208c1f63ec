"""What end-to-end tests share: one local Kubernetes for the whole run, named apart from the developer's own.

It is ended at the end of the run. A cluster that an earlier run left behind (killed in the middle) is replaced: its
state is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.images import build as images
from hack.localkube.cluster import Cluster
from hack.localkube.kubectl import Kubectl
from hack.localkube.progress import say


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A local Kubernetes with two Nodes and all our images."""
    instance = Cluster("e2e")
    instance.down(quiet=True)
    instance.up(nodes=2)
    try:
        archives = images.ensure(["slurm-26.05", "slurm-24.11"], say)
        instance.load_images([archive for group in archives.values() for archive in group])
        yield instance
    finally:
        instance.down()


@pytest.fixture(scope="session")
def kubectl(cluster: Cluster) -> Kubectl:
    """kubectl for that cluster."""
    return cluster.kubectl
