"""The operator, installed by its chart as a user would."""

from __future__ import annotations

import pytest

from hack.localkube.cluster import Cluster
from hack.operator_install import Installation


@pytest.fixture(scope="session")
def operator(cluster: Cluster) -> Installation:
    """Two replicas of the operator: one leads, one stands by."""
    installation = Installation(cluster, replicas=2)
    installation.install()
    return installation
