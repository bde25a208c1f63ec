"""Calls about partitions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict, Unpack, overload

from slurm_client import errors
from slurm_client.connection.answers import ListOf
from slurm_client.decode import partitions as decode
from slurm_client.encode import partitions as encode
from slurm_client.models.values import Infinite
from slurm_client.operations.arguments import Name, Text
from slurm_client.operations.base import Listing, Operations, named

if TYPE_CHECKING:
    from slurm_client.models import Partition

__all__ = ["PartitionOperations", "PartitionWishes"]

_PARTITIONS = ListOf("partitions", decode.partition)


class PartitionWishes(TypedDict, total=False):
    """
    What a partition is to be; what is not named stays as it is, or as Slurm has it by default.

    Parameters
    ----------
    state
        ``UP``, ``DOWN``, ``DRAIN`` or ``INACTIVE``.
    nodes
        Host list of its nodes.
    max_time, default_time
        Limits of wall time of a job, and what one gets that names none.
    max_nodes, min_nodes, max_cpus_per_node
        What one job may have.
    default_memory_per_cpu_mib, default_memory_per_node_mib
        What a job gets that names none.
    priority_tier, priority_job_factor
        Which partition's jobs are looked at first; part of the priority of its jobs.
    grace_time
        Time that a job is left when it is preempted.
    qos, allowed_qos, allowed_accounts, denied_accounts, allowed_groups
        The partition's QOS, and who may use it; several names are separated by commas, and ``ALL`` is everybody.
    alternate
        Partition that takes its jobs while it is down.
    flags
        Such as ``HIDDEN`` or ``LLN``; ``HIDDEN_CLEAR`` takes one away.
    """

    state: Text
    nodes: Text
    max_time: timedelta | Infinite
    default_time: timedelta
    max_nodes: int | Infinite
    min_nodes: int
    max_cpus_per_node: int | Infinite
    default_memory_per_cpu_mib: int
    default_memory_per_node_mib: int
    priority_tier: int
    priority_job_factor: int
    grace_time: timedelta
    qos: Text
    allowed_qos: Text
    allowed_accounts: Text
    denied_accounts: Text
    allowed_groups: Text
    alternate: Name
    flags: Sequence[str]


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
        self, name: Name, *, timeout: float | None = None, **wishes: Unpack[PartitionWishes]
    ) -> None:
        """
        Create a partition (v0.0.45 and newer); Conflict if there is one of that name.

        It is lost at the next reconfigure unless slurm.conf has it too. Slurm has one call to create and to change:
        whether there is one is asked for first, so two callers at the same time may both succeed.

        Parameters
        ----------
        wishes
            See :class:`PartitionWishes`.
        """
        await self._session.require("post_partitions", timeout)
        try:
            await self.partition(name, timeout=timeout)
        except errors.NotFound:
            await self._write(name, wishes, timeout)
        else:
            raise errors.Conflict(f"there is a partition {name} already; nothing was sent")

    async def update_partition(
        self, name: Name, *, timeout: float | None = None, **wishes: Unpack[PartitionWishes]
    ) -> None:
        """
        Change a partition (v0.0.45 and newer); NotFound if there is none of that name.

        Lost at the next reconfigure unless slurm.conf agrees. Parameters are those of :meth:`create_partition`.
        """
        await self._session.require("post_partitions", timeout)
        await self.partition(name, timeout=timeout)
        await self._write(name, wishes, timeout)

    async def _write(self, name: str, wishes: PartitionWishes, timeout: float | None) -> None:
        body = {"partitions": [encode.partition(name, wishes)]}
        await self._session.call("post_partitions", body=body, timeout=timeout)

    async def delete_partition(self, name: Name, *, timeout: float | None = None) -> None:
        """Delete a partition (v0.0.45 and newer); jobs in it end. NotFound if there is none, Conflict if in use."""
        await self._session.call("delete_partition", path={"partition_name": name}, timeout=timeout)
