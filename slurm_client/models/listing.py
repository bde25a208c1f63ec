"""
A complete list of objects, and the time that it speaks of.

It has the objects in the server's order, and by name. How it is asked for is left to
:mod:`slurm_client.operations`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from slurm_client.errors import Report

__all__ = ["Listing"]

T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """
    A complete list, and the time it speaks of.

    ``listing[0]`` is the first object and ``listing[:10]`` a tuple of the first ten. ``listing["w-0"]`` is the object
    of that name (KeyError if there is none), :meth:`get` asks without an error, and ``"w-0" in listing`` tells. Jobs
    are known by their ids, since many may have the same name: ``listing["4711"]``, as a number means a position.

    It is no ``collections.abc.Sequence``: mypy would take ``"w-0" in listing`` for an error then.

    Parameters
    ----------
    items
        All objects, in the server's order.
    last_update
        What to give as ``update_time`` next, in seconds since 1970; ``None`` if the server does not say.
    warnings
        Reports of the server that are no errors.
    """

    items: tuple[T, ...]
    last_update: int | None = None
    warnings: tuple[Report, ...] = ()
    _names: dict[str, T] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def by_name(self) -> Mapping[str, T]:
        """All objects by name, jobs by id; of several with the same name, the first."""
        names = self._names
        if names is None:
            names = {}
            for item in self.items:
                name = getattr(item, getattr(type(item), "KEY", "name"), None)
                if name is not None:
                    names.setdefault(str(name), item)
            # It follows from the items: the listing stays what it was.
            object.__setattr__(self, "_names", names)
        return names

    @overload
    def get(self, name: str) -> T | None: ...

    @overload
    def get(self, name: str, default: D) -> T | D: ...

    def get(self, name: str, default: D | None = None) -> T | D | None:
        """Return the object of a name; ``default`` if there is none."""
        return self.by_name.get(name, default)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: object) -> bool:
        return item in self.by_name or item in self.items if isinstance(item, str) else item in self.items

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    @overload
    def __getitem__(self, index: str) -> T: ...

    def __getitem__(self, index: int | slice | str) -> T | tuple[T, ...]:
        return self.by_name[index] if isinstance(index, str) else self.items[index]
