"""Whether a Cluster's Slurm can be asked, why not, and where it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from slurm_client import errors

LONGEST_PAUSE: Final = 5.0
"""Seconds between questions to a Slurm that does not answer, at most, unless its `Endpoint` says otherwise."""


class ContactState(StrEnum):
    """Whether a Slurm can be asked."""

    CONNECTING = "Connecting"
    READY = "Ready"
    UNREACHABLE = "Unreachable"


class Trouble(StrEnum):
    """What kind of trouble there is with a Slurm that cannot be asked."""

    NONE = ""
    NO_ANSWER = "NoAnswer"
    """No server answers at slurmrestd's address."""
    CONTROLLER_DOWN = "ControllerDown"
    """slurmrestd answers, slurmctld does not."""
    UNAUTHORIZED = "Unauthorized"
    """The token is refused."""
    UNSUPPORTED = "Unsupported"
    """None of the data parsers is one we know."""
    OTHER = "Other"


@dataclass(frozen=True, slots=True)
class Contact:
    """The state of contact with one Slurm."""

    state: ContactState
    since: datetime
    """When it came into this state."""

    why: str
    """In Slurm's own words where it is not ready; else empty."""

    trouble: Trouble = Trouble.NONE


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a Slurm is, and how long it may take."""

    url: str
    ca_pem: str | None = None
    timeout: float = 30.0
    """Seconds for one call."""

    poll_interval: float = 1.0
    """Seconds between questions for changed nodes while they are cheap."""

    poll_interval_max: float = 30.0
    """Seconds between them at most."""

    longest_pause: float = LONGEST_PAUSE
    """Seconds between two questions while it does not answer, at most."""


def trouble_of(error: Exception) -> Trouble:
    """The kind of trouble that an error is."""
    match error:
        case errors.ControllerDown():
            return Trouble.CONTROLLER_DOWN
        case errors.Unreachable():
            return Trouble.NO_ANSWER
        case errors.Unauthorized():
            return Trouble.UNAUTHORIZED
        case errors.NotSupported():
            return Trouble.UNSUPPORTED
        case _:
            return Trouble.OTHER
