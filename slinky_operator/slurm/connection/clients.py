"""The client map: one Slurm client per Cluster.

Only the Cluster controller creates, replaces and closes entries; other callers read, query and receive node events.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final

import httpx
from typing_extensions import override

from slinky_operator.kube.leadership.fence import Fence
from slinky_operator.slurm.connection.cluster_client import FIRST_PAUSE, ClusterClient
from slinky_operator.slurm.connection.contact import Contact, Endpoint
from slinky_operator.slurm.connection.fencing import FencedTransport
from slinky_operator.slurm.connection.overrides import OverrideTransport
from slinky_operator.slurm.connection.replicas import AT_A_TIME, ReplicaTransport
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slurm_client import MintedToken, SlurmClient, TokenProvider, errors
from slurm_client.connection.circuit import Circuit
from slurm_client.connection.intake import Intake
from slurm_client.hooks import Hook
from slurm_client.watch import NodeEvent, Pace

logger = logging.getLogger(__name__)


JOBS_AGAIN_S: Final = 30.0
"""Seconds after which jobs are listed again although slurmctld says that none has changed: a user reads in their status
why they wait, and need not wait five minutes for a reason that a list has missed."""

NodeListener = Callable[[str, NodeEvent], None]
"""Called with the uid of the Cluster and what happened to a node; puts a key on a queue and returns."""

ContactListener = Callable[[str, Contact], None]


class ClientMap:
    """One `ClusterClient` per Cluster, by uid.

    Parameters
    ----------
    fence
        Asked before every write to any Slurm.
    transport
        Makes the transport for an endpoint; the network if absent.
    hook
        Told of every request to any Slurm; for metrics.
    intake
        Room for the answers of all of them. Where they take too much together, the largest answer of the namespace
        that takes most gives way.
    overrides
        Where slurmrestd of a Cluster is asked, by namespace and name, in place of what the Cluster says.

    Attributes
    ----------
    intake
        The same, for what else is read from pods.
    """

    def __init__(
        self,
        fence: Fence,
        *,
        transport: Callable[[Endpoint], httpx.AsyncBaseTransport] | None = None,
        intake: Intake | None = None,
        hook: Hook | None = None,
        overrides: Mapping[tuple[str, str], str] = MappingProxyType({}),
    ) -> None:
        self._fence = fence
        self._overrides = overrides
        self._hook = hook
        self.intake = intake or Intake()
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

    def entries(self) -> Sequence[ClusterClient]:
        """The clients of all Clusters."""
        return tuple(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def subscribe(self, listener: NodeListener) -> None:
        """Call `listener(cluster_uid, event)` for every node event of every Cluster from now on."""
        self._node_listeners.append(listener)

    def subscribe_contact(self, listener: ContactListener) -> None:
        """Call `listener(cluster_uid, contact)` for every change of contact from now on."""
        self._contact_listeners.append(listener)

    async def put(
        self,
        uid: str,
        namespace: str,
        name: str,
        *,
        endpoint: Endpoint,
        token: TokenProvider,
        fingerprint: str,
        replicas: Sequence[str] = (),
    ) -> ClusterClient:
        """Make the entry of a Cluster, unless there is one made from the same.

        Parameters
        ----------
        fingerprint
            Changes whenever endpoint or token do. A new entry starts with an empty cache: it may be another Slurm.
        replicas
            URLs of the slurmrestds behind the endpoint's URL; calls go to that if there are none.

        Raises
        ------
        ValueError
            If the URL or the certificates cannot be used.
        """
        known = self._entries.get(uid)
        if known is not None and known.fingerprint == fingerprint:
            return known
        routes = ReplicaTransport(self._connected(endpoint, (namespace, name)), replicas)
        transport = FencedTransport(routes, self._fence, (namespace, name))
        client = SlurmClient(
            endpoint.url,
            token,
            timeout=endpoint.timeout,
            # Recovery is noticed by the poll; a longer pause would only delay it.
            circuit=Circuit(first_pause=FIRST_PAUSE, longest_pause=endpoint.longest_pause / 2),
            transport=transport,
            intake=self.intake,
            hook=self._hook,
            owner=namespace,
            pace=Pace(resync=JOBS_AGAIN_S),
        )
        await self.close(uid)
        entry = ClusterClient(
            uid,
            namespace,
            name,
            endpoint=endpoint,
            fingerprint=fingerprint,
            client=client,
            replicas=routes,
            tell=self._told,
            tell_contact=self._told_contact,
        )
        self._entries[uid] = entry
        return entry

    async def why_refused(self, uid: str, token: TokenProvider) -> str:
        """Why a Cluster's slurmctld does not take another token than the one it is asked with; empty if it does.

        No answer counts as a refusal.
        """
        entry = self._entries.get(uid)
        if entry is None:
            return "there is no connection with Slurm"
        endpoint = entry.endpoint
        about = (entry.namespace, entry.name)
        routes = ReplicaTransport(self._connected(endpoint, about), entry.replicas.urls)
        transport = FencedTransport(routes, self._fence, about)
        client = SlurmClient(
            endpoint.url,
            token,
            api_version=entry.client.api_version,
            timeout=endpoint.timeout,
            transport=transport,
            intake=self.intake,
            hook=self._hook,
            owner=entry.namespace,
        )
        try:
            # A ping is answered whatever the token, and a list of partitions only by a slurmdbd that takes it too.
            _ = await client.licenses()
        except errors.SlurmError as error:
            logger.info("%s/%s does not take another key yet: %s", entry.namespace, entry.name, type(error).__name__)
            return str(error) or type(error).__name__
        finally:
            await client.close()
        return ""

    async def close(self, uid: str) -> None:
        """Close the entry of a Cluster, if there is one."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            await entry.close()

    async def close_all(self) -> None:
        """Close everything; for the end of the process."""
        await asyncio.gather(*(self.close(uid) for uid in list(self._entries)))

    def _connected(self, endpoint: Endpoint, about: tuple[str, str]) -> httpx.AsyncBaseTransport:
        transport, instead = self._transport(endpoint), self._overrides.get(about)
        if instead is None:
            return transport
        logger.warning("%s/%s: slurmrestd is asked at %s (slurmrestd_override)", *about, instead)
        return OverrideTransport(transport, instead)

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


