"""The client map: one Slurm client per Cluster, its node cache, and the state of contact with it.

Only the Cluster controller creates, replaces and closes entries; other callers read, query and receive node events.
Each entry polls its own Slurm in its own task, so that one that hangs delays no other.

`slurm_client.watch` polls, compares and sets the pace. After a write, the writer requests the nodes concerned with
`ClusterClient.refresh`, which is far cheaper than a full answer and updates the same cache.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

import httpx

from slinky_operator.kube.leadership.fence import Fence
from slinky_operator.slurm.fencing import FencedTransport
from slinky_operator.slurm.jobs import Jobs
from slurm_client import SlurmClient, TokenProvider, errors
from slurm_client.connection.circuit import Circuit
from slurm_client.connection.intake import Intake
from slurm_client.models import Job, Node
from slurm_client.operations.base import Listing
from slurm_client.watch import NodeEvent, Pace, Watch

logger = logging.getLogger(__name__)

FIRST_PAUSE: Final = 0.25
"""Seconds until the next question after a first failure; doubled for each further one."""

LONGEST_PAUSE: Final = 5.0
"""Seconds between questions to a Slurm that does not answer, at most."""


class ContactState(StrEnum):
    """Whether a Slurm can be asked."""

    CONNECTING = "Connecting"
    READY = "Ready"
    UNREACHABLE = "Unreachable"


class Trouble(StrEnum):
    """What kind of trouble there is with a Slurm that cannot be asked."""

    NONE = ""
    NO_ANSWER = "NoAnswer"
    """No server answers at slurmrestd's address."""
    CONTROLLER_DOWN = "ControllerDown"
    """slurmrestd answers, slurmctld does not."""
    UNAUTHORIZED = "Unauthorized"
    """The token is refused."""
    UNSUPPORTED = "Unsupported"
    """None of the data parsers is one we know."""
    OTHER = "Other"


@dataclass(frozen=True, slots=True)
class Contact:
    """The state of contact with one Slurm."""

    state: ContactState
    since: datetime
    """When it came into this state."""

    why: str
    """In Slurm's own words where it is not ready; else empty."""

    trouble: Trouble = Trouble.NONE


NodeListener = Callable[[str, NodeEvent], None]
"""Told the uid of the Cluster and what happened to a node; puts a key on a queue and returns."""

ContactListener = Callable[[str, Contact], None]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a Slurm is, and how long it may take."""

    url: str
    ca_pem: str | None = None
    timeout: float = 30.0
    """Seconds for one call."""

    poll_interval: float = 1.0
    """Seconds between questions for changed nodes while they are cheap."""

    poll_interval_max: float = 30.0
    """Seconds between them at most."""


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
        tell: Callable[[ClusterClient, NodeEvent], None],
        tell_contact: Callable[[ClusterClient], None],
    ) -> None:
        self.uid = uid
        self.namespace = namespace
        self.name = name
        self.client = client
        self.contact = Contact(ContactState.CONNECTING, datetime.now(UTC), "no answer yet")
        self.nodes_at: float | None = None
        """Monotonic seconds when `nodes` was last known to be current; 304 counts."""
        self.answered_at: datetime | None = None
        """When Slurm last answered a question for nodes."""
        self.endpoint = endpoint
        self.fingerprint = fingerprint
        """What the entry was made from; another one makes another entry."""
        self._tell = tell
        self._tell_contact = tell_contact
        self._closed = False
        self._jobs = Jobs(self._ask_jobs)
        self._watch: Watch[Node] = Watch(
            self._fetch,
            lambda node: self.client.node(node, timeout=endpoint.timeout),
            lambda node: node.name,
            what=f"nodes of {namespace}/{name}",
            pace=Pace(
                interval=endpoint.poll_interval,
                longest_interval=endpoint.poll_interval_max,
                first_pause=FIRST_PAUSE,
                longest_pause=LONGEST_PAUSE,
            ),
        )
        self._task = asyncio.get_running_loop().create_task(self._read(), name=f"nodes of {namespace}/{name}")

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The last full picture, by name; read-only."""
        return self._watch.objects

    @property
    def closed(self) -> bool:
        """Whether another entry, or none, has taken its place."""
        return self._closed

    def hurry(self) -> None:
        """Poll now, because something has changed."""
        self._watch.poke()

    async def shared_jobs(self, since: float = -math.inf) -> Sequence[Job]:
        """The jobs that have nodes, by an answer that may be shared, and be older the more it costs.

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

    async def _ask_jobs(self) -> Sequence[Job]:
        return tuple(await self.client.jobs(timeout=self.endpoint.timeout))

    async def refresh(self, names: Iterable[str]) -> Mapping[str, Node | None]:
        """Ask Slurm for these nodes now; what they show is in the cache when this returns, and told as events.

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
            self._set_contact(ContactState.UNREACHABLE, str(error), _trouble(error))
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


