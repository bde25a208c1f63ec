"""The tools for the actions of a plan: clients, watches, the recorder of Events, and the clock."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from slinky_operator.cluster.parts.keys.proof import query as key_questions
from slinky_operator.cluster.parts.keys.proof.query import AskDaemon
from slinky_operator.cluster.rollout import agent_queries
from slinky_operator.cluster.rollout.config_sources import ConfigMapWatcher
from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.events import Recorder
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.metrics.changes import Changes
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.pod_reader import PodReader


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools for carrying out actions; one set for all Clusters."""

    kube: KubeClient
    sources: SecretReader
    texts: ConfigMapWatcher
    clients: ClientMap
    recorder: Recorder
    http: PodReader
    """For queries to agents."""

    changes: Changes = field(default_factory=Changes)
    """Counts what is done, for metrics."""

    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds."""

    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    agent_url: Callable[[Object], str] = agent_queries.agent_url
    ask_daemon: AskDaemon = key_questions.ask_daemon
    """Asks one daemon whether it has a key of auth/slurm."""

    async def live(self, resource: Resource, name: str, namespace: str) -> Object | None:
        """Read an object past the caches; `None` if it does not exist."""
        try:
            return await self.kube.get(resource, name, namespace)
        except errors.NotFound:
            return None
