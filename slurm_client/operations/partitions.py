"""Calls about partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from slurm_client import errors
from slurm_client.connection.answers import ListOf
from slurm_client.decode import partitions as decode
from slurm_client.operations.base import Listing, Operations, named

if TYPE_CHECKING:
    from slurm_client.models import Partition
    from slurm_client.operations.arguments import Name, Text

__all__ = ["PartitionOperations"]

_PARTITIONS = ListOf("partitions", decode.partition)


class PartitionOperations(Operations):
    """List, get, create, update and delete partitions."""

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

    async def partition(self, name: Name, *, timeout: float | None = None) -> Partition:
        """Return one partition; NotFound if there is none of that name."""
        found: Partition = await self._one(
            "get_partition",
            _PARTITIONS,
            f"partition {name}",
            pick=named(name),
            path={"partition_name": name},
            timeout=timeout,
        )
        return found

    async def create_partition(
        self, name: Name, *, state: Text | None = None, nodes: Text | None = None, timeout: float | None = None
    ) -> None:
        """
        Create a partition (v0.0.45 and newer); Conflict if there is one of that name.

        It is lost at the next reconfigure unless slurm.conf has it too. Slurm has one call to create and to change:
        whether there is one is asked for first, so two callers at the same time may both succeed.

        Parameters
        ----------
        state
            ``UP``, ``DOWN``, ``DRAIN`` or ``INACTIVE``.
        nodes
            Host list of its nodes.
        """
        await self._session.require("post_partitions", timeout)
        try:
            await self.partition(name, timeout=timeout)
        except errors.NotFound:
            await self._write(name, state, nodes, timeout)
        else:
            raise errors.Conflict(f"there is a partition {name} already; nothing was sent")

    async def update_partition(
        self, name: Name, *, state: Text | None = None, nodes: Text | None = None, timeout: float | None = None
    ) -> None:
        """
        Change a partition (v0.0.45 and newer); NotFound if there is none of that name.

        Lost at the next reconfigure unless slurm.conf agrees. Parameters are those of :meth:`create_partition`.
        """
        await self._session.require("post_partitions", timeout)
        await self.partition(name, timeout=timeout)
        await self._write(name, state, nodes, timeout)

    async def _write(self, name: str, state: str | None, nodes: str | None, timeout: float | None) -> None:
        entry: dict[str, Any] = {"name": name}
        if state is not None:
            entry["partition"] = {"state": [state]}
        if nodes is not None:
            entry["nodes"] = {"configured": nodes}
        await self._session.call("post_partitions", body={"partitions": [entry]}, timeout=timeout)

    async def delete_partition(self, name: Name, *, timeout: float | None = None) -> None:
        """Delete a partition (v0.0.45 and newer); jobs in it end. NotFound if there is none, Conflict if in use."""
        await self._session.call("delete_partition", path={"partition_name": name}, timeout=timeout)
