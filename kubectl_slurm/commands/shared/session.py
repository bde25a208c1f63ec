"""What a command asks with: Kubernetes, a Cluster of the namespace, and its slurmrestd with a token."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import httpx

from kubectl_slurm.access import slurmrestd, tokens
from kubectl_slurm.access.kinds import CLUSTERS
from kubectl_slurm.access.kubectl import Kubectl, checked_namespace
from kubectl_slurm.access.kubernetes import Kubernetes
from kubectl_slurm.commands.shared.options import Options
from kubectl_slurm.errors import NoCluster, SeveralClusters
from kubectl_slurm.facts import reading
from kubectl_slurm.facts.objects import ClusterFacts
from slurm_client import SyncSlurmClient

T = TypeVar("T")


class Session:
    """One call of the program.

    Attributes
    ----------
    kube
        The API server, in the namespace of the call.
    kubectl
        For what needs a connection of its own.
    """

    def __init__(self, options: Options, kubectl: Kubectl, kube: Kubernetes, socket: Path, stack: ExitStack) -> None:
        self.options, self.kubectl, self.kube = options, kubectl, kube
        self._socket, self._stack = socket, stack

    @staticmethod
    def now() -> datetime:
        """The time."""
        return datetime.now(UTC)

    def clusters(self) -> list[ClusterFacts]:
        """The Clusters of the namespace, or the one that was named.

        Raises
        ------
        NoCluster
            There is none.
        """
        if self.options.cluster:
            return [reading.cluster(self.kube.get(CLUSTERS, self.options.cluster))]
        found = [reading.cluster(obj) for obj in self.kube.objects(CLUSTERS)]
        if not found:
            context = f" --context={shlex.quote(self.options.context)}" if self.options.context else ""
            raise NoCluster(
                f"there is no Cluster in namespace {self.kube.namespace!r}; name another with --namespace"
                f" (kubectl get clusters.slinky.slurm.net --all-namespaces{context})"
            )
        return found

    def cluster(self, name: str = "") -> ClusterFacts:
        """The Cluster of a name, or the one that is meant; SeveralClusters if nobody has said which."""
        if name:
            return reading.cluster(self.kube.get(CLUSTERS, name))
        found = self.clusters()
        if len(found) > 1:
            names = ", ".join(one.name for one in found[:10])
            text = f"there are {len(found)} Clusters in this namespace ({names}): name one with --cluster"
            raise SeveralClusters(text)
        return found[0]

    def slurm(self, cluster: ClusterFacts, user: str = tokens.READER) -> SyncSlurmClient:
        """Connect to slurmrestd for as long as the session lasts; see `connected`."""
        return self._stack.enter_context(self.connected(cluster, user))

    @contextmanager
    def connected(self, cluster: ClusterFacts, user: str = tokens.READER) -> Iterator[SyncSlurmClient]:
        """Connect to slurmrestd as a Slurm user, the one of ``--as`` first, with a token of its own.

        Raises
        ------
        NoToken
            There is none for the user.
        """
        with self._token(cluster, user) as token:
            url, ca = self.options.server, self.options.ca
            with slurmrestd.client(cluster, token, socket=self._socket, url=url, ca=ca) as client:
                yield client

    @contextmanager
    def kube_in(self, namespace: str) -> Iterator[Kubernetes]:
        """The API server, in another namespace."""
        transport = httpx.HTTPTransport(uds=str(self._socket))
        with Kubernetes(transport, checked_namespace(namespace), self.options.context) as kube:
            yield kube

    def token(self, cluster: ClusterFacts, user: str = tokens.READER) -> str:
        """A token of a Slurm user, the one of ``--as`` first, for as long as the session lasts."""
        return self._stack.enter_context(self._token(cluster, user))

    def has_token(self, cluster: ClusterFacts) -> bool:
        """Whether the user has given a token that is for this Cluster."""
        return bool(self.options.token_for(cluster.name))

    @contextmanager
    def _token(self, cluster: ClusterFacts, user: str) -> Iterator[str]:
        given = self.options.token_for(cluster.name)
        if given:
            yield given
            return
        clock, user = tokens.Clock(self.now, time.sleep), self.options.slurm_user or user
        namespace = self.kube.namespace
        with tokens.acquire(self.kube, self.kubectl, cluster, user, clock, namespace=namespace) as token:
            yield token

    def ask(self, cluster: ClusterFacts, call: Callable[[], T], *, verb: str = "get") -> T:
        """Ask slurmrestd; a right that is missing on the way is named."""
        direct = bool(self.options.server) or cluster.external
        return slurmrestd.checked(self.kube, call, verb=verb, path="" if direct else slurmrestd.proxy_path(cluster))


@contextmanager
def open_session(options: Options) -> Iterator[Session]:
    """Sign in to Kubernetes for one command."""
    kubectl = Kubectl(options.kubectl, options.kubeconfig, options.context)
    namespace = checked_namespace(options.namespace or kubectl.namespace())
    with ExitStack() as stack:
        socket = stack.enter_context(kubectl.proxy())
        kube = stack.enter_context(Kubernetes(httpx.HTTPTransport(uds=str(socket)), namespace, options.context))
        yield Session(options, kubectl, kube, socket, stack)
