"""What a pass can do. Data only: `plan` makes them, `act` carries them out in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from slinky_operator.cluster.children import Child
from slinky_operator.cluster.daemons.preflight import Preflight
from slinky_operator.cluster.memory import Held, Verdict
from slinky_operator.kube.events import EventType
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.slurm.clients import Endpoint


@dataclass(frozen=True, slots=True)
class SetFinalizer:
    """Put a finalizer on an object, or take it off."""

    resource: Resource
    obj: Object
    finalizer: str
    present: bool


@dataclass(frozen=True, slots=True)
class MakeKey:
    """Make a Secret with a random key, unless there is one of that name."""

    body: Object
    """Without data."""

    key: str
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Write:
    """Bring an object of ours to what it is to be."""

    child: Child
    live: Object | None
    """As the cache shows it."""


@dataclass(frozen=True, slots=True)
class Connect:
    """Have an entry in the client map that is made of this."""

    endpoint: Endpoint
    fingerprint: str
    token: str = field(repr=False)
    """A token as it is; empty where tokens are minted."""

    key: bytes = field(repr=False)
    """HS256 key to mint tokens with; empty where a token is given."""

    lifetime: timedelta


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Have no entry in the client map."""


@dataclass(frozen=True, slots=True)
class Hurry:
    """Ask Slurm now: something about slurmrestd has changed."""


@dataclass(frozen=True, slots=True)
class TouchPod:
    """Change an annotation of slurmctld's pod, so that the kubelet refreshes its volumes at once."""

    pod: Object
    hash: str
    """Of the configuration that it is to see."""

    value: str


@dataclass(frozen=True, slots=True)
class ReplacePod:
    """Delete a daemon's pod that waits in ever longer pauses, since what it failed on has been mended."""

    pod: Object
    component: str
    hash: str
    """Of the configuration it finds now."""


@dataclass(frozen=True, slots=True)
class AskUse:
    """Ask Slurm which jobs and reservations there are, and what they use."""

    hash: str
    """Of the configuration that is live."""


@dataclass(frozen=True, slots=True)
class StartPreflight:
    """Make the objects of a preflight."""

    preflight: Preflight


@dataclass(frozen=True, slots=True)
class EndPreflight:
    """Remember what a preflight has found."""

    name: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """Remember images of which no slurmd came in a preflight."""

    images: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an object that has served."""

    resource: Resource
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Remember which NodeSets' parts of the configuration stay as they were."""

    held: Mapping[str, Held]
    held_for: str


@dataclass(frozen=True, slots=True)
class AskAgent:
    """Ask which files slurmctld's pod has mounted."""

    pod: Object


@dataclass(frozen=True, slots=True)
class Reload:
    """Let slurmctld read its configuration, and look whether it has."""

    pod_uid: str
    change: str
    """Which write of the ConfigMap it is to read."""

    partitions: Mapping[str, str]
    """Each partition it must show afterwards, and what its `Nodes=` must say."""

    since: int | None = None
    """Slurm's time right before a `reconfigure` that it has answered already; only the look is missing."""


@dataclass(frozen=True, slots=True)
class CountJobs:
    """Ask Slurm for the states of all jobs."""


@dataclass(frozen=True, slots=True)
class TearDown:
    """Remove everything of a Cluster that is being deleted, if no slurmd pod of it is left."""

    children: tuple[tuple[Resource, str, str], ...]
    """Resource, name and uid, in order."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Record an Event."""

    obj: Object
    type: EventType
    reason: str
    message: str


Action: TypeAlias = (
    SetFinalizer
    | MakeKey
    | Write
    | Connect
    | Disconnect
    | Hurry
    | TouchPod
    | ReplacePod
    | AskUse
    | StartPreflight
    | EndPreflight
    | LeaveOut
    | Remove
    | Hold
    | AskAgent
    | Reload
    | CountJobs
    | TearDown
    | Tell
)
