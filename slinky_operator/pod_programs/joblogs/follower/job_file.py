"""What the followers of a job have to know: a small JSON file, mounted from the Secret of the job.

The operator writes it with `text` and the kubelet refreshes it in running pods, at once if the pod was changed too
(an annotation will do), else within about a minute and a half.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

NAME: Final = "job.json"
"""Key of the Secret, and name of the file."""

MAX_BYTES: Final = 64 * 1024

_SIGNAL_BASE: Final = 128
_MAX_CODE: Final = 255
_MAX_SIGNAL: Final = 64


class InvalidJobFile(Exception):
    """The file is not there, or not what `text` writes."""


class JobState(StrEnum):
    """What a follower needs to know of a job's state."""

    PENDING = "Pending"
    RUNNING = "Running"
    ENDED = "Ended"


@dataclass(frozen=True, slots=True)
class Place:
    """Where one stream of a job is.

    Parameters
    ----------
    url, token
        The server beside slurmd, and what it wants to see.
    file
        Instead of these, a path that the follower's own container mounts.
    """

    url: str = ""
    token: str = field(default="", repr=False)
    file: str = ""

    def is_same(self, other: Place) -> bool:
        """Whether both mean the same file; a renewed token changes nothing."""
        return (self.url, self.file) == (other.url, other.file)


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its followers see it.

    Parameters
    ----------
    attempt
        How often Slurm has started the job again: a higher number means that its output begins again.
    node
        The Slurm node, for messages.
    exit_code, signal
        How it ended; a signal counts more. 0 if it has not.
    streams
        By name, `stdout` and `stderr`; none that is not known yet, or does not exist.
    """

    job: str
    state: JobState
    attempt: int = 0
    node: str = ""
    exit_code: int = 0
    signal: int = 0
    streams: Mapping[str, Place] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """What a process that stands for the job exits with: 128 and the number of the signal, or the job's code."""
        return min(_SIGNAL_BASE + self.signal if self.signal else self.exit_code, _MAX_CODE)


def text(job: Job) -> str:
    """Write a job for its followers."""
    streams = {
        name: {"file": place.file} if place.file else {"url": place.url, "token": place.token}
        for name, place in sorted(job.streams.items())
    }
    body = {
        "job": job.job,
        "state": job.state.value,
        "attempt": job.attempt,
        "node": job.node,
        "exitCode": job.exit_code,
        "signal": job.signal,
        "streams": streams,
    }
    return json.dumps(body, separators=(",", ":"))


def read(path: Path) -> Job:
    """Read what the operator has written.

    Raises
    ------
    InvalidJobFile
        It is not there, or something else.
    """
    try:
        with path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidJobFile(f"{path}: {error.strerror}") from error
    return parse(content, str(path))


def parse(content: bytes, name: str) -> Job:
    """Understand what the operator has written.

    Parameters
    ----------
    content
        Of the file.
    name
        Of the file, for messages.

    Raises
    ------
    InvalidJobFile
        It is something else.
    """
    if len(content) > MAX_BYTES:
        raise InvalidJobFile(f"{name} has more than {MAX_BYTES} bytes")
    try:
        return _job(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidJobFile(f"{name} is not a job: {type(error).__name__} {error}") from error


def _job(body: Mapping[str, Any]) -> Job:
    streams = {
        str(name): Place(str(one.get("url", "")), str(one.get("token", "")), str(one.get("file", "")))
        for name, one in body["streams"].items()
    }
    return Job(
        str(body["job"]),
        JobState(body["state"]),
        _number(body, "attempt", 2**31),
        str(body["node"]),
        _number(body, "exitCode", _MAX_CODE),
        _number(body, "signal", _MAX_SIGNAL),
        streams,
    )


def _number(body: Mapping[str, Any], name: str, most: int) -> int:
    value = body[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{name} must be a number from 0 to {most}")
    return value
