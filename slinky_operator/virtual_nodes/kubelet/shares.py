"""Places that many share: each holder has some, and where all are taken the holder with most gives one up.

Used for connections by address, and for streams of logs by namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


class NoPlace(Exception):
    """All places of a holder are taken, or all there are."""


@dataclass(eq=False, slots=True)
class Place:
    """A place that is taken.

    Parameters
    ----------
    holder
        Whose it is.
    end
        Ends what uses it, when another holder needs it.
    """

    holder: str
    end: Callable[[], None]


@dataclass(slots=True)
class Shares:
    """Counts places.

    Parameters
    ----------
    each
        Most places of one holder.
    total
        Most places of all.
    """

    each: int
    total: int
    _taken: dict[str, dict[Place, None]] = field(default_factory=dict)
    _count: int = 0

    def __len__(self) -> int:
        return self._count

    def take(self, holder: str, end: Callable[[], None]) -> Place:
        """Take a place; the newest of the holder with most gives way if there is no other.

        Raises
        ------
        NoPlace
            The holder has as many as it may, or would have the most of all.
        """
        own = len(self._taken.get(holder, ()))
        if own >= self.each:
            raise NoPlace(f"{own} of {self.each} are in use")
        if self._count >= self.total:
            most = max(self._taken.values(), key=len)
            if len(most) <= own + 1:
                raise NoPlace(f"{self._count} of {self.total} are in use in all")
            given_up = next(reversed(most))
            self.leave(given_up)
            given_up.end()
        place = Place(holder, end)
        self._taken.setdefault(holder, {})[place] = None
        self._count += 1
        return place

    def leave(self, place: Place) -> None:
        """Give a place back; done twice, it changes nothing."""
        own = self._taken.get(place.holder)
        if own is None or place not in own:
            return
        del own[place]
        self._count -= 1
        if not own:
            del self._taken[place.holder]
