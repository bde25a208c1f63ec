"""The pod that shows the output of a SlurmJob, with a container for each stream. Pure."""

from __future__ import annotations

from typing import Final

from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.kube.objects import Object
from slinky_operator.pod_programs.joblogs.follower import job_file
from slinky_operator.slurmjob.pods import bodies
from slinky_operator.slurmjob.pods.bodies import Image

NOBODY: Final = 65534
"""Uid and gid of a follower that reads from a server."""

SUFFIX: Final = "-logs"
STREAMS: Final = ("stdout", "stderr")
FOLDER: Final = "/run/job"
_FILE_VOLUME: Final = "job"
_CLAIM_VOLUME: Final = "output"


def name_of(job: str) -> str:
    """Name of pod and Secret of a SlurmJob."""
    return bodies.name_of(job, SUFFIX)


def secret(job: SlurmJob, text: str) -> Object:
    """The Secret with the job's file."""
    return bodies.secret(job, name_of(job.name), job_file.NAME, text)


def pod(job: SlurmJob, text: str, image: Image, uid: int | None, gid: int | None) -> Object:
    """The pod.

    Parameters
    ----------
    text
        The job's file.
    uid, gid
        Of the job, from Slurm's record: as them, and as no other, a claim is read.
    """
    about = {**bodies.metadata(job, name_of(job.name)), **bodies.mark(text)["metadata"]}
    volume = job.spec.logs.volume if job.spec.logs is not None else None
    user, group = (uid or NOBODY, gid or NOBODY) if volume is not None else (NOBODY,) * 2
    volumes: list[Object] = [
        {"name": _FILE_VOLUME, "secret": {"secretName": name_of(job.name), "defaultMode": 0o444}},
    ]
    mounts: list[Object] = [{"name": _FILE_VOLUME, "mountPath": FOLDER, "readOnly": True}]
    if volume is not None:
        claim = {"claimName": volume.claim_name, "readOnly": True}
        volumes.append({"name": _CLAIM_VOLUME, "persistentVolumeClaim": claim})
        mounts.append({"name": _CLAIM_VOLUME, "mountPath": volume.mount_path, "readOnly": True})
    followers = [
        bodies.container(
            stream, image, ["follow", "--job", f"{FOLDER}/{job_file.NAME}", "--stream", stream], mounts, cpu="500m"
        )
        for stream in STREAMS
    ]
    return bodies.pod(about, {}, {"runAsUser": user, "runAsGroup": group}, followers, volumes)
