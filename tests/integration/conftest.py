"""Fixtures of all integration tests: one real API server per process; each test creates its namespace.

How files are shared between processes is in `tests.support.files_by_version`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import control_plane as support
from tests.support import served
from tests.support.control_plane import ControlPlane
from tests.support.files_by_version import pytest_collection_modifyitems, pytest_xdist_make_scheduler

__all__ = ["pytest_collection_modifyitems", "pytest_xdist_make_scheduler"]


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A real etcd and kube-apiserver, without Nodes, that serve our kinds."""
    with support.running("integration") as instance:
        served.apply_crds(instance.kubectl)
        yield instance
