"""How xdist shares tests of real daemons: whole files, with one version of Slurm at a time, those that are long first.

A file of tests runs as one unit, since its tests share a Cluster or a Slurm, separately for each version of Slurm.
Files marked `long` start first, those that say most seconds before the others: started last, they would delay the end
of the run.

The folders that are shared like that name the hooks in their ``conftest.py``.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.support.slurm_in_kubernetes import VERSIONS

BUSY = ("slurm_conf/test_key_orders.py",)
"""Files whose tests keep the machine busy: the versions of Slurm take turns there."""

MINUTES = 60
"""Seconds of a file that is marked without saying how many."""

__all__ = ["pytest_collection_modifyitems", "pytest_xdist_make_scheduler"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=seconds_marked, reverse=True)


def seconds_marked(item: pytest.Item) -> int:
    """Return how long the file of a test takes, by its mark; nothing if it has none."""
    mark = item.get_closest_marker("long")
    if mark is None:
        return 0
    return int(mark.args[0]) if mark.args else MINUTES


class FilesByVersion(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each process whole files, with one version of Slurm at a time, in the order of the collection."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        # By the number of tests, which says little of how long they take.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        if file.endswith(BUSY):
            return file
        version = next((one for one in VERSIONS if f"[{one}" in test), "")
        return f"{file}[{version}]" if version else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return FilesByVersion(config, log)
