"""What end-to-end tests share: one local Kubernetes for the whole run, named apart from the developer's own.

Where the run is spread over several processes, each has one of its own.

Its DNS domain is not the usual one, so that nothing of ours can count on that.

It is ended at the end of the run. A cluster that an earlier run left behind (killed in the middle) is replaced: its
state is unknown. With ``--cluster=NAME`` the run uses a cluster of yours instead, brings it up if need be, and leaves
it up: the quick way while writing tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hack.images import build as images
from hack.localkube.cluster import Cluster
from hack.localkube.kubectl import Kubectl
from hack.progress import say

DOMAIN = "slurm.example"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cluster", metavar="NAME", help="use this local cluster and leave it up")


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A local Kubernetes with two Nodes and all our images."""
    kept = request.config.getoption("--cluster")
    instance = Cluster(kept or "-".join(("e2e", *filter(None, [os.environ.get("PYTEST_XDIST_WORKER")]))))
    if not kept:
        instance.down(quiet=True)
    try:
        instance.up(nodes=2, domain=DOMAIN)
        archives = images.ensure(["slurm-26.05", "slurm-24.11"], say)
        instance.load_images([archive for group in archives.values() for archive in group])
        yield instance
    finally:
        if not kept:
            instance.down()


@pytest.fixture(scope="session")
def kubectl(cluster: Cluster) -> Kubectl:
    """kubectl for that cluster."""
    return cluster.kubectl
