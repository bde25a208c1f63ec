"""By which way the files of a job are reached: on a claim that nodes mount too, or through the server of a node. Pure.

A token is valid for one file or folder, which is opened as the user of the job. Its end moves in steps, so that the
same copy has the same token for a while.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from slinky_api.v1alpha1.cluster import Cluster
from slinky_api.v1alpha1.slurmjob_files import JobFilesStatus, JobResults
from slinky_api.v1alpha1.slurmjob_object import SlurmJob
from slinky_operator.joblogs import tokens
from slinky_operator.joblogs.copies import permits
from slinky_operator.joblogs.copies.events import Limits
from slinky_operator.joblogs.copies.orders import Copy, Place
from slinky_operator.joblogs.copies.permits import Permit
from slinky_operator.jobs.phases import Phase
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurmjob.files.bodies import SHARED_FOLDER, shared_volume, volume_folder
from slinky_operator.slurmjob.logs.streams import Way, server_of

STEP_S: Final = 43_200
"""Seconds between two tokens of a copy; each is valid for at least twice as long."""

JOB_ID: Final = "%j"

_UNITS: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@dataclass(frozen=True, slots=True)
class Item:
    """One copy that is wanted.

    Parameters
    ----------
    name
        The field that asks for it.
    index
        Its place in the list.
    copy
        What a pod is told; None if it cannot be made.
    why
        Why not.
    may_come
        Whether that may change by itself.
    """

    name: str
    index: int
    copy: Copy | None = None
    why: str = ""
    may_come: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the ways depend on besides the SlurmJob.

    Parameters
    ----------
    cluster
        The job's; None if it is gone.
    pod
        The slurmd pod of the job's node; None if there is none.
    key
        Of tokens; empty if it is not known.
    now
        Seconds since the epoch.
    """

    cluster: Cluster | None
    pod: Object | None
    key: bytes
    now: float


def bytes_of(size: str) -> int:
    """Read a size of the API."""
    return int(size[:-2]) * _UNITS[size[-2:]]


def wanted_results(job: SlurmJob) -> tuple[tuple[int, JobResults], ...]:
    """The results that are collected after such an end of the job, with their places in the list."""
    succeeded = job.status.state == Phase.SUCCEEDED.value
    return tuple(
        (index, one)
        for index, one in enumerate(job.spec.results)
        if one.when == "Always" or (one.when == "OnSuccess" and succeeded)
    )


def results(job: SlurmJob, around: Surroundings) -> tuple[Item, ...]:
    """Find the ways of all results that are wanted."""
    return tuple(_result(job, index, one, around) for index, one in wanted_results(job))


def needs_server(job: SlurmJob) -> bool:
    """Whether a result is read through the server of a node."""
    known = job.status.files or JobFilesStatus()
    paths = [_path(job, one.path, known) for _, one in wanted_results(job)]
    return any(below(naming.JOB_OUTPUT_FOLDER, path) and shared(job, path) is None for path in paths)


def _result(job: SlurmJob, index: int, result: JobResults, around: Surroundings) -> Item:
    name = f"results[{index}]"
    known = job.status.files or JobFilesStatus()
    path = _path(job, result.path, known)
    if not path:
        return Item(name, index, why=_unnamed(result))
    if not known.uid or known.gid is None:
        return Item(name, index, why="Slurm does not say whose job it is, or it is root's, whose files are not copied")
    source = _source(job, index, path, result, around)
    if isinstance(source, Way):
        return Item(name, index, why=source.why, may_come=source.may_come)
    into = f"{result.to or job.name}/{PurePosixPath(path).name}"
    target = Place(folder=volume_folder(index), path=_plain(into))
    return Item(name, index, Copy(name, source, target, mark(job, name), limits(result.max_size, result.max_files)))


def _unnamed(result: JobResults) -> str:
    if result.path is None:
        return "the job has no file of standard output of its own: name a path"
    return f"{result.path} is relative, and Slurm does not say where the job started: write an absolute path"


def limits(size: str, files: int) -> Limits:
    """What a copy may have."""
    return Limits(min(bytes_of(size), permits.MAX_SIZE), files)


def mark(job: SlurmJob, name: str) -> str:
    """Tells a copy apart from all others."""
    return hashlib.sha256(f"{job.uid}/{name}".encode()).hexdigest()[:32]


def _path(job: SlurmJob, path: str | None, known: JobFilesStatus) -> str:
    """The absolute path on the nodes; empty if it is not known."""
    if path is None:
        return _plain(known.output)
    named = path.replace(JOB_ID, str(job.status.job_id))
    if named.startswith("/"):
        return _plain(named)
    return _plain(f"{known.folder}/{named}") if known.folder.startswith("/") else ""


def _plain(path: str) -> str:
    """Leave out what changes nothing in a path."""
    return ("/" if path.startswith("/") else "") + "/".join(_parts(path))


def _parts(path: str) -> Sequence[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def below(folder: str, path: str) -> bool:
    """Whether a path is below a folder; what leads out of it is not."""
    return path.startswith(f"{folder}/") and ".." not in path.split("/")


def shared(job: SlurmJob, path: str) -> Place | None:
    """Where a path of the nodes is on the claim that they mount too; None if it is not there."""
    volume = shared_volume(job)
    if volume is None or not below(volume.mount_path, path):
        return None
    return Place(folder=SHARED_FOLDER, path=path[len(volume.mount_path) + 1 :])


def _source(job: SlurmJob, index: int, path: str, result: JobResults, around: Surroundings) -> Place | Way:
    on_claim = shared(job, path)
    if on_claim is not None:
        return on_claim
    cluster, known = around.cluster, job.status.files or JobFilesStatus()
    if not below(naming.JOB_OUTPUT_FOLDER, path):
        volume = shared_volume(job)
        where = f", nor on spec.sharedVolume below {volume.mount_path}" if volume else ""
        more = "" if volume else "; spec.sharedVolume can name a claim with it"
        return Way(why=f"{path} is not below {naming.JOB_OUTPUT_FOLDER}{where}{more}")
    if job.status.array is not None or not known.node:
        return Way(why=f"{path} is on the nodes of several tasks, or Slurm does not say where: use spec.sharedVolume")
    if cluster is None or cluster.spec.external:
        return Way(why=f"{path} is on a node whose Slurm runs elsewhere")
    url = server_of(around.pod, known.node, cluster)
    if isinstance(url, Way):
        return url
    permit = Permit(
        job=str(job.status.job_id),
        uid=known.uid or 0,
        gids=(known.gid or 0,),
        path=path,
        expires=expires(around.now),
        writes=False,
        mark=mark(job, f"results[{index}]"),
        max_bytes=limits(result.max_size, result.max_files).size,
        max_entries=result.max_files,
    )
    return with_token(url, permit, around.key)


def with_token(url: str, permit: Permit, key: bytes) -> Place | Way:
    """Make the token for a server."""
    try:
        return Place(url=url, token=permits.sign(permit, key))
    except tokens.UnusableKey:
        return Way(why="the key of the job log servers is not known yet", may_come=True)
    except ValueError as error:
        return Way(why=f"{permit.path} cannot be copied: {error}")


def expires(now: float) -> int:
    """When a token that is made now ends."""
    return (int(now) // STEP_S + 3) * STEP_S
