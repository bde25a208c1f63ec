"""What Slurm says of its configuration and its partitions: asked rarely, since both change rarely."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from slinky_operator.bridge.nodes.model.warnings import Configuration, configuration_of
from slurm_client.models import Partition

EVERY_S: Final = 300.0
"""Seconds for which an answer counts."""

SOON_S: Final = 30.0
"""The same while something in it keeps nodes from being made, or a spec has just changed."""


class Client(Protocol):
    """What is used of `slurm_client.SlurmClient`."""

    async def conf(self) -> Mapping[str, Any]:
        """slurm.conf as slurmctld has loaded it."""
        ...

    async def partitions(self) -> Iterable[Partition]:
        """All partitions."""
        ...


class KnownConfiguration:
    """The configuration of one Slurm, as last read."""

    def __init__(self) -> None:
        self._found: Configuration | None = None
        self._about: tuple[object, ...] = ()
        self._at = 0.0

    async def read(self, client: Client, now: float, *about: object, name: str) -> Configuration:
        """Read it, or return what was read a short while ago.

        Parameters
        ----------
        about
            What else decides: with another value it is read soon.
        name
            What partitions name for nodes of the bridge.

        Raises
        ------
        SlurmError
            Slurm does not answer, or refuses.
        """
        key = (*about, name)
        fresh = EVERY_S if key == self._about and not (self._found is not None and self._found.suspends) else SOON_S
        if self._found is None or now - self._at >= fresh:
            self._found = configuration_of(await client.conf(), await client.partitions(), name)
            self._at, self._about = now, key
        return self._found
