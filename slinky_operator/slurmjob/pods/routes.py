"""By which way a follower reaches the files of a job, and the tokens for them. Pure but for `Misses`.

A token is valid for one file, which is opened as the user of Slurm's record. Its end moves in steps, so that the same
job has the same token for a while and nothing is written in between; the steps of different jobs do not coincide.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.files import JobVolume
from slinky_operator.kube.objects import Object
from slinky_operator.pod_programs.joblogs import tokens
from slinky_operator.pod_programs.joblogs.follower.job_file import Place
from slinky_operator.pod_programs.joblogs.tokens import Grant
from slinky_operator.reconcile.cached.kept_fields import SHARED_SOURCES
from slinky_operator.slurm import naming
from slinky_operator.slurm.jobs.job_log_servers import NoServer, server_of
from slinky_operator.slurm.pods import pod_ownership
from slinky_operator.slurmjob.model import output_path
from slinky_operator.slurmjob.pods.log_facts import Facts

STEP_S: Final = 1800
"""Seconds between two tokens of a job that runs; each is valid for at least twice as long."""

LOOKS_S: Final = (5.0, 300.0)
"""Seconds between looks for a way that may come, the first and the last: a node outside Kubernetes never is a pod."""

SHARE: Final = 0.25
"""Of the time that a way has been missing: so long is waited for the next look."""

AFTER_END_S: Final = 86400
"""Seconds for which the tokens of a job that has ended are valid: its pod may have to wait for a node."""


OUTPUT_VOLUME: Final = "job-output"
"""The volume with the folder of the job log server, in slurmd's pod."""


@dataclass(frozen=True, slots=True)
class Route:
    """How a file is reached, or why not.

    Parameters
    ----------
    place
        What the follower reads; None if it cannot reach the file.
    why
        Why not.
    may_come
        Whether that may change by itself.
    """

    place: Place | None = None
    why: str = ""
    may_come: bool = False


@dataclass(frozen=True, slots=True)
class LogContext:
    """What the ways depend on besides the job.

    Parameters
    ----------
    cluster
        The job's; None if it is gone.
    pod
        The slurmd pod of the job's node; None if there is none.
    key
        Of tokens; empty if it is not known.
    volume
        The claim that the pod mounts.
    now
        Seconds since the epoch.
    uid
        Of the SlurmJob.
    """

    cluster: Cluster | None
    pod: Object | None
    key: bytes
    volume: JobVolume | None
    now: float
    uid: str


@dataclass(slots=True)
class Misses:
    """Since when the output of one SlurmJob cannot be reached, which may change by itself."""

    since: float | None = None

    def retry(self, now: float, *, may_come: bool) -> float | None:
        """Seconds until the next look, the more the longer it lasts; None if nothing is waited for."""
        if not may_come:
            self.since = None
            return None
        if self.since is None:
            self.since = now
        first, last = LOOKS_S
        return min(max((now - self.since) * SHARE, first), last)


def renewed_in(uid: str, now: float) -> float:
    """Seconds until the tokens of a job that runs are renewed."""
    return STEP_S - (now + _shift(uid)) % STEP_S


def _shift(uid: str) -> int:
    return zlib.crc32(uid.encode()) % STEP_S


def _expires(around: LogContext, *, ended: bool) -> int:
    if ended:
        return int(around.now) + AFTER_END_S
    shift = _shift(around.uid)
    return (int(around.now + shift) // STEP_S + 3) * STEP_S - shift


def needs_server(path: str, volume: JobVolume | None) -> bool:
    """Whether a file is in the folder of the job log server, and not on a claim."""
    return path.startswith(f"{naming.JOB_OUTPUT_FOLDER}/") and not _is_on(volume, path)


def log_route(path: str, facts: Facts, around: LogContext) -> Route:
    """Find the way to a file.

    Parameters
    ----------
    path
        Where the job writes it on its node.
    facts
        The job; it has a node.
    around
        See there.
    """
    if _is_on(around.volume, path):
        if not facts.uid:
            return Route(why="Slurm names no user of the job")
        return Route(Place(file=path))
    if not needs_server(path, around.volume):
        where = f", nor on spec.logs.volume below {around.volume.mount_path}" if around.volume else ""
        more = "" if around.volume else "; to read it there, name its claim in spec.logs.volume"
        return Route(why=f"{path} is not below {naming.JOB_OUTPUT_FOLDER}{where}{more}")
    if around.cluster is None or around.cluster.spec.external:
        return Route(why=f"{path} is on a node that the operator cannot reach: the Cluster is external or gone")
    return _by_server(path, facts, around, around.cluster)


def _by_server(path: str, facts: Facts, around: LogContext, cluster: Cluster) -> Route:
    url = server_of(around.pod, facts.node, cluster)
    return no_server(url) if isinstance(url, NoServer) else _with_token(path, facts, around, url)


def no_server(found: NoServer) -> Route:
    """The route to a node without a server."""
    return Route(why=found.why, may_come=found.may_come)


def _with_token(path: str, facts: Facts, around: LogContext, url: str) -> Route:
    if not facts.uid or facts.gid is None:
        return Route(why="Slurm names no user of the job")
    grant = Grant(facts.job, facts.uid, (facts.gid,), path, _expires(around, ended=facts.end is not None))
    try:
        token = tokens.sign(grant, around.key)
    except tokens.UnusableKey:
        return Route(why="the operator does not have the key of the job log servers yet", may_come=True)
    except ValueError as error:
        return Route(why=f"{path} cannot be served: {error}")
    return Route(Place(url, token))


def _is_on(volume: JobVolume | None, path: str) -> bool:
    # What leads out of the folder is not followed.
    return volume is not None and path.startswith(f"{volume.mount_path}/") and ".." not in path.split("/")


def shared_server(
    cluster: Cluster, partitions: str | None, nodesets: Sequence[Object], pods: Sequence[Object], attempt: int
) -> str | Route:
    """Find a job log server whose folder all nodes of a job share.

    Parameters
    ----------
    partitions
        Those that the job names; None for Slurm's default.
    nodesets
        All of the Cluster.
    pods
        Those of the Cluster's NodeSets.
    attempt
        Another one has another server, where there are several.
    """
    why = output_path.why_not_served(cluster, partitions, nodesets, pods)
    if why:
        return Route(why=why, may_come=True)
    chosen = (
        output_path.node_sets_of(cluster, partitions, [nodeset["metadata"]["name"] for nodeset in nodesets]) or set()
    )
    fitting = [
        pod
        for pod in pods
        if (pod["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_NAME) in chosen
        and pod_ownership.is_slurmd(pod)
    ]
    volumes = [_output_volume(one) for one in fitting]
    if not fitting:
        return Route(why=f"Cluster {cluster.name} has no node on which the job may run", may_come=True)
    if any(volume != volumes[0] or not SHARED_SOURCES & volume.keys() for volume in volumes):
        words = (
            f"nodes of the job do not share {naming.JOB_OUTPUT_FOLDER}: give the templates of their NodeSets the same "
            "volume job-output, or use spec.sharedVolume"
        )
        return Route(why=words, may_come=True)
    found = [server_of(one, one["metadata"]["name"], cluster) for one in sorted(fitting, key=_name)]
    urls = [one for one in found if isinstance(one, str)]
    return urls[attempt % len(urls)] if urls else next(no_server(one) for one in found if isinstance(one, NoServer))


def _name(pod: Object) -> str:
    return str(pod["metadata"]["name"])


def _output_volume(pod: Object) -> Object:
    found = (pod.get("spec") or {}).get("volumes") or ()
    return next((dict(one) for one in found if one.get("name") == OUTPUT_VOLUME), {})
