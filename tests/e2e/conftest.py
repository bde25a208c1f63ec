"""Fixtures of all end-to-end tests: one local Kubernetes for the whole run, separate from the developer's own.

Its DNS domain is not the usual one, so that nothing in this project can rely on that.

If the run is spread over several processes, all use the same one, each file of tests in its own namespaces; with
``--apart`` each process has its own, for files with tests that would disturb others. It is stopped at the end of the
run. A cluster left by an earlier run (killed in the middle) is replaced: its state is unknown.

With ``--cluster=NAME`` the run uses a named cluster instead, starts it if needed, and leaves it running: the quick way
while writing tests, and a way for several runs to share one.

How files are shared between processes is in `tests.support.files_by_version`.

Tests run with the newest Slurm; files marked `both_slurms` with the older one too, and with ``--slurm=all`` all files
that are not marked `only_slurm`. Those marked `full` are left to `make test-full`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.images import build as images
from hack.localkube.cluster import Cluster
from hack.localkube.kubectl import Kubectl
from hack.machine.progress import say
from tests.support.files_by_version import pytest_collection_modifyitems, pytest_xdist_make_scheduler
from tests.support.shared_by_workers import first_of, folder_of_run, worker

__all__ = ["pytest_collection_modifyitems", "pytest_xdist_make_scheduler"]

DOMAIN = "slurm.example"
NAME = "e2e"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cluster", metavar="NAME", help="use this local cluster and leave it up")
    parser.addoption("--apart", action="store_true", help="a local cluster for each process, not one for all")
    parser.addoption("--slurm", choices=["needed", "all"], default="needed", help="all: every file with both versions")


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Where those who share a cluster say what of it is there already."""
    return tmp_path_factory.mktemp("apart") if is_apart(request.config) else folder_of_run(tmp_path_factory)


def is_apart(config: pytest.Config) -> bool:
    """Whether this process has a cluster of its own, which it ends itself."""
    return bool(config.getoption("--apart")) or not worker()


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, run_folder: Path) -> Iterator[Cluster]:
    """A local Kubernetes with two Nodes and all our images."""
    kept, apart = request.config.getoption("--cluster"), is_apart(request.config)
    names = (kept or NAME, *(("apart", worker()) if apart and worker() else ()))
    instance = Cluster("-".join(names))
    try:
        with first_of(run_folder, "cluster") as is_first:
            if is_first:
                if not kept:
                    instance.down(quiet=True)
                instance.up(nodes=2, domain=DOMAIN)
                oci = [
                    "slurmd-oci-26.05",
                    *(["slurmd-oci-24.11"] if request.config.getoption("--slurm") == "all" else []),
                ]
                archives = images.ensure(["slurm-26.05", "slurm-24.11", *oci, "mariadb", "identity"], say)
                instance.load_images([archive for group in archives.values() for archive in group])
        yield instance
    finally:
        if apart and not kept:
            instance.down()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the cluster that processes have shared, when all of them have ended; those apart have ended their own."""
    config = session.config
    is_shared = config.getoption("numprocesses", None) and not config.getoption("--apart")
    if is_shared and not worker() and not config.getoption("--cluster"):
        Cluster(NAME).down(quiet=True)


@pytest.fixture(scope="session")
def kubectl(cluster: Cluster) -> Kubectl:
    """kubectl for that cluster."""
    return cluster.kubectl
