"""The operator, installed by its chart as a user would, and the Slurm that it runs.

A failed test shows the operator's log, and the state of Kubernetes and Slurm.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from hack.installing.operator import Installation
from hack.localkube.cluster import Cluster
from hack.localkube.errors import LocalKubeError
from tests.support.shared_by_workers import first_of
from tests.support.slurm_in_kubernetes import NEWEST, VERSIONS, NewSlurm

MADE = pytest.StashKey[NewSlurm]()
"""The Clusters of a module."""

STUCK, MOST_STUCK = pytest.StashKey[int](), 2
"""Tests of a module whose setup has failed: what does not come to rest costs each test after it minutes."""

SHOWN = 20_000
"""Characters of the operator's log, the last ones."""


@pytest.fixture(scope="session")
def operator(cluster: Cluster, run_folder: Path) -> Installation:
    """Two replicas of the operator: one leads, one stands by."""
    installation = Installation(cluster, replicas=2, old_jobs=True)
    with first_of(run_folder, "operator") as is_first:
        if is_first:
            installation.install()
    return installation


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "slurm_version" not in metafunc.fixturenames:
        return
    only = metafunc.definition.get_closest_marker("only_slurm")
    both = metafunc.config.getoption("--slurm") == "all" or metafunc.definition.get_closest_marker("both_slurms")
    versions = only.args if only else VERSIONS if both else (NEWEST,)
    metafunc.parametrize("slurm_version", versions, indirect=True, scope="module")


@pytest.fixture(scope="module")
def slurm_version(request: pytest.FixtureRequest) -> str:
    """The version of Slurm that a module is run with, as in the tags of the images."""
    return str(request.param)


@pytest.fixture(scope="module")
def new_slurm(request: pytest.FixtureRequest, operator: Installation, slurm_version: str) -> Iterator[NewSlurm]:
    """Makes places for Clusters, in namespaces that go with the module."""
    instance = request.node.stash[MADE] = NewSlurm(operator.cluster.kubectl, slurm_version)
    yield instance
    for one in instance.made:
        one.abandon()


def pytest_runtest_setup(item: pytest.Item) -> None:
    module = item.getparent(pytest.Module)
    if module is not None and module.stash.get(STUCK, 0) >= MOST_STUCK:
        pytest.fail(f"not tried: the setup of {MOST_STUCK} tests of this file has failed before it", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    module = item.getparent(pytest.Module)
    if report.when == "setup" and report.failed and module is not None:
        module.stash[STUCK] = module.stash.get(STUCK, 0) + 1
    made = module.stash[MADE].made if module is not None and MADE in module.stash else []
    if report.when == "setup":
        for one in made:
            one.submitted.clear()
    if report.failed and made:
        fixtures = getattr(item, "funcargs", {}).values()
        report.sections += [("operator's log", log(one)) for one in fixtures if isinstance(one, Installation)]
        report.sections += [(f"namespace {one.namespace}", one.describe()) for one in made]
        # A job that the test holds would keep its node from all tests after it, whose failures hide the first one.
        report.sections += [(f"jobs of {one.namespace}", one.cancel_jobs()) for one in made]
    return report


def log(operator: Installation) -> str:
    """The end of what the operator has logged, or why it cannot be had."""
    try:
        return operator.logs()[-SHOWN:]
    except LocalKubeError as error:
        return str(error)
