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

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.files import JobFilesStatus, JobResults
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.jobs.phases import Phase
from slinky_operator.jobs.tenants import Grant
from slinky_operator.kube.objects import Object
from slinky_operator.pod_programs.joblogs import tokens
from slinky_operator.pod_programs.joblogs.copies import permits
from slinky_operator.pod_programs.joblogs.copies.events import Limits
from slinky_operator.pod_programs.joblogs.copies.orders import Copy, Place
from slinky_operator.pod_programs.joblogs.copies.permits import Permit
from slinky_operator.slurm import naming
from slinky_operator.slurm.jobs.job_log_servers import NoServer, server_of
from slinky_operator.slurmjob.pods.copy_pod import SHARED_FOLDER, shared_volume, volume_folder
from slinky_operator.slurmjob.pods.routes import Route, no_server
from slurm_client import JobSpec

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
        What a pod's orders say; None if it cannot be made.
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
class CopyContext:
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


def results(job: SlurmJob, around: CopyContext) -> tuple[Item, ...]:
    """Find the ways of all results that are wanted."""
    return tuple(_result(job, index, one, around) for index, one in wanted_results(job))


def needs_server(job: SlurmJob) -> bool:
    """Whether a result is read through the server of a node."""
    known = job.status.files or JobFilesStatus()
    paths = [_path(job, one.path, known) for _, one in wanted_results(job)]
    return any(below(naming.JOB_OUTPUT_FOLDER, path) and shared(job, path) is None for path in paths)


def _result(job: SlurmJob, index: int, result: JobResults, around: CopyContext) -> Item:
    name = f"results[{index}]"
    known = job.status.files or JobFilesStatus()
    path = _path(job, result.path, known)
    if not path:
        return Item(name, index, why=_unnamed(result))
    if not known.uid or known.gid is None:
        return Item(name, index, why="Slurm names no user of the job, or names root: files of root are not copied")
    source = _source(job, index, path, result, around)
    if isinstance(source, Route):
        logs = job.status.logs if result.path is None else None
        more = f"; the operator set no output file: {logs.not_served}" if logs and logs.not_served else ""
        return Item(name, index, why=f"{source.why}{more}", may_come=source.may_come)
    into = f"{result.to or job.name}/{_name_there(job, path)}"
    target = Place(folder=volume_folder(index), path=_plain(into))
    return Item(name, index, Copy(name, source, target, mark(job, name), limits(result.max_size, result.max_files)))


def _name_there(job: SlurmJob, path: str) -> str:
    """The name in the volume; output that the operator has named gets the one that Slurm would have given it."""
    name, logs = PurePosixPath(path).name, job.status.logs
    if logs is not None and logs.name and name.startswith(logs.name):
        return f"slurm-{job.status.job_id}{PurePosixPath(path).suffix}"
    return name


def _unnamed(result: JobResults) -> str:
    if result.path is None:
        return "the job has no output file of its own: set path"
    return f"{result.path} is relative, and Slurm does not name the job's working directory: write an absolute path"


def limits(size: str, files: int) -> Limits:
    """What a copy may have."""
    return Limits(min(bytes_of(size), permits.MAX_SIZE), files)


def mark(job: SlurmJob, name: str) -> str:
    """Tells a copy apart from all others."""
    return hashlib.sha256(f"{job.uid}/{name}".encode()).hexdigest()[:32]


def preparations(
    job: SlurmJob, granted: Grant, wanted: JobSpec, around: CopyContext, server: str | Route
) -> tuple[Item, ...]:
    """Find the ways of all files that are copied before a job is submitted.

    Parameters
    ----------
    granted
        Whose job it will be.
    wanted
        What will be submitted.
    around
        See there.
    server
        URL of a job log server that writes where all nodes of the job read, or why there is none.
    """
    return tuple(_preparation(job, index, granted, wanted, around, server) for index in range(len(job.spec.prepare)))


