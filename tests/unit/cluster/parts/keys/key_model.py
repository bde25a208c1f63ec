"""A small model of daemons, kubelets and a user who rotates a key set, around the real rules about keys.

What it rests on is measured (`tests/integration/slurm_conf`): a daemon reads what its kubelet has mounted, when it
starts or is reconfigured; slurmctld signs the reconfigure of its slurmds with its own new default, and a slurmd without
that key does not hear it.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Self

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.actions import Action, Ask, KeepKeys, ReadKeys, Reload, Remove, TouchPod
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.keys import lifecycle
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.cluster.parts.keys.key_guard import guarded
from slinky_operator.cluster.parts.keys.proof.answers import KeyFinding, finding
from slinky_operator.cluster.parts.keys.sets import key_sets
from slinky_operator.cluster.parts.keys.step import load_key_set
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.connection.key_proof import Answer, Holder, KeySet, Verdict
from tests.support.made_once import once_for_each_content
from tests.support.traced_pods import traced
from tests.unit.cluster.world import ENVIRONMENT, WALL, World, cluster_object, node_set_object

COPY, STAGED, MINE, OURS = "slurm-auth-copy", "slurm-auth-accepted", "mine", "slurm-auth-slurm"
EXPIRES = timedelta(hours=1)
SLURMDS = ("compute-0", "compute-1")
CONTROLLER = "slurmctld"


def key_set(*names: str) -> bytes:
    """A set of keys by name: the default in upper case; with a minus it expires in an hour."""
    keys = []
    for name in names:
        kid = name.lower().rstrip("-")
        one = {"kty": "oct", "alg": "HS256", "kid": kid, "k": base64.b64encode(kid.encode() * 32).decode()}
        one |= {"use": "default"} if name.rstrip("-").isupper() else {}
        keys.append(one | ({"exp": int((WALL + EXPIRES).timestamp())} if name.endswith("-") else {}))
    return json.dumps({"keys": keys}).encode()


_read: Final = lru_cache(maxsize=64)(key_sets.read)
"""What daemons read: all of them the same set, most of the time."""

_OLD: Final = 2000.0
"""Seconds after which an age makes no difference."""


def _aged(value: Any, now: float, wall: datetime) -> Any:
    """The same with ages in the place of moments."""
    if isinstance(value, float):
        return round(min(now - value, _OLD), 1)
    if isinstance(value, datetime):
        return min((wall - value).total_seconds(), _OLD)
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(_aged(getattr(value, one.name), now, wall) for one in fields(value))]
    if isinstance(value, Mapping):
        return sorted((str(key), _aged(one, now, wall)) for key, one in value.items())
    if isinstance(value, list | tuple | frozenset):
        return [_aged(one, now, wall) for one in value]
    return value


def pod(name: str, ip: str, mounts: str = MINE) -> dict[str, Any]:
    about = {"name": name, "namespace": "here", "uid": f"uid-of-{name}"}
    volumes = [{"name": "slurm-key", "secret": {"secretName": mounts}}]
    spec = {"nodeName": "here", "volumes": volumes}
    return {"metadata": about, "spec": spec, "status": {"phase": "Running", "podIP": ip}}


GIVEN: Final = {"auth": {"slurmKeyRef": {"name": MINE, "key": "slurm.jwks"}}}


_cluster: Final = once_for_each_content(Cluster.parse)
_node_set: Final = once_for_each_content(NodeSet.parse)
_traced: Final = once_for_each_content(traced)


class KeyWorld(World):
    """A world of which walks take thousands of snapshots, in which next to nothing changes."""

    @override
    def parsed_cluster(self, obj: Object) -> Cluster:
        return _cluster(obj)

    @override
    def parsed_node_set(self, obj: Object) -> NodeSet:
        return _node_set(obj)

    @override
    def traced_pod(self, pod: Object) -> Object:
        return _traced(pod)


def _settled(mounts: str, *, generated: bool = False) -> KeyWorld:
    secret = OURS if generated else MINE
    world = KeyWorld(cluster_object({} if generated else GIVEN), secrets={secret: {"slurm.jwks": key_set("A")}})
    if generated:
        world.owners[OURS] = "cluster-uid"
    world.written[secret] = "1", WALL - timedelta(days=1)
    world.add(node_set_object("compute"))
    world.settle()
    assert world.controller_pod is not None
    world.controller_pod["metadata"]["creationTimestamp"] = (WALL - timedelta(hours=12)).isoformat()
    world.controller_pod["spec"] = {
        "volumes": [{"name": "keys", "projected": {"sources": [{"secret": {"name": mounts}}]}}]
    }
    world.written[STAGED] = "1", WALL - timedelta(days=1)
    world.pods = list(SLURMDS)
    world.running = [pod(name, f"10.0.1.{index}", mounts) for index, name in enumerate(SLURMDS)]
    return world


_BASES = {STAGED: _settled(STAGED), MINE: _settled(MINE), OURS: _settled(STAGED, generated=True)}


@dataclass
class Model:
    """A Cluster with a key set, its daemons and kubelets."""

    mounts: str = STAGED
    """The Secret that pods mount: an earlier operator has made those that mount the user's.

    With `OURS` the set is generated, pods mount the staged one, and the user names a Secret with the first step.
    """

    world: KeyWorld = field(default_factory=KeyWorld)
    mounted: dict[str, bytes] = field(default_factory=dict)
    loaded: dict[str, bytes] = field(default_factory=dict)
    refresh: dict[str, float] = field(default_factory=dict)
    """When a kubelet mounts what the Secret holds."""

    away: set[str] = field(default_factory=set)
    """Daemons that neither answer nor hear of a reconfigure."""

    wants_reload: bool = False
    """Whether a configuration waits to be loaded."""

    refused_text: bool = False
    """Whether the Cluster's next configuration is refused: what is mounted stays the last good one."""

    late: float = 100.0
    """Seconds until a kubelet mounts a changed Secret."""

    loses: str = ""
    """Which action is lost: its effect, or what is remembered of it."""

    reloads: int = 0
    replaced_pods: list[str] = field(default_factory=list)

    version: int = 1
    keys: Keys = field(default_factory=Keys)
    separated: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = copy.deepcopy(_BASES[self.mounts])
        self.mounts = STAGED if self.mounts == OURS else self.mounts
        first = self.accepted
        for name in (CONTROLLER, *SLURMDS):
            self.mounted[name] = self.loaded[name] = first

    @property
    def accepted(self) -> bytes:
        return self.world.secrets[COPY]["slurm.key"]

    @property
    def offered(self) -> bytes:
        """What kubelets mount next."""
        return self.world.secrets[self.mounts]["slurm.jwks"]

    @property
    def is_done(self) -> bool:
        step = self.keys.standing
        return self.keys.held is None and step is not None and not step.lacking

    def fork(self) -> Self:
        """Another one that goes on from here; what a walk never changes is shared."""
        other = copy.copy(self)
        world = copy.copy(self.world)
        other.world = world
        world.memory = self.world.memory.frozen()
        for name in ("secrets", "owners", "written", "children"):
            setattr(world, name, dict(getattr(self.world, name)))
        world.log = []
        for name in ("mounted", "loaded", "refresh"):
            setattr(other, name, dict(getattr(self, name)))
        other.away, other.replaced_pods, other.separated = {*self.away}, [*self.replaced_pods], [*self.separated]
        return other

    def fingerprint(self) -> str:
        """Tells apart what may go on differently: all that is known, with ages instead of times."""
        world, memory, now, wall = self.world, self.world.memory, self.world.now, self.world.wall
        told: dict[str, Any] = {
            **{name: getattr(memory.keys, name) for name in ("known", "asked", "seen", "staged")},
            "loaded": memory.rollout.loaded,
            "touched": memory.rollout.touched,
            "denied": memory.writes.denied,
        }
        for name, secret in (("seen", MINE), ("staged", STAGED)):
            if told[name] is not None:
                is_current = told[name].version == world.written.get(secret, ("",))[0]
                told[name] = replace(told[name], version=str(is_current))
        versions = {name: (wall - at) // timedelta(seconds=1) for name, (_, at) in world.written.items() if at}
        parts = (
            [sorted(one.items()) for one in (self.mounted, self.loaded, versions)],
            sorted((name, round(at - now, 1)) for name, at in self.refresh.items()),
            sorted(self.away),
            (self.wants_reload, self.refused_text, self.loses),
            sorted((name, sorted(data.items())) for name, data in world.secrets.items()),
            _aged(told, now, wall),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    # What the user, the kubelets and the daemons do

    def write(self, *names: str) -> None:
        self._give(MINE, key_set(*names))
        self.world.raw = {**self.world.raw, "spec": {**self.world.raw["spec"], **GIVEN}}
        self.passes(1.0)

    def put_back(self) -> None:
        self._give(MINE, self.accepted)
        self.world.raw = {**self.world.raw, "spec": {**self.world.raw["spec"], **GIVEN}}
        self.passes(1.0)

    def tamper(self) -> None:
        """Somebody writes into the operator's own Secret."""
        self._give(STAGED, key_set("a", "C"))
        self.passes(1.0)

    def _give(self, secret: str, text: bytes) -> None:
        """Write a Secret; kubelets that have begun to wait go on, and mount what there is by then."""
        self.version += 1
        self.world.secrets[secret] = {"slurm.jwks": text}
        self.world.written[secret] = str(self.version), self.world.wall
        if secret == self.mounts:
            for index, name in enumerate(self.mounted):
                self.refresh.setdefault(name, self.world.now + self.late * (index + 1) / len(self.mounted))

    def start(self, name: str) -> None:
        """A daemon starts, in another pod or as its kubelet starts its container again, with what there is now."""
        self.loaded[name] = self.mounted[name] = self.offered
        self.refresh.pop(name, None)
        self.passes(1.0)

    def kill(self) -> None:
        """Another operator, which remembers nothing; it reads Secrets once."""
        self.world.memory = Memory("cluster-uid")
        self.passes(1.0)

    def passes(self, *seconds: float) -> None:
        """Let time pass, and the operator look after each span."""
        for one in seconds:
            self.world.now += one
            self.world.wall += timedelta(seconds=one)
            for name, at in list(self.refresh.items()):
                if at <= self.world.now:
                    self.mounted[name] = self.offered
                    del self.refresh[name]
            self._pass()
            self._check()

    def wait(self) -> None:
        """Longer than kubelets need, with passes as often as they matter."""
        self.passes(1, 30, 30, 30, 30, 3, 3, 3, 6, 6)

    # The operator

    def _pass(self) -> None:
        for _ in range(4):
            snapshot = self.world.snapshot()
            snapshot = replace(snapshot, memory=self.world.memory.frozen())
            actions = self._plan(snapshot)
            self.world.memory.keys.known = self.keys.known
            self.world.memory.keys.seen = self.keys.secrets.seen or self.world.memory.keys.seen
            self.world.memory.keys.staged = self.keys.secrets.staged or self.world.memory.keys.staged
            again = False
            for action in actions:
                self._happen(action)
                again = again or isinstance(action, (ReadKeys, KeepKeys, Ask, TouchPod))
            if not again:
                return

    def _plan(self, snapshot: Snapshot) -> list[Action]:
        now, wall = self.world.now, self.world.wall
        self.keys = lifecycle.look(snapshot, now, wall)
        state = PassState(snapshot, ENVIRONMENT.images, now, wall)
        state.note(self.keys)
        actions = [*self.keys.actions, *load_key_set(state)]
        if self.wants_reload and not self.refused_text:
            actions.append(Reload("pod-uid", "a change", {}))
        return guarded(actions, snapshot, self.keys, now)

    def _happen(self, action: Action) -> None:
        name = type(action.question if isinstance(action, Ask) else action).__name__
        if isinstance(action, Reload):
            self._reconfigure()
            self.wants_reload = self.wants_reload and action.change != "a change"
        elif isinstance(action, Remove):
            self.replaced_pods.append(action.name)
            if action.name != "slurm-controller-0":
                return
            self.loaded[CONTROLLER] = self.mounted[CONTROLLER] = self.offered
            return
        elif isinstance(action, TouchPod):
            self.mounted[CONTROLLER] = self.offered
            self.refresh.pop(CONTROLLER, None)
        elif isinstance(action, KeepKeys) and action.body["metadata"]["name"] == STAGED:
            if self.loses == "stage":
                self.loses, self.world.memory = "", Memory("cluster-uid")
                return
            self._give(STAGED, base64.b64decode(action.body["data"]["slurm.jwks"]))
        if name == self.loses:
            # It is done, and the operator ends before it can remember that; or it is not done at all.
            self.loses = ""
            self.world.memory = Memory("cluster-uid")
            return
        self.world.proves = self._proves
        self.world.happen(action)

    def _reconfigure(self) -> None:
        self.reloads += 1
        self.loaded[CONTROLLER] = self.mounted[CONTROLLER]
        for name in SLURMDS:
            if name not in self.away and self._hears(CONTROLLER, name):
                self.loaded[name] = self.mounted[name]

    def _hears(self, sender: str, receiver: str) -> bool:
        """Whether a daemon takes what another one signs."""
        signs = _read(self.loaded[sender], self.world.wall)
        takes = _read(self.loaded[receiver], self.world.wall)
        assert signs is not None
        assert takes is not None
        return signs.default in {one.kid for one in takes.live}

    def _proves(self, holder: Holder, asked: KeySet, at: float) -> KeyFinding:
        name = holder.name.removeprefix("slurmd of ")
        if name in self.away:
            unknown = Answer(Verdict.UNKNOWN, why="no answer within 3 s")
            return finding(asked, {one.kid: unknown for one in (*asked.live, *asked.expired)}, at)
        has = _read(self.loaded[name], self.world.wall)
        assert has is not None
        shows = has.default if name in SLURMDS else ""
        taken = {one.kid for one in has.live}
        answers = {
            one.kid: Answer(Verdict.ACCEPTED, shows) if one.kid in taken else Answer(Verdict.REFUSED)
            for one in (*asked.live, *asked.expired)
        }
        return finding(asked, answers, at)

    def _check(self) -> None:
        """No slurmd may be separated from slurmctld, in either direction."""
        for name in SLURMDS:
            if name in self.away:
                continue
            if not (self._hears(CONTROLLER, name) and self._hears(name, CONTROLLER)):
                self.separated.append(f"{name} at {self.world.now:g}")
