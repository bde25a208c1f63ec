"""Which Kubernetes Nodes do not exist that pods wait for, and for how long.

The cache says which may be missing, and the API server whether they are: a cache may be behind. A Node that is deleted
and registers again within seconds, as at a reinstallation, is missing and not gone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from slinky_operator.bridge.pods.model.snapshot import Absent
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.ports import Getter
from slinky_operator.kube.resources import NODES

GONE_S: Final = 40.0
"""Seconds after which a Node that is missing is gone. Kubernetes waits as long before it deletes the pods of one."""

MOST_ASKED: Final = 4
"""Nodes that one pass asks for."""

VALID_S: Final = 60.0
"""Seconds for which an answer counts, unless the cache shows the Node before."""

REMEMBERED: Final = 4096
"""Answers that are kept."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """Of the API server, about a Node that the cache does not show."""

    at: float
    missing_since: float | None
    """None if it is there."""


class AbsentHosts:
    """Asks for Nodes that the cache does not show.

    Parameters
    ----------
    kube
        The API server.
    hosts
        The cache of Kubernetes Nodes.
    clock
        Monotonic seconds.
    """

    def __init__(self, kube: Getter, hosts: Store, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._hosts = hosts
        self._clock = clock
        self._answers: OrderedDict[str, _Answer] = OrderedDict()

    async def find(self, names: Iterable[str]) -> Absent:
        """Which of these Nodes do not exist.

        Raises
        ------
        KubeError
            The API server failed, or refused a read.
        """
        now, asked = self._clock(), 0
        missing: set[str] = set()
        gone: set[str] = set()
        unsure: set[str] = set()
        # Those that were not asked for at all, or long ago, come first.
        for name in sorted((one for one in set(names) if self._is_hidden(one)), key=self._asked_at):
            known = self._answers.get(name)
            if known is None or now - known.at >= VALID_S:
                if asked == MOST_ASKED:
                    unsure.add(name)
                    continue
                asked += 1
                known = await self._ask(name, known, now)
            if known.missing_since is not None:
                missing.add(name)
                if now - known.missing_since >= GONE_S:
                    gone.add(name)
        return Absent(frozenset(missing), frozenset(gone), frozenset(unsure))

    def _is_hidden(self, name: str) -> bool:
        if self._hosts.get("", name) is None:
            return True
        _ = self._answers.pop(name, None)
        return False

    def _asked_at(self, name: str) -> tuple[float, str]:
        known = self._answers.get(name)
        return known.at if known is not None else float("-inf"), name

    async def _ask(self, name: str, before: _Answer | None, now: float) -> _Answer:
        since = None
        try:
            _ = await self._kube.get(NODES, name)
        except errors.NotFound:
            since = now if before is None or before.missing_since is None else before.missing_since
        except ValueError:
            # Somebody has written what is no name: nothing is decided by it.
            since = None
        self._answers[name] = answer = _Answer(now, since)
        self._answers.move_to_end(name)
        while len(self._answers) > REMEMBERED:
            _ = self._answers.popitem(last=False)
        return answer