def _network(endpoint: Endpoint) -> httpx.AsyncBaseTransport:
    verify: ssl.SSLContext | bool = False
    if endpoint.url.startswith("https:"):
        try:
            verify = ssl.create_default_context(cadata=endpoint.ca_pem)
        except ssl.SSLError as error:
            raise ValueError(f"the CA bundle cannot be read: {error}") from error
    # Of several replicas, some may have the same read, or be checked.
    limits = httpx.Limits(max_connections=16 * (AT_A_TIME + 1), max_keepalive_connections=16)
    # Nothing from the environment: a proxy set for other purposes must not see tokens.
    return httpx.AsyncHTTPTransport(verify=verify, limits=limits, trust_env=False)


class OwnTokens(TokenProvider):
    """Tokens of SlurmUser; where one is refused, the next is signed with the next key.

    Parameters
    ----------
    keys
        At least one, the likeliest first.
    lifetime
        Of a token; it is renewed after half of it.
    """

    def __init__(self, keys: Sequence[SigningKey], lifetime: timedelta) -> None:
        self._signers = [
            MintedToken(one.value, lifetime=lifetime, algorithm=one.algorithm, key_id=one.key_id) for one in keys
        ]
        self._current = 0
        self._last = ""

    @override
    async def token(self) -> str:
        self._last = await self._signers[self._current].token()
        return self._last

    @override
    def invalidate(self, token: str) -> None:
        # Several calls may have been refused with the same token: the key changes once.
        if token == self._last:
            self._signers[self._current].invalidate(token)
            self._current, self._last = (self._current + 1) % len(self._signers), ""
