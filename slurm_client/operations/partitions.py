"""Calls about partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from slurm_client.answers import ListOf
from slurm_client.decode import objects
from slurm_client.operations.base import Listing, Operations

if TYPE_CHECKING:
    from slurm_client.models import Partition

__all__ = ["PartitionOperations"]

_PARTITIONS = ListOf("partitions", objects.partition)


class PartitionOperations(Operations):
    """List and get partitions."""

    @overload
    async def partitions(self, *, timeout: float | None = None) -> Listing[Partition]: ...

    @overload
    async def partitions(
        self, update_time: int | None, *, timeout: float | None = None
    ) -> Listing[Partition] | None: ...

    async def partitions(
        self, update_time: int | None = None, *, timeout: float | None = None
    ) -> Listing[Partition] | None:
        """Return all partitions; ``None`` if ``update_time`` is given and nothing has changed since."""
        return await self._list("get_partitions", _PARTITIONS, update_time=update_time, timeout=timeout)

    async def partition(self, name: str, *, timeout: float | None = None) -> Partition:
        """Return one partition; NotFound if there is none of that name."""
        found: Partition = await self._one(
            "get_partition", _PARTITIONS, f"partition {name}", path={"partition_name": name}, timeout=timeout
        )
        return found
