"""Fixtures of the operator's benchmarks: a separate cluster with one replica of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.images import build as images
from hack.installing.operator import Installation
from hack.localkube.cluster import Cluster
from hack.machine.progress import say


@pytest.fixture(scope="session")
def installed() -> Iterator[Installation]:
    """One replica of the operator in a cluster of its own."""
    cluster = Cluster("bench")
    cluster.down(quiet=True)
    cluster.up(nodes=2)
    try:
        archives = images.ensure(["slurm-26.05"], say)["slurm-26.05"]
        cluster.load_images(archives)
        installation = Installation(cluster)
        installation.install()
        yield installation
    finally:
        cluster.down()
