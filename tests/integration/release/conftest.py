"""The folder of a release: that of ``RELEASE`` (`make release-check`), or one made for these tests, without images."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.release import parameters
from hack.release.__main__ import make
from tests.support import control_plane as support
from tests.support.control_plane import ControlPlane

REGISTRY = "registry.example.com/slurm"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("RELEASE")
    if given:
        return Path(given).resolve()
    made = tmp_path_factory.mktemp("release")
    environ = {"REGISTRY": REGISTRY, "SOURCE": "https://git.example.com/slurm"}
    make(parameters.read(environ), made, ("wheels", "charts", "manifests", "olm"), "urn:tests")
    return made


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """An empty one."""
    with support.running("release") as instance:
        yield instance
