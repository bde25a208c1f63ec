"""Build what test suites need, beside the checks that do not need it yet.

On a fresh machine that takes minutes of two processors, some of which an image waits for the network. So programs and
images are built in lanes side by side, which begin with the first check; what is needed first is built first. Builds
give way to tests: a test has a time limit, a build has none. ``make demo`` builds what it needs in lanes, too.

If all is in the cache, a lane ends within milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

from hack.images import build as images
from hack.images.names import SLURM_SUITES, slurm_set, slurmd_oci_set
from hack.localkube.programs import build, debian
from hack.machine.progress import say

NICENESS = 10

SLURM_SETS = tuple(slurm_set(one).name for one in SLURM_SUITES)
SLURMD_OCI_SETS = tuple(slurmd_oci_set(one).name for one in SLURM_SUITES)

Build = Callable[[], object]

PROMETHEUS: Final = {"prometheus": "prometheus", "promtool": "prometheus"}
"""Program and Debian package: it scrapes the operator in e2e tests, and promtool tests the alerts of the chart."""


def programs(suites: Collection[str]) -> list[tuple[str, Build]]:
    """The lane of programs: which suite comes first that needs one, and what builds it."""
    if not suites:
        return []
    # A unit test compares what we generate with what kubectl makes of it.
    found: list[tuple[str, Build]] = [("unit", lambda: build.ensure(build.HELM, build.KUBERNETES))]
    if "e2e" in suites:
        found.append(("e2e", lambda: build.ensure(build.PROVISIONER)))
    return found


def image_sets(suites: Collection[str]) -> list[tuple[str, Build]]:
    """The lane of images, and of packages, which come from the same place."""
    found: list[tuple[str, Build]] = []
    if not {"integration", "e2e"}.isdisjoint(suites):
        # MariaDB is built beside the Slurm that takes longest.
        sets = [*SLURM_SETS, *SLURMD_OCI_SETS, "mariadb"] if "integration" in suites else SLURM_SETS
        found.append(("integration", lambda: images.ensure(sets, say)))
        found.append(("integration", lambda: debian.ensure(PROMETHEUS)))
    if "e2e" in suites:
        found.append(("e2e", lambda: images.ensure(["busybox", "operator", "identity", "slurmd-oci-26.05"], say)))
        found.append(("e2e", debian.ensure))
    return found


class Preparation:
    """The builds under way; a context, which at its end waits for those that have begun and begins no others.

    Parameters
    ----------
    lanes
        What is built in each, one after the other, with the first suite that needs it.
    order
        The suites, in the order in which they may run: what one needs, all after it may count on.
    """

    def __init__(self, lanes: Collection[list[tuple[str, Build]]], order: Collection[str]) -> None:
        self._order = list(order)
        self._pools = [ThreadPoolExecutor(1, initializer=_give_way) for _ in lanes]
        self._builds: list[tuple[str, Future[object]]] = [
            (suite, pool.submit(one)) for pool, lane in zip(self._pools, lanes, strict=True) for suite, one in lane
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # While one lane is waited for, another begins nothing new.
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in self._pools:
            pool.shutdown()

    def wait_for(self, suite: str) -> None:
        """Wait until all is there that a suite needs.

        Raises
        ------
        LocalKubeError, ImagesError
            Something could not be built.
        """
        place = self._order.index(suite)
        for needed_by, future in self._builds:
            if self._order.index(needed_by) <= place:
                future.result()


def _give_way() -> None:
    # On Linux a thread has a priority of its own, which the processes that it starts inherit.
    os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
