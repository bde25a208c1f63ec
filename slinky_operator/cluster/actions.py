"""The actions of a plan. Data only: `plan` creates them, `executor` carries them out in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

from slinky_operator.cluster.memory.rollout import Held, LeftOut, Loaded, Verdict
from slinky_operator.cluster.question import Question
from slinky_operator.kube.events import EventType
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm.connection.contact import Endpoint
from slinky_operator.slurm.connection.signed_messages import SharedKey
from slinky_operator.slurm.pods.volume_room import Volumes
from slinky_operator.slurm.tokens.signing_keys import SigningKey


@dataclass(frozen=True, slots=True)
class SetFinalizer:
    """Add a finalizer to an object, or remove it."""

    resource: Resource
    obj: Object
    finalizer: str
    present: bool


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a question of a part, and remember the answer."""

    question: Question[Any]


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Emit an Event."""

    obj: Object
    type: EventType
    reason: str
    message: str
    with_status: bool = False
    """Whether it is about the new status: planned again until that is written."""


@dataclass(frozen=True, slots=True)
class MakeKey:
    """Create a Secret with a random key, unless one of that name exists, or daemons that have had another key.

    As `slurm.jwks` it is a key set with one.
    """

    body: Object
    """Without data."""

    key: str
    size: int
    """Bytes of the key."""

    controller: str
    """Name of slurmctld's StatefulSet: if the API server shows one, the cache was outdated."""

    copy: str
    """Name of the Secret with the copy, to which the same applies."""


@dataclass(frozen=True, slots=True)
class MakePassword:
    """Create a Secret with a random password, unless one of that name exists."""

    body: Object
    """Without data."""

    key: str


@dataclass(frozen=True, slots=True)
class PutKeyBack:
    """Create a Secret with the key that daemons run with."""

    body: Object
    """Without data."""

    key: str
    value: bytes = field(repr=False)
    replaces: str
    """Uid of the existing Secret to replace; empty if there is none."""

    tell: EmitEvent
    """Emitted once the Secret exists."""


@dataclass(frozen=True, slots=True)
class SealKey:
    """Make a Secret of the operator immutable."""

    secret: str
    uid: str


@dataclass(frozen=True, slots=True)
class KeepKeys:
    """Write the copy of the keys."""

    body: Object = field(repr=False)


@dataclass(frozen=True, slots=True)
class ReadKeys:
    """Read Secrets again before an action that lets daemons read them."""

    secrets: tuple[str, ...]
    purpose: str
    """Identifies what they are read for."""


@dataclass(frozen=True, slots=True)
class AdoptKey:
    """Assign a Secret that a former Cluster of this name has left to this one; its data stay unchanged."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Write:
    """Write an object of the operator."""

    child: Child
    live: Object | None
    """As the cache shows it."""


@dataclass(frozen=True, slots=True)
class KeepMonitor:
    """Read the ServiceMonitor, and write it if it is not as wanted."""

    child: Child


@dataclass(frozen=True, slots=True)
class Connect:
    """Ensure an entry in the client map with these settings."""

    endpoint: Endpoint
    fingerprint: str
    token: str = field(repr=False)
    """A token to send as it is; empty if tokens are generated."""

    keys: tuple[SigningKey, ...] = field(repr=False)
    """Keys to sign tokens with, the next one whenever one is rejected; none if a token is given."""

    lifetime: timedelta
    replicas: tuple[str, ...] = ()
    """URLs of the slurmrestds behind the endpoint's URL."""

    slurm_key: SharedKey | None = None
    """The key of auth/slurm that questions to slurmds are signed with."""


@dataclass(frozen=True, slots=True)
class UseReplicas:
    """Send the calls of the connection to these slurmrestds, or to the endpoint's URL if there are none."""

    urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UseSlurmKey:
    """Sign questions to slurmds with this key of auth/slurm, or ask none."""

    key: SharedKey | None


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Remove the entry from the client map."""


@dataclass(frozen=True, slots=True)
class Hurry:
    """Query Slurm now: something about slurmrestd has changed."""


@dataclass(frozen=True, slots=True)
class TouchPod:
    """Change an annotation of slurmctld's pod, so that the kubelet refreshes its volumes at once."""

    pod: Object
    hash: str
    """Of the configuration that it must mount."""

    value: str


