"""One Cluster's Slurm: its client, the cache of its nodes, and the state of contact with it.

Each polls its own Slurm in its own task, so that one that hangs delays no other. `slurm_client.watch` polls, compares
and sets the pace. After a write, the writer requests the nodes concerned with `ClusterClient.refresh`, which is far
cheaper than a full answer and updates the same cache. Which Clusters there are is kept in `clients`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from slinky_api.v1alpha1.cluster.status import WaitingReason
from slinky_operator.slurm.connection import slurmd_status
from slinky_operator.slurm.connection.contact import LONGEST_PAUSE, Contact, ContactState, Endpoint, Trouble, trouble_of
from slinky_operator.slurm.connection.replicas import ReplicaTransport
from slinky_operator.slurm.connection.signed_messages import SharedKey
from slinky_operator.slurm.connection.slurmd_status import NoStatus, SlurmdStatus
from slinky_operator.slurm.jobs import job_facts
from slinky_operator.slurm.jobs.job_list import Jobs
from slinky_operator.slurm.naming import SLURMD_PORT
from slinky_operator.slurm.nodes import node_references
from slurm_client import SlurmClient, errors
from slurm_client.models import Job, Node
from slurm_client.operations.base import Listing
from slurm_client.slices import sliced
from slurm_client.watch import NodeEvent, Pace, Watch

logger = logging.getLogger(__name__)

FIRST_PAUSE: Final = 0.25
"""Seconds until the next question after a first failure; doubled for each further one."""

RESYNC_PER_NODE: Final = 1.2
"""Seconds for each node to which the time between two whole lists grows while these show nothing that was not known.
A record has some 1.6 kB, so that lists of any size are 80 kB in a minute."""

LIST_AGAIN: Final = 300.0
"""Seconds until a list of all jobs that was too large is asked for again."""


class ClusterClient:
    """One Cluster's Slurm. Made by `ClientMap.put`; ends with `ClientMap.close`."""

    def __init__(
        self,
        uid: str,
        namespace: str,
        name: str,
        *,
        endpoint: Endpoint,
        fingerprint: str,
        client: SlurmClient,
        replicas: ReplicaTransport,
        tell: Callable[[ClusterClient, NodeEvent], None],
        tell_contact: Callable[[ClusterClient], None],
    ) -> None:
        self.uid = uid
        self.namespace = namespace
        self.name = name
        self.client = client
        self.replicas = replicas
        """Where its calls go."""
        self.slurm_key: SharedKey | None = None
        """The key of auth/slurm that questions to its slurmds are signed with; None while it is not known."""
        self.contact = Contact(ContactState.CONNECTING, datetime.now(UTC), "no answer yet")
        self.nodes_at: float | None = None
        """Monotonic seconds when `nodes` was last known to be current; 304 counts."""
        self.queue_at: float | None = None
        """Monotonic seconds when autoscaling last read the jobs; None while it does not read them."""
        self.volumes: Mapping[str, tuple[float, float]] = {}
        """Bytes and inodes that volumes of the daemons have left, from 0 to 1, for the metrics."""
        self.outputs: Mapping[str, tuple[float, float]] = {}
        """The same of job output: the least of each NodeSet, by its name."""
        self.answered_at: datetime | None = None
        """When Slurm last answered a question for nodes."""
        self.endpoint = endpoint
        self.fingerprint = fingerprint
        """What the entry was made from; another one makes another entry."""
        self.waiting: tuple[WaitingReason, ...] = ()
        """Why jobs waited when all of them were last read, for whatever reason."""
        self.partition_jobs: job_facts.PartitionJobs | None = None
        """Jobs of each partition when jobs were last read; None before the first list."""
        self.jobs_listed_at: float | None = None
        """Monotonic seconds when that was."""
        self._tell = tell
        self._tell_contact = tell_contact
        self._closed = False
        self._lists_jobs_from = -math.inf
        self._jobs = Jobs(self._ask_jobs, ask_briefly=self._ask_jobs_briefly, key=(namespace, "jobs", name))
        self._watch: Watch[Node] = Watch(
            self._fetch,
            lambda node: self.client.node(node, timeout=endpoint.timeout),
            lambda node: node.name,
            what=f"nodes of {namespace}/{name}",
            pace=Pace(
                interval=endpoint.poll_interval,
                longest_interval=endpoint.poll_interval_max,
                first_pause=FIRST_PAUSE,
                longest_pause=endpoint.longest_pause,
                resync_per_object=RESYNC_PER_NODE,
            ),
        )
        self._task = asyncio.get_running_loop().create_task(self._read(), name=f"nodes of {namespace}/{name}")

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The last full picture, by name: it never changes, a later one is another mapping."""
        return self._watch.objects

    @property
    def closed(self) -> bool:
        """Whether another entry, or none, has taken its place."""
        return self._closed

    def hurry(self, *, whole: bool = False) -> None:
        """Poll now, because something has changed; for the `whole` list if nodes were deleted (see `Watch.poke`)."""
        self._watch.poke(whole=whole)

    def show_output(self, nodeset: str, shares: tuple[float, float] | None) -> None:
        """Show in the metrics what the fullest volume of a NodeSet's job output has left; None for nothing."""
        others = {name: of for name, of in self.outputs.items() if name != nodeset}
        self.outputs = others if shares is None else {**others, nodeset: shares}

    async def shared_jobs(self, since: float = -math.inf) -> Sequence[Job]:
        """The jobs that have or name nodes, by an answer that may be shared, and be older the more it costs.

        Enough to plan with. Before anything that cannot be undone, ask `fresh_jobs`.

        Parameters
        ----------
        since
            Monotonic seconds: an answer asked for before that is none.

        Raises
        ------
        SlurmError
            If they could not be asked for.
        """
        return await self._jobs.shared(since)

    async def fresh_jobs(self) -> Sequence[Job]:
        """All jobs, asked for now; raises `SlurmError` if they could not be."""
        return await self._jobs.fresh()

    async def jobs_with_nodes(self) -> Sequence[Job]:
        """At least all jobs that hold nodes, asked for now; raises `SlurmError` if they could not be."""
        return await self._jobs.holding()

    async def _ask_jobs(self) -> Sequence[Job]:
        found = await self.client.all_jobs(cores=False, timeout=self.endpoint.timeout)
        await self._count(found)
        return found

    async def _ask_jobs_briefly(self) -> Sequence[Job]:
        """All jobs; where a list of them is too large, those that hold nodes, which are few where many wait."""
        timeout = self.endpoint.timeout
        if time.monotonic() >= self._lists_jobs_from:
            try:
                found = tuple(await self.client.jobs(cores=False, timeout=timeout))
            except errors.TooLarge:
                self._lists_jobs_from = time.monotonic() + LIST_AGAIN
            else:
                await self._count(found)
                return found
        found = await self.client.all_jobs(holding_nodes=True, cores=False, timeout=timeout)
        await self._count(found, whole=False)
        return (*found, node_references.UNKNOWN)

    async def _count(self, jobs: Sequence[Job], *, whole: bool = True) -> None:
        """Note how many jobs each partition has, and why they wait."""
        counter = job_facts.JobCounter()
        async for job in sliced(jobs):
            counter.add(job)
        self.partition_jobs, self.jobs_listed_at = counter.partitions(whole=whole), time.monotonic()
        if whole:
            self.waiting = counter.waiting

    async def refresh(self, names: Iterable[str]) -> Mapping[str, Node | None]:
        """Ask Slurm for these nodes now; the cache has what they show when this returns, and handlers get it as events.

        Returns
        -------
        mapping
            Each name with its node; `None` for one that Slurm does not know.

        Raises
        ------
        SlurmError
            If any of them could not be asked for.
        """
        return await self._watch.refresh(*names)

    async def steps_at(self, address: str) -> SlurmdStatus:
        """Ask the slurmd of a pod which jobs have a step there; raises `NoStatus` if it does not show that."""
        if self.slurm_key is None:
            raise NoStatus("the key of auth/slurm is not known")
        return await slurmd_status.ask(address, SLURMD_PORT, self.slurm_key, time.time())

    async def close(self) -> None:
        """Stop polling and close the connections; who waits for an answer gets `errors.ClientClosed`."""
        self._closed = True
        self._task.cancel()
        # Not awaited: a cancellation of this task must not be mistaken for that of the other.
        await asyncio.wait({self._task})
        await self._watch.close()
        await self.client.close()

    async def _read(self) -> None:
        """Pass events on until cancelled, whatever happens."""
        while True:
            try:
                async with self._watch.reader() as events:
                    async for event in events:
                        self._jobs.changed()
                        if not self._closed:
                            self._tell(self, event)
            except Exception as error:
                # A bug; the cached nodes are not to be trusted until the next full answer.
                logger.exception("the watch over %s/%s failed", self.namespace, self.name)
                self._set_contact(ContactState.UNREACHABLE, f"{type(error).__name__}: {error}", Trouble.OTHER)
            await asyncio.sleep(LONGEST_PAUSE)

    async def _fetch(self, update_time: int | None) -> Listing[Node] | None:
        asked = time.monotonic()
        try:
            listing = await self.client.nodes(update_time, timeout=self.endpoint.timeout)
        except errors.SlurmError as error:
            self._set_contact(ContactState.UNREACHABLE, str(error), trouble_of(error))
            raise
        self.nodes_at = asked
        self.answered_at = datetime.now(UTC)
        # Told after the watch has taken the list over: who is woken by this finds the nodes.
        asyncio.get_running_loop().call_soon(self._set_contact, ContactState.READY, "", Trouble.NONE)
        return listing

    def _set_contact(self, state: ContactState, why: str, trouble: Trouble) -> None:
        old = self.contact
        if self._closed or (old.state, old.trouble) == (state, trouble):
            # The words change with every attempt; they are shown with the next change that matters.
            return
        since = old.since if old.state is state else datetime.now(UTC)
        self.contact = Contact(state, since, why, trouble)
        logger.info("%s/%s: %s%s", self.namespace, self.name, state, f": {why}" if why else "")
        self._tell_contact(self)
