"""Where the output of a pod is, with a token for it: from the SlurmJob's status, caches and the key of the Cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from slinky_operator.kube.errors import KubeError
from slinky_operator.pod_programs.joblogs import tokens
from slinky_operator.pod_programs.joblogs.tokens import Grant
from slinky_operator.reconcile.cached.job_nodes import Nodes
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.secrets import SecretReader, job_logs_key
from slinky_operator.slurm import naming
from slinky_operator.slurm.jobs.job_log_servers import NoServer, server_of
from slinky_operator.virtual_nodes.kubelet.refusal import NotServed
from slinky_operator.virtual_nodes.kubelet.served_pods import ServedPod

VALID_S: Final = 60
"""Seconds for which a token is valid: one is made for each look."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file, and what opens it.

    Parameters
    ----------
    url, token
        The job log server, and what it wants to see.
    identity
        Another one means another file: the job was started again.
    """

    url: str
    token: str
    identity: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """Finds the file of a pod's output.

    Parameters
    ----------
    clusters
        Parsed Clusters.
    nodes
        Their slurmd pods.
    secrets
        Reads the keys of job log servers.
    now
        Seconds since the epoch.
    """

    clusters: ClusterReader
    nodes: Nodes
    secrets: SecretReader
    now: Callable[[], float] = time.time

    async def of(self, served: ServedPod, container: str) -> Source:
        """Find the file of a pod's output.

        Raises
        ------
        NotServed
            There is none yet, or it cannot be reached; the text says why.
        """
        name, place = served.pod["metadata"]["name"], served.place
        if place is None and served.has_ended:
            raise _bad(f'the job of pod "{name}" has ended, and Slurm has no record of its node')
        if place is None:
            raise _bad(f'container "{container}" in pod "{name}" is waiting to start: {served.waits_for}')
        path, node = str(place.get("path") or ""), str(place.get("node") or "")
        if not path.startswith(f"{naming.JOB_OUTPUT_FOLDER}/"):
            if not path:
                raise _bad("Slurm names no file that the job writes its output to")
            raise _bad(f"the job writes its output to {path} on node {node}, where no job log server serves it")
        cluster = await self.clusters.find(served.cluster)
        if cluster is None or cluster.spec.external:
            raise _bad(f"{path} is on node {node}, which the operator cannot reach: the Cluster is external or gone")
        url = server_of(self.nodes.pod_of(cluster, node), node, cluster)
        if isinstance(url, NoServer):
            raise NotServed(HTTPStatus.SERVICE_UNAVAILABLE, f"{path} cannot be read: {url.why}")
        try:
            key = await job_logs_key(self.secrets, cluster)
            return Source(url, self._token(place, path, key), (node, path, str(place.get("starts"))))
        except KubeError as error:
            why = f"the key of the job log servers cannot be read: {error}"
            raise NotServed(HTTPStatus.SERVICE_UNAVAILABLE, why) from error

    def _token(self, place: Mapping[str, Any], path: str, key: bytes) -> str:
        uid, gid = place.get("uid"), place.get("gid")
        if not isinstance(uid, int) or not isinstance(gid, int) or not uid:
            raise _bad("Slurm names no user of the job, or root, whose output is not served")
        try:
            return tokens.sign(Grant(str(place.get("job")), uid, (gid,), path, int(self.now()) + VALID_S), key)
        except tokens.UnusableKey:
            why = "the operator does not have the key of the job log servers yet"
            raise NotServed(HTTPStatus.SERVICE_UNAVAILABLE, why) from None
        except ValueError as error:
            raise _bad(f"{path} cannot be served: {error}") from error


def _bad(why: str) -> NotServed:
    return NotServed(HTTPStatus.BAD_REQUEST, why)