@dataclass(frozen=True, slots=True)
class ReplacePod:
    """Delete a daemon's pod in a long back-off, since the cause of its failure has been corrected."""

    pod: Object
    component: str
    hash: str
    """Of the configuration it finds now."""


@dataclass(frozen=True, slots=True)
class TrialObjects:
    """A disposable pod, and what its daemons read."""

    pod: Child
    config_map: Child | None = None
    """`None` if they read nothing."""

    node: str = ""
    """The only Node it may run on; empty for any."""

    @property
    def name(self) -> str:
        """Name of both objects."""
        return self.pod.name


@dataclass(frozen=True, slots=True)
class StartPreflight:
    """Create the objects of a trial; if the API server rejects its pod, find out which part is the cause."""

    preflight: TrialObjects
    parts: Mapping[str, Object] = field(default_factory=dict)
    """The pod with one slurmd only, by `SlurmdKind.key`."""

    alone: Object | None = None
    """The pod without any slurmd."""


@dataclass(frozen=True, slots=True)
class EndPreflight:
    """Record the outcome of a trial."""

    name: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ExcludeSlurmdKinds:
    """Record the complete set of slurmd kinds that preflights leave out."""

    left_out: Mapping[str, LeftOut]


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an object that is no longer needed."""

    resource: Resource
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class HoldBackNodeSets:
    """Record which NodeSets' parts of the configuration stay unchanged."""

    held: Mapping[str, Held]
    held_for: str


@dataclass(frozen=True, slots=True)
class Reload:
    """Let slurmctld read its configuration, and check whether it has."""

    pod_uid: str
    change: str
    """Which write of the ConfigMap it is to read."""

    partitions: Mapping[str, str]
    """Each partition that it must show afterwards, and its `Nodes=`: NodeSets and names of nodes."""

    before: Loaded | None = None
    """The state of the `reconfigure` already sent for this change; only the check is missing."""

    node_sets: frozenset[str] = frozenset({"ALL"})
    """The NodeSets of the file, and ``ALL``: of `Nodes=` slurmctld shows these by themselves."""

    room: Question[Volumes] | None = None
    """Asked right before: how much room the volume of its state has, where an agent looks at it."""


@dataclass(frozen=True, slots=True)
class GrowClaim:
    """Look at a claim, and make it as large as the spec says if it is smaller."""

    name: str
    size: str
    """A quantity of bytes."""

    labels: Mapping[str, str]
    """Of the daemon whose claim it must be."""


@dataclass(frozen=True, slots=True)
class TearDown:
    """Remove everything of a Cluster that is being deleted, if no slurmd pod of it is left."""

    children: tuple[tuple[Resource, str, str], ...]
    """Resource, name and uid, in order."""

    claims: tuple[tuple[str, Mapping[str, str]], ...] = ()
    """Names of claims to delete, and labels that they must have."""


Action: TypeAlias = (
    SetFinalizer
    | Ask
    | MakeKey
    | MakePassword
    | AdoptKey
    | PutKeyBack
    | SealKey
    | KeepKeys
    | ReadKeys
    | Write
    | KeepMonitor
    | Connect
    | UseReplicas
    | UseSlurmKey
    | Disconnect
    | Hurry
    | TouchPod
    | ReplacePod
    | StartPreflight
    | EndPreflight
    | ExcludeSlurmdKinds
    | Remove
    | HoldBackNodeSets
    | GrowClaim
    | Reload
    | TearDown
    | EmitEvent
)


def asks(action: Action, question: type[Question[Any]]) -> bool:
    """Whether an action asks a question of this type."""
    return isinstance(action, Ask) and isinstance(action.question, question)
