"""slurmrestd through the API server's proxy of Services, or at the URL of a Slurm that runs elsewhere.

The proxy needs no tunnel and no open port: ``get``, ``create`` and ``delete`` on ``services/proxy``, which the role
``edit`` has. The API server passes on ``X-SLURM-USER-TOKEN`` and answers as slurmrestd does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from kubectl_slurm.access.kubernetes import Kubernetes
from kubectl_slurm.errors import KubernetesError, MissingRight
from kubectl_slurm.facts.objects import ClusterFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from slurm_client import SlurmError, StaticToken, SyncSlurmClient
from slurm_client.errors import NotSupported

PORT: Final = 6820
TIMEOUT: Final = 60.0
SERVICES_PROXY: Final = "services/proxy"

T = TypeVar("T")


def client(cluster: ClusterFacts, token: str, *, socket: Path, url: str = "", ca: str = "") -> SyncSlurmClient:
    """A client of a Cluster's slurmrestd; opening it sends nothing.

    Parameters
    ----------
    socket
        Of ``kubectl proxy``.
    url
        Of slurmrestd, where it is not to be reached through the API server.
    ca
        File of certificates to trust, for such a URL.
    """
    given = StaticToken(token) if token else None
    direct = url or (cluster.server if cluster.external else "")
    if direct:
        return SyncSlurmClient(direct, given, timeout=TIMEOUT, ca_bundle=ca or None)
    return SyncSlurmClient(f"http://localhost{proxy_path(cluster)}", given, timeout=TIMEOUT, unix_socket=socket)


def proxy_path(cluster: ClusterFacts) -> str:
    """Where the API server has a Cluster's slurmrestd."""
    return f"/api/v1/namespaces/{cluster.namespace}/services/http:{cluster.name}-restapi:{PORT}/proxy"


def checked(kube: Kubernetes, ask: Callable[[], T], *, verb: str = "get", path: str = "") -> T:
    """Ask slurmrestd; a refusal by the API server on the way is reported as one.

    Parameters
    ----------
    verb
        What the API server calls this request.
    path
        Where the API server has it; empty if it is not on the way.

    Raises
    ------
    MissingRight
        The user may not use the proxy of Services.
    KubernetesError
        The API server does not reach it, and says why.
    """
    try:
        return ask()
    except SlurmError as error:
        if path and not kube.may(verb, SERVICES_PROXY):
            raise MissingRight(verb, SERVICES_PROXY, kube.namespace, kube.user(), context=kube.context) from error
        trouble = kube.trouble_of_service(path) if path else ""
        if trouble:
            raise KubernetesError(f"the API server does not reach slurmrestd: {trouble}") from error
        raise


def picture(slurm: SyncSlurmClient, now: datetime, *, accounting: bool = False, places: bool = False) -> SlurmPicture:
    """Read what there is of jobs and nodes, with places of partitions and reservations, with accounting of limits."""
    # Partitions first: one that is closed by then gets no job that the list would not show.
    partitions = slurm.partitions().items if places else ()
    jobs, nodes = slurm.jobs().items, slurm.nodes().items
    if places:
        reservations = slurm.reservations().items
        return SlurmPicture(
            now=now,
            jobs=jobs,
            nodes=nodes,
            partitions=partitions,
            reservations=reservations,
            version=slurm.slurm_version,
        )
    if not accounting:
        return SlurmPicture(now=now, jobs=jobs, nodes=nodes, version=slurm.slurm_version)
    associations, qos = None, None
    try:
        associations, qos = slurm.db.associations().items, slurm.db.qos_list().items
    except SlurmError:
        # No slurmdbd, or one that is away: limits are shown by name only.
        associations, qos = None, None
    return SlurmPicture(
        now=now,
        jobs=jobs,
        nodes=nodes,
        partitions=slurm.partitions().items,
        reservations=slurm.reservations().items,
        licenses=_or_none(slurm.licenses),
        associations=associations,
        qos=qos,
        version=slurm.slurm_version,
    )


def _or_none(ask: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
    try:
        return ask()
    except NotSupported:
        return ()
