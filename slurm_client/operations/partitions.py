"""Calls about partitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict, Unpack, overload

from slurm_client import errors, wire
from slurm_client.connection import error_numbers
from slurm_client.connection.answers import ListOf
from slurm_client.decode import partitions as decode
from slurm_client.decode.read import items, mapping, number, text
from slurm_client.encode import partitions as encode
from slurm_client.models.partition import PartitionResult
from slurm_client.models.values import Delay, Infinite
from slurm_client.operations.arguments import Name, PartitionStateWord, Text
from slurm_client.operations.base import Listing, Operations, named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.connection.answers import Answer
    from slurm_client.models import Partition

__all__ = ["PartitionOperations", "PartitionWishes"]

_PARTITIONS = ListOf("partitions", decode.partition)
_INVALID_NAME = 2000
_BY_INDEX = re.compile(r"Failed to (?:create|update) partition .* with description at index ([0-9]{1,6})", re.DOTALL)
"""How an error says which of many partitions it is about (26.05)."""


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
        Such as ``HIDDEN`` or ``LLN``; ``HIDDEN_CLEAR`` takes one away. One that the data parser in use does not know is
        refused here: slurmrestd would report an error and write the partition without it.
    """

    state: PartitionStateWord
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
    grace_time: Delay
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

    async def create_partitions(
        self, partitions: Mapping[Name, PartitionWishes], *, timeout: float | None = None
    ) -> tuple[PartitionResult, ...]:
        """
        Create many partitions in one call (v0.0.45 and newer), and return what became of each in order.

        Slurm goes through all of them, whatever becomes of one. Which there are already is asked for first: those are
        refused and not sent. What is made is lost at the next reconfigure unless slurm.conf has it too.

        Parameters
        ----------
        partitions
            What each is to be, by its name: see :class:`PartitionWishes`. Nothing is sent for none.
        """
        return await self._write_partitions(partitions, new=True, timeout=timeout)

    async def update_partitions(
        self, partitions: Mapping[Name, PartitionWishes], *, timeout: float | None = None
    ) -> tuple[PartitionResult, ...]:
        """
        Change many partitions in one call (v0.0.45 and newer), and return what became of each in order.

        As :meth:`create_partitions`; one that there is not is refused and not sent.
        """
        return await self._write_partitions(partitions, new=False, timeout=timeout)

    async def _write(self, name: str, wishes: PartitionWishes, timeout: float | None) -> None:
        await self._check_partition_flags([wishes], timeout)
        body = {"partitions": [encode.partition(name, wishes)]}
        await self._session.call("post_partitions", body=body, timeout=timeout)

    async def _write_partitions(
        self, partitions: Mapping[str, PartitionWishes], *, new: bool, timeout: float | None
    ) -> tuple[PartitionResult, ...]:
        await self._session.require("post_partitions", timeout)
        await self._check_partition_flags(partitions.values(), timeout)
        if not partitions:
            return ()
        known = {each.name for each in await self.partitions(timeout=timeout)}
        sent = [name for name in partitions if (name in known) is not new]
        sentence = "there is one already" if new else "there is none"
        found = {
            name: _report(_INVALID_NAME, f"{sentence} of the name {name}; it was not sent")
            for name in partitions
            if name not in sent
        }
        if sent:
            answer = await self._session.call(
                "post_partitions",
                body={"partitions": [encode.partition(name, partitions[name]) for name in sent]},
                timeout=timeout,
                tolerate=lambda error: not isinstance(error, errors.Unauthorized | errors.Unreachable),
            )
            told = _told(answer, sent)
            if told is None:
                self._session.refuse(answer, "post_partitions")
            found |= told or {}
        return tuple(PartitionResult(name, found.get(name)) for name in partitions)

    async def _check_partition_flags(self, wishes: Iterable[PartitionWishes], timeout: float | None) -> None:
        known = wire.words(await self._session.negotiate(timeout), "PartitionInfoFlagsItem")
        unknown = next((word for each in wishes for word in each.get("flags") or () if word.upper() not in known), None)
        if known and unknown is not None:
            raise errors.InvalidArgument(
                f"{unknown!r:.40} is no flag of partitions that the data parser knows, and Slurm would leave it out; "
                "nothing was sent",
                field="flags",
            )

    async def delete_partition(self, name: Name, *, timeout: float | None = None) -> None:
        """Delete a partition (v0.0.45 and newer); jobs in it end. NotFound if there is none, Conflict if in use."""
        await self._session.call("delete_partition", path={"partition_name": name}, timeout=timeout)


def _told(answer: Answer, sent: Sequence[str]) -> dict[str, errors.Report] | None:
    """Return the error of each partition that an answer is about; ``None`` if one is about the call as a whole."""
    found = {}
    for raw in map(mapping, items(answer.fields.get("errors"))):
        match = _BY_INDEX.fullmatch(text(raw.get("description")))
        if match is None or int(match[1]) >= len(sent):
            return None
        found[sent[int(match[1])]] = _report(
            number(raw.get("error_number")) or 0,
            errors.said(text(raw.get("description"))),
            error=errors.said(text(raw.get("error"))),
            source=errors.said(text(raw.get("source"))),
        )
    return found


def _report(code: int, description: str, *, error: str = "", source: str = "") -> errors.Report:
    return errors.Report(
        description=description, number=code, name=error_numbers.name_of(code), error=error, source=source
    )
