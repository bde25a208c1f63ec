"""What a pass can do. Data only: `plan` makes them, `executor` carries them out in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from slinky_operator.cluster.components.preflight_pod import Preflight
from slinky_operator.cluster.memory import Held, LeftOut, Loaded, Verdict
from slinky_operator.kube.events import EventType
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.reconcile.children import Child
from slinky_operator.slurm.clients import Endpoint


@dataclass(frozen=True, slots=True)
class SetFinalizer:
    """Put a finalizer on an object, or take it off."""

    resource: Resource
    obj: Object
    finalizer: str
    present: bool


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Record an Event."""

    obj: Object
    type: EventType
    reason: str
    message: str
    with_status: bool = False
    """Whether it is about what the status is to say: planned again as long as that is not written."""


@dataclass(frozen=True, slots=True)
class MakeKey:
    """Make a Secret with a random key, unless there is one of that name, or daemons that have had another."""

    body: Object
    """Without data."""

    key: str
    size: int
    """Bytes."""

    controller: str
    """Name of slurmctld's StatefulSet: where the API server shows one, the cache was late."""

    copy: str
    """Name of the Secret with the copy, of which the same is true."""


@dataclass(frozen=True, slots=True)
class PutKeyBack:
    """Make a Secret with the key that daemons run with."""

    body: Object
    """Without data."""

    key: str
    value: bytes = field(repr=False)
    replaces: str
    """Uid of the Secret that is there instead; empty if there is none."""

    tell: EmitEvent
    """Once it is there."""


@dataclass(frozen=True, slots=True)
class SealKey:
    """Make a Secret of ours immutable."""

    secret: str
    uid: str


@dataclass(frozen=True, slots=True)
class KeepKeys:
    """Write the copy of the keys."""

    body: Object = field(repr=False)


@dataclass(frozen=True, slots=True)
class ReadKeys:
    """Read Secrets again before something is done that lets daemons read them."""

    secrets: tuple[str, ...]
    purpose: str
    """Tells what they are read for."""


@dataclass(frozen=True, slots=True)
class TryKey:
    """Look whether slurmctld takes a token made with a key."""

    key: bytes = field(repr=False)
    lifetime: timedelta


@dataclass(frozen=True, slots=True)
class AdoptKey:
    """Give a Secret that a former Cluster of this name has left to this one; what is in it stays."""

    name: str
    uid: str


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

    keys: tuple[bytes, ...] = field(repr=False)
    """HS256 keys to mint tokens with, the next one wherever one is refused; none where a token is given."""

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
class AskStates:
    """Ask Slurm for the states of partitions."""

    hash: str
    """Of the configuration that is live."""


@dataclass(frozen=True, slots=True)
class StartPreflight:
    """Make the objects of a preflight; where the API server refuses its pod, ask for whose sake."""

    preflight: Preflight
    parts: Mapping[str, Object] = field(default_factory=dict)
    """The pod with one slurmd only, by `SlurmdKind.key`."""

    alone: Object | None = None
    """The pod with none."""


@dataclass(frozen=True, slots=True)
class EndPreflight:
    """Remember what a preflight has found."""

    name: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ExcludeSlurmdKinds:
    """Remember which ways to run slurmd preflights leave out, and no others."""

    left_out: Mapping[str, LeftOut]


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an object that has served."""

    resource: Resource
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class HoldBackNodeSets:
    """Remember which NodeSets' parts of the configuration stay as they were."""

    held: Mapping[str, Held]
    held_for: str


@dataclass(frozen=True, slots=True)
class AskAgent:
    """Ask which files slurmctld's pod has mounted."""

    pod: Object


@dataclass(frozen=True, slots=True)
class AskNames:
    """Ask which names of nodes have an address where slurmctld's pod runs."""

    pod: Object


@dataclass(frozen=True, slots=True)
class Reload:
    """Let slurmctld read its configuration, and look whether it has."""

    pod_uid: str
    change: str
    """Which write of the ConfigMap it is to read."""

    partitions: Mapping[str, str]
    """Each partition it must show afterwards, and what its `Nodes=` must say."""

    before: Loaded | None = None
    """How the `reconfigure` for this change stands that was sent already; only the look is missing."""


@dataclass(frozen=True, slots=True)
class AskClaim:
    """Look at the claim that a missing pod of slurmctld's would use."""

    name: str


@dataclass(frozen=True, slots=True)
class CountJobs:
    """Ask Slurm for the states of all jobs."""


@dataclass(frozen=True, slots=True)
class TearDown:
    """Remove everything of a Cluster that is being deleted, if no slurmd pod of it is left."""

    children: tuple[tuple[Resource, str, str], ...]
    """Resource, name and uid, in order."""


Action: TypeAlias = (
    SetFinalizer
    | MakeKey
    | AdoptKey
    | PutKeyBack
    | SealKey
    | KeepKeys
    | ReadKeys
    | TryKey
    | Write
    | Connect
    | Disconnect
    | Hurry
    | TouchPod
    | ReplacePod
    | AskUse
    | AskStates
    | StartPreflight
    | EndPreflight
    | ExcludeSlurmdKinds
    | Remove
    | HoldBackNodeSets
    | AskAgent
    | AskNames
    | AskClaim
    | Reload
    | CountJobs
    | TearDown
    | EmitEvent
)
