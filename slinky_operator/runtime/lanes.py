"""Keys that wait, in lanes that take turns: who fills one lane delays the keys of another by one turn each at most.

A lane is a namespace, mostly. In a lane the order is that of arrival. Besides, keys of one lane never hold all
workers: passes that wait for long, for a Slurm that does not answer, leave room for those of other lanes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

LEFT_FREE: Final = 4
"""One of so many workers is left to other lanes, and one at least."""


_NO_LANE: Final = object()


def share_of(workers: int) -> int:
    """Keys of one lane that workers may have at once."""
    return max(1, workers - max(1, workers // LEFT_FREE))


class Lanes(Generic[K]):
    """Keys that wait for a worker.

    Parameters
    ----------
    lane
        The lane of a key; None for one that no limit applies to.
    share
        Keys of one lane that may be out at once; None for any number.
    """

    def __init__(self, lane: Callable[[K], Hashable | None], share: int | None = None) -> None:
        self._lane = lane
        self._share = share
        self._waiting: OrderedDict[Hashable | None, deque[K]] = OrderedDict()
        """By lane, in the order of their turns; a lane without keys has none."""
        self._out: Counter[Hashable | None] = Counter()
        """Keys that were taken and are not back, by lane."""

    def put(self, key: K) -> None:
        """Let a key wait, behind those of its lane; a lane that had none has its turn after all others."""
        self._waiting.setdefault(self._lane(key), deque()).append(key)

    def may_take(self) -> bool:
        """Whether `take` has a key."""
        return any(map(self._has_room, self._waiting))

    def take(self) -> K:
        """Take the first key of the lane whose turn it is, and has room.

        Raises
        ------
        LookupError
            There is none.
        """
        lane = next(filter(self._has_room, self._waiting), _NO_LANE)
        keys = self._waiting.get(lane)
        if not keys:
            raise LookupError("no key may be taken")
        key = keys.popleft()
        if keys:
            self._waiting.move_to_end(lane)
        else:
            del self._waiting[lane]
        self._out[lane] += 1
        return key

    def give_back(self, key: K) -> None:
        """Make room in the lane of a key that was taken."""
        lane = self._lane(key)
        self._out[lane] -= 1
        if not self._out[lane]:
            del self._out[lane]

    def clear(self) -> None:
        """Drop all keys that wait."""
        self._waiting.clear()

    def _has_room(self, lane: Hashable | None) -> bool:
        return lane is None or self._share is None or self._out[lane] < self._share
