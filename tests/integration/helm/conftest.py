"""A control plane for each file: charts install cluster-wide CRDs and rights, and may serve all namespaces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import control_plane as support
from tests.support.control_plane import ControlPlane


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One without anything that other tests have left."""
    with support.running("helm") as instance:
        yield instance
