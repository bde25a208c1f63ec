"""One operator, one Cluster and one namespace that attacks it, for all files of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import tenants
from tests.support.control_plane import ControlPlane
from tests.support.tenants import Site


@pytest.fixture(scope="session")
def site(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with tenants.running(control_plane, tmp_path_factory.mktemp("security")) as made:
        yield made
