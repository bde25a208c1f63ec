"""What a start of the operator imports: not what it never uses, and with the garbage collector at rest."""

from __future__ import annotations

import gc
import importlib
import json
import subprocess
import sys

import pytest

from slinky_operator.runtime.garbage_collection import pause_collector

PROGRAM = """
import gc, json, sys
collections = []
gc.callbacks.append(lambda phase, info: collections.append(info["generation"]))
from slinky_operator import cli
begun = len(collections)
status = cli.main(["--log-level=LOUD"])
during = len(collections) - begun
frozen = gc.get_freeze_count()
from slinky_operator import controllers
from slinky_operator.settings import Settings
always = controllers.wanted(Settings())
print(json.dumps({"status": status, "modules": list(sys.modules), "during": during, "frozen": frozen}))
"""


@pytest.fixture(scope="module")
def started() -> dict[str, object]:
    """A start that ends at its settings."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    assert found["status"] == 2, done.stderr
    return found


@pytest.mark.parametrize("name", ["requests", "oauthlib", "websocket", "kubernetes.config", "kubernetes.aio.dynamic"])
def test_the_clients_of_the_kubernetes_package_are_not_imported(started: dict[str, object], name: str) -> None:
    modules = started["modules"]
    assert isinstance(modules, list)
    assert {"kopf", "kubernetes.aio.config", "slinky_operator.app"} <= set(modules)
    assert name not in modules


@pytest.mark.parametrize("room", ["bridge", "node_labels", "slurmjob", "sylabs", "virtual_nodes"])
def test_controllers_that_are_switched_off_are_not_imported(started: dict[str, object], room: str) -> None:
    modules = started["modules"]
    assert isinstance(modules, list)
    assert "slinky_operator.cluster.spec" in modules
    assert [name for name in modules if name.startswith(f"slinky_operator.{room}")] == []


def test_the_collector_does_not_look_at_what_is_imported(started: dict[str, object]) -> None:
    frozen, during = started["frozen"], started["during"]
    assert isinstance(frozen, int)
    assert isinstance(during, int)
    assert frozen > 100_000
    # Each collection is reported twice; some follow the imports.
    assert during < 20


def test_the_collector_works_again_after_an_import_that_fails() -> None:
    with pytest.raises(ModuleNotFoundError), pause_collector():
        _ = importlib.import_module("slinky_operator.missing")
    assert gc.isenabled()
