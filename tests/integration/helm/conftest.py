"""A control plane for each file: charts bring CRDs and rights everywhere, and an operator may serve all namespaces."""

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
