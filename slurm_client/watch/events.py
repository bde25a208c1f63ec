"""
Events: one change of one object, and the mark behind the last object of the initial list.

Two events of one object can be made into one; who does that and when is left to the reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar

from slurm_client.models import Job, License, Node, Partition, Reservation

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "SYNCED",
    "Event",
    "JobEvent",
    "LicenseEvent",
    "NodeEvent",
    "PartitionEvent",
    "ReservationEvent",
    "merged",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """
    One change of one object; or :data:`SYNCED`, which concerns none.

    Parameters
    ----------
    key
        Name of the object, id of a job as text; empty for the mark.
    old
        The object before; ``None`` if it was not there.
    new
        The object now; ``None`` if it is gone.
    """

    key: str
    old: T | None
    new: T | None

    @property
    def kind(self) -> Literal["added", "changed", "removed", "synced"]:
        """Which of the four it is."""
        if self.old is None:
            return "synced" if self.new is None else "added"
        return "removed" if self.new is None else "changed"


SYNCED: Final[Event[Any]] = Event("", None, None)
"""Mark behind the last object of the initial list, for readers that ask for it."""

NodeEvent: TypeAlias = Event[Node]
JobEvent: TypeAlias = Event[Job]
PartitionEvent: TypeAlias = Event[Partition]
ReservationEvent: TypeAlias = Event[Reservation]
LicenseEvent: TypeAlias = Event[License]


def merged(events: Iterable[Event[T]]) -> list[Event[T]]:
    """
    Make one event of all events of an object: from before the first to after the last; none if these are equal.

    The mark stays where it is: what it closes is still before it.
    """
    first_and_last: dict[str, Event[T]] = {}
    for event in events:
        earlier = first_and_last.get(event.key)
        first_and_last[event.key] = event if earlier is None else Event(event.key, earlier.old, event.new)
    return [event for event in first_and_last.values() if event is SYNCED or event.old != event.new]