def _preparation(
    job: SlurmJob, index: int, granted: Grant, wanted: JobSpec, around: CopyContext, server: str | Route
) -> Item:
    name, asked = f"prepare[{index}]", job.spec.prepare[index]
    if granted.uid is None or granted.gid is None:
        words = "the tenant in spec.jobs.tenants of the Cluster has no uid and gid: ask its administrator for them"
        return Item(name, index, why=words, may_come=True)
    path = asked.path if asked.path.startswith("/") else f"{wanted.working_directory or ''}/{asked.path}"
    if not asked.path.startswith("/") and not (wanted.working_directory or "").startswith("/"):
        return Item(name, index, why=f"{asked.path} is relative: write an absolute path, or set workingDirectory")
    if JOB_ID in path:
        return Item(name, index, why=f"{asked.path} has {JOB_ID}, and a job has no id before it is submitted")
    path, bounds = _plain(path), limits(asked.max_size, asked.max_files)
    target: Place | Route | None = shared(job, path)
    if target is None:
        permit = Permit(
            job=f"{job.namespace}/{job.name}",
            uid=granted.uid,
            gids=(granted.gid,),
            path=path,
            expires=expires(around.now),
            writes=True,
            mark=mark(job, name),
            max_bytes=bounds.size,
            max_entries=bounds.entries,
        )
        target = _written_to(job, path, permit, around, server)
    if isinstance(target, Route):
        return Item(name, index, why=target.why, may_come=target.may_come)
    is_projected = asked.volume.persistent_volume_claim is None
    source = Place(folder=volume_folder(index), path=_plain(asked.source or ""), is_projected=is_projected)
    return Item(name, index, Copy(name, source, target, mark(job, name), bounds, is_private=True))


def _written_to(job: SlurmJob, path: str, permit: Permit, around: CopyContext, server: str | Route) -> Place | Route:
    if not below(naming.JOB_OUTPUT_FOLDER, path):
        return _beyond(job, path)
    return server if isinstance(server, Route) else with_token(server, permit, around.key)


def prepared_by_server(job: SlurmJob) -> bool:
    """Whether a file may be written through the server of a node."""
    return any(shared(job, _plain(one.path)) is None for one in job.spec.prepare)


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


def _source(job: SlurmJob, index: int, path: str, result: JobResults, around: CopyContext) -> Place | Route:
    on_claim = shared(job, path)
    if on_claim is not None:
        return on_claim
    cluster, known = around.cluster, job.status.files or JobFilesStatus()
    if not below(naming.JOB_OUTPUT_FOLDER, path):
        return _beyond(job, path)
    if job.status.array is not None or not known.node:
        return Route(
            why=f"{path} is on the nodes of several tasks, or on a node that Slurm does not name: use spec.sharedVolume"
        )
    if cluster is None or cluster.spec.external:
        return Route(why=f"{path} is on a node that the operator cannot reach: the Cluster is external or gone")
    url = server_of(around.pod, known.node, cluster)
    if isinstance(url, NoServer):
        return no_server(url)
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


def _beyond(job: SlurmJob, path: str) -> Route:
    volume = shared_volume(job)
    where = f", nor on spec.sharedVolume below {volume.mount_path}" if volume else ""
    more = "" if volume else "; to read it there, name its claim in spec.sharedVolume"
    return Route(why=f"{path} is not below {naming.JOB_OUTPUT_FOLDER}{where}{more}")


def with_token(url: str, permit: Permit, key: bytes) -> Place | Route:
    """Make the token for a server."""
    try:
        token = permits.sign(permit, key)
        return Place(url=url, token=token, proof_key=permits.proof_key(token, key))
    except tokens.UnusableKey:
        return Route(why="the operator does not have the key of the job log servers yet", may_come=True)
    except ValueError as error:
        return Route(why=f"{permit.path} cannot be copied: {error}")


def expires(now: float) -> int:
    """When a token that is made now ends."""
    return (int(now) // STEP_S + 3) * STEP_S
