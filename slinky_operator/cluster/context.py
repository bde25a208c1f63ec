"""The context for the actions of a plan: clients, watches, the recorder of Events, and the clock."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.events import Recorder
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, Resource
from slinky_operator.metrics.changes import Changes
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import TextSource
from slinky_operator.slurm.connection import key_proof
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.key_proof import Answer, Holder
from slinky_operator.slurm.connection.pod_reader import PodReader
from slinky_operator.slurm.connection.signed_messages import SharedKey

AskDaemon = Callable[[Holder, SharedKey], Awaitable[Answer]]


class Texts(Protocol):
    """What is used of `rollout.config_sources.ConfigMapWatcher`."""

    async def read(self, cluster: Key, names: Iterable[str]) -> dict[str, TextSource]:
        """Return the ConfigMaps that a Cluster names."""
        ...

    async def forget(self, cluster: Key) -> None:
        """Watch none for a Cluster any more."""
        ...


def agent_url(pod: Object) -> str:
    """URL of the agent in a pod."""
    address = str(pod["status"]["podIP"])
    return f"http://{f'[{address}]' if ':' in address else address}:{naming.AGENT_PORT}"


async def ask_daemon(holder: Holder, key: SharedKey) -> Answer:
    """Ask one daemon over the network whether it has a key of auth/slurm."""
    return await key_proof.ask(holder.daemon, holder.host, holder.port, key, time.time())


@dataclass(frozen=True, slots=True)
class PassContext:
    """The context for carrying out actions; one set for all Clusters."""

    kube: KubeClient
    sources: SecretReader
    texts: Texts
    clients: ClientMap
    recorder: Recorder
    http: PodReader
    """Reads JSON objects from pods of Clusters."""

    changes: Changes = field(default_factory=Changes)
    """Counts what is done, for metrics."""

    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds."""

    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    agent_url: Callable[[Object], str] = agent_url
    ask_daemon: AskDaemon = ask_daemon
    """Asks one daemon whether it has a key of auth/slurm."""

    async def live(self, resource: Resource, name: str, namespace: str) -> Object | None:
        """Read an object past the caches; `None` if it does not exist."""
        try:
            return await self.kube.get(resource, name, namespace)
        except errors.NotFound:
            return None


def reference(cluster: Cluster) -> Object:
    """The object that an Event is about."""
    about = {"name": cluster.name, "namespace": cluster.namespace, "uid": cluster.uid}
    return {"apiVersion": CLUSTERS.api_version, "kind": CLUSTERS.kind, "metadata": about}
