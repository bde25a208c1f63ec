"""
The watches of a client: nodes, jobs, partitions, reservations and licenses.

Each kind says how its list and a single object are asked for; how often, and what becomes of it, is left to
:class:`~slurm_client.watch.watch.Watch`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from slurm_client import errors
from slurm_client.connection.answers import ListOf
from slurm_client.decode import jobs, resources
from slurm_client.operations.base import Listing
from slurm_client.operations.jobs.waiting import WaitingOperations
from slurm_client.operations.nodes import NodeOperations
from slurm_client.operations.partitions import PartitionOperations
from slurm_client.operations.reservations import ReservationOperations
from slurm_client.watch.watch import Watch

if TYPE_CHECKING:
    from slurm_client.models import Job, License, Node, Partition, Reservation
    from slurm_client.operations.jobs.singly import Singly
    from slurm_client.watch.pace import Pace
    from slurm_client.watch.reader import Reader

__all__ = ["Watches"]

_ALL_JOBS = ListOf("jobs", jobs.job, recurs=True, identity=lambda job: job.id)
_SHORT = "jobs without their cores"
"""What the list of all jobs is called that a watch asks for."""

_LICENSES = ListOf("licenses", resources.license_)


class Watches(NodeOperations, WaitingOperations, PartitionOperations, ReservationOperations):
    """
    Watches of all kinds of objects that slurmctld lists.

    Attributes
    ----------
    node_watch, job_watch, partition_watch, reservation_watch, license_watch
        What the watches know, how old it is, and ``refresh`` for single objects.
    """

    node_watch: Watch[Node]
    job_watch: Watch[Job]
    partition_watch: Watch[Partition]
    reservation_watch: Watch[Reservation]
    license_watch: Watch[License]
    _one_by_one: Singly | None

    def _make_watches(self, pace: Pace | None) -> None:
        """Make all watches; nothing is asked before somebody reads one."""
        self.node_watch = Watch(self.nodes, self.node, lambda node: node.name, what="nodes", pace=pace)
        self._one_by_one = None
        self.job_watch = Watch(
            self._watched_jobs,
            lambda key: self.job(int(key), details=False),
            lambda job: str(job.id),
            what="jobs",
            pace=pace,
        )
        self.partition_watch = Watch(
            self.partitions, self.partition, lambda partition: partition.name, what="partitions", pace=pace
        )
        self.reservation_watch = Watch(
            self.reservations, self.reservation, lambda found: found.name, what="reservations", pace=pace
        )
        self.license_watch = Watch(
            self._watched_licenses, self._license, lambda found: found.name, what="licenses", pace=pace
        )

    async def _close_watches(self) -> None:
        for watch in (self.node_watch, self.job_watch, self.partition_watch):
            await watch.close()
        for other in (self.reservation_watch, self.license_watch):
            await other.close()

    def watch_nodes(self, *, mark: bool = False) -> Reader[Node]:
        """
        Return a reader of changes of nodes.

        ``async for event in client.watch_nodes()`` gives everything that is there first. All readers of one client
        share one poll. Close a reader that is no longer read, best by ``async with``.

        ``await reader.initial()`` returns what is there at the beginning, and iteration then gives the changes;
        ``reader.is_synced`` tells during iteration whether that was all of it, and so does the event
        :data:`~slurm_client.watch.SYNCED` with ``mark``.

        Outages are waited for. A token that is refused, a right that is missing and a call that the server lacks are
        raised to the reader: at once before the first list, later after three polls in a row (``Pace.refusals``).
        ``client.node_watch.reader()`` waits for these as well, and ``client.node_watch.status.error`` says at once
        what for.

        Parameters
        ----------
        mark
            Whether to give the event ``SYNCED`` behind the initial list.
        """
        return self.node_watch.reader(patient=False, mark=mark)

    def watch_jobs(self, *, mark: bool = False) -> Reader[Job]:
        """
        Return a reader of changes of jobs; see :meth:`watch_nodes`.

        Their ``gres_detail`` is empty: Slurm gives it only with a list of the cores of each job's nodes, which makes a
        list of running jobs five times as long on nodes of 128 cores.
        """
        return self.job_watch.reader(patient=False, mark=mark)

    def watch_partitions(self, *, mark: bool = False) -> Reader[Partition]:
        """Return a reader of changes of partitions; see :meth:`watch_nodes`."""
        return self.partition_watch.reader(patient=False, mark=mark)

    def watch_reservations(self, *, mark: bool = False) -> Reader[Reservation]:
        """Return a reader of changes of reservations; see :meth:`watch_nodes`."""
        return self.reservation_watch.reader(patient=False, mark=mark)

    def watch_licenses(self, *, mark: bool = False) -> Reader[License]:
        """
        Return a reader of changes of licenses; see :meth:`watch_nodes`.

        slurmrestd cannot be asked what has changed since, nor for one of them: each poll gets the list.
        """
        return self.license_watch.reader(patient=False, mark=mark)

    async def _watched_jobs(self, update_time: int | None) -> Listing[Job] | None:
        """List jobs, of which those that are written as they were are not read again; one by one if it is too long."""
        if _SHORT not in self._session.oversized:
            try:
                return await self._all_jobs(_ALL_JOBS, update_time, None, cores=False)
            except errors.TooLarge as error:
                self._session.oversized.add(_SHORT, error)
        # Each poll is one round: what changes during it comes with the next.
        self._one_by_one = self._one_by_one or self._singly(short=math.inf)
        return Listing(await self._one_by_one.read(lambda _: True, self.job_watch.objects))

    async def _watched_licenses(self, _: int | None) -> Listing[License] | None:
        return await self._list("get_licenses", _LICENSES)

    async def _license(self, name: str) -> License:
        found = await self._watched_licenses(None)
        for each in found or ():
            if each.name == name:
                return each
        raise errors.NotFound(f"no license {name}")