class ClientMap:
    """One `ClusterClient` per Cluster, by uid.

    Parameters
    ----------
    fence
        Asked before every write to any Slurm.
    transport
        Makes the transport for an endpoint; the network if absent.
    intake
        Room for the answers of all of them. Where they take too much together, the largest answer of the namespace
        that takes most gives way.
    """

    def __init__(
        self,
        fence: Fence,
        *,
        transport: Callable[[Endpoint], httpx.AsyncBaseTransport] | None = None,
        intake: Intake | None = None,
    ) -> None:
        self._fence = fence
        self._intake = intake or Intake()
        self._transport = transport or _network
        self._entries: dict[str, ClusterClient] = {}
        self._node_listeners: list[NodeListener] = []
        self._contact_listeners: list[ContactListener] = []

    def get(self, uid: str) -> ClusterClient | None:
        """The client of a Cluster, or `None` if there is nothing to connect with yet."""
        return self._entries.get(uid)

    def find(self, namespace: str, name: str) -> ClusterClient | None:
        """The same by namespace and name."""
        return next(
            (one for one in self._entries.values() if one.namespace == namespace and one.name == name),
            None,
        )

    def __len__(self) -> int:
        return len(self._entries)

    def subscribe(self, listener: NodeListener) -> None:
        """Call `listener(cluster_uid, event)` for every node event of every Cluster from now on."""
        self._node_listeners.append(listener)

    def subscribe_contact(self, listener: ContactListener) -> None:
        """Call `listener(cluster_uid, contact)` for every change of contact from now on."""
        self._contact_listeners.append(listener)

    async def put(
        self, uid: str, namespace: str, name: str, *, endpoint: Endpoint, token: TokenProvider, fingerprint: str
    ) -> ClusterClient:
        """Make the entry of a Cluster, unless there is one made from the same.

        Parameters
        ----------
        fingerprint
            Changes whenever endpoint or token do. A new entry starts with an empty cache: it may be another Slurm.

        Raises
        ------
        ValueError
            If the URL or the certificates cannot be used.
        """
        known = self._entries.get(uid)
        if known is not None and known.fingerprint == fingerprint:
            return known
        transport = FencedTransport(self._transport(endpoint), self._fence, (namespace, name))
        client = SlurmClient(
            endpoint.url,
            token,
            timeout=endpoint.timeout,
            # Recovery is noticed by the poll; a longer pause would only delay it.
            circuit=Circuit(first_pause=FIRST_PAUSE, longest_pause=LONGEST_PAUSE / 2),
            transport=transport,
            intake=self._intake,
            owner=namespace,
        )
        await self.close(uid)
        entry = ClusterClient(
            uid,
            namespace,
            name,
            endpoint=endpoint,
            fingerprint=fingerprint,
            client=client,
            tell=self._told,
            tell_contact=self._told_contact,
        )
        self._entries[uid] = entry
        return entry

    async def accepts(self, uid: str, token: TokenProvider) -> bool:
        """Whether a Cluster's Slurm takes a token other than the one it is asked with; no answer counts as none."""
        entry = self._entries.get(uid)
        if entry is None:
            return False
        endpoint = entry.endpoint
        transport = FencedTransport(self._transport(endpoint), self._fence, (entry.namespace, entry.name))
        client = SlurmClient(
            endpoint.url,
            token,
            api_version=entry.client.api_version,
            timeout=endpoint.timeout,
            transport=transport,
        )
        try:
            # Unlike a ping, which is answered whatever the token.
            _ = await client.partitions()
        except errors.SlurmError as error:
            logger.info("%s/%s does not take another key yet: %s", entry.namespace, entry.name, type(error).__name__)
            return False
        finally:
            await client.close()
        return True

    async def close(self, uid: str) -> None:
        """Close the entry of a Cluster, if there is one."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            await entry.close()

    async def close_all(self) -> None:
        """Close everything; for the end of the process."""
        await asyncio.gather(*(self.close(uid) for uid in list(self._entries)))

    def _told(self, entry: ClusterClient, event: NodeEvent) -> None:
        for listener in self._node_listeners:
            try:
                listener(entry.uid, event)
            except Exception:
                # The cache is right; one broken listener must not keep the others from hearing of it.
                logger.exception("a listener failed on node %s of %s/%s", event.key, entry.namespace, entry.name)

    def _told_contact(self, entry: ClusterClient) -> None:
        for listener in self._contact_listeners:
            try:
                listener(entry.uid, entry.contact)
            except Exception:
                logger.exception("a listener failed on the contact of %s/%s", entry.namespace, entry.name)


def _trouble(error: Exception) -> Trouble:
    match error:
        case errors.ControllerDown():
            return Trouble.CONTROLLER_DOWN
        case errors.Unreachable():
            return Trouble.NO_ANSWER
        case errors.Unauthorized():
            return Trouble.UNAUTHORIZED
        case errors.NotSupported():
            return Trouble.UNSUPPORTED
        case _:
            return Trouble.OTHER


def _network(endpoint: Endpoint) -> httpx.AsyncBaseTransport:
    verify: ssl.SSLContext | bool = False
    if endpoint.url.startswith("https:"):
        try:
            verify = ssl.create_default_context(cadata=endpoint.ca_pem)
        except ssl.SSLError as error:
            raise ValueError(f"the CA bundle cannot be read: {error}") from error
    limits = httpx.Limits(max_connections=16, max_keepalive_connections=16)
    # Nothing from the environment: a proxy set for other purposes must not see tokens.
    return httpx.AsyncHTTPTransport(verify=verify, limits=limits, trust_env=False)
