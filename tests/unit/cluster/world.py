"""An ideal world in memory: everything that a plan asks for happens at once."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.status import JobCounts
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.actions import (
    Action,
    AdoptKey,
    Ask,
    Connect,
    Disconnect,
    EmitEvent,
    EndPreflight,
    ExcludeSlurmdKinds,
    GrowClaim,
    HoldBackNodeSets,
    KeepKeys,
    KeepMonitor,
    MakeKey,
    MakePassword,
    PutKeyBack,
    ReadKeys,
    Reload,
    Remove,
    ReplacePod,
    SealKey,
    SetFinalizer,
    StartPreflight,
    TearDown,
    TouchPod,
    UseReplicas,
    UseSlurmKey,
    Write,
    asks,
)
from slinky_operator.cluster.daemons import Images, volumes
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.rollout import Loaded
from slinky_operator.cluster.memory.writes import ClaimSize
from slinky_operator.cluster.observe import ClusterPods, SlurmView, Snapshot
from slinky_operator.cluster.parts.accounting.question import AccountingAnswer, AccountingQuestion
from slinky_operator.cluster.parts.accounts import wanted
from slinky_operator.cluster.parts.accounts.comparison import Comparison, Counts
from slinky_operator.cluster.parts.accounts.question import AccountsQuestion
from slinky_operator.cluster.parts.identity.question import Directory, DirectoryQuestion
from slinky_operator.cluster.parts.job_counts.question import Jobs, JobsQuestion
from slinky_operator.cluster.parts.job_logs_key.part import JOB_LOGS_KEY
from slinky_operator.cluster.parts.keys.key_trial import KeyQuestion, KeyTrial
from slinky_operator.cluster.parts.keys.proof.answers import KeyFinding, KeyProof
from slinky_operator.cluster.parts.keys.proof.question import KeySetQuestion
from slinky_operator.cluster.parts.keys.sets import key_sets
from slinky_operator.cluster.parts.maintenance.question import ReservationsQuestion, Reserved
from slinky_operator.cluster.parts.slurmctld.claim_question import ClaimQuestion
from slinky_operator.cluster.parts.volumes.question import VolumesQuestion
from slinky_operator.cluster.plan import Environment, Plan, plan
from slinky_operator.cluster.question import A, Question
from slinky_operator.cluster.rollout.agent_questions import FilesQuestion, Mounted, Names, NamesQuestion
from slinky_operator.cluster.rollout.in_use.removals import Use
from slinky_operator.cluster.rollout.slurm_questions import PartitionStates, StatesQuestion, UseQuestion
from slinky_operator.kube.objects import Object
from slinky_operator.pod_programs.agent.files import expected
from slinky_operator.pod_programs.agent.hosts import names_in
from slinky_operator.reconcile.secrets import Source
from slinky_operator.reconcile.writes.children import quantity
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import TextSource
from slinky_operator.slurm.connection.contact import Contact, ContactState, Trouble
from slinky_operator.slurm.connection.key_proof import Holder, KeySet
from slinky_operator.slurm.pods.volume_room import Room, Volumes
from slinky_operator.slurm.releases import Release
from tests.support import conditions
from tests.support.traced_pods import traced, traced_or_none

WALL = datetime(2026, 1, 1, tzinfo=UTC)
ENVIRONMENT = Environment(
    Images(
        {
            "slurmctld": "slurmctld:1",
            "slurmrestd": "slurmrestd:1",
            "agent": "agent:1",
            "slurmd": "slurmd:1",
            "sssd": "sssd:1",
        }
    )
)
SILENT = (Disconnect,)


def cluster_object(spec: Mapping[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "slurm", "namespace": "here", "uid": "cluster-uid", "generation": 1, **metadata},
        "spec": dict(spec or {}),
    }


def node_set_object(name: str, spec: Mapping[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "NodeSet",
        "metadata": {"name": name, "namespace": "here", "uid": f"uid-of-{name}", **metadata},
        "spec": {"clusterName": "slurm", "replicas": 1, **(spec or {})},
    }


def subject(action: Action) -> Any:
    """The question that an action asks, or the action itself."""
    return action.question if isinstance(action, Ask) else action


@dataclass
class World:
    raw: dict[str, Any] = field(default_factory=cluster_object)
    node_sets: dict[str, dict[str, Any]] = field(default_factory=dict)
    children: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    secrets: dict[str, dict[str, bytes]] = field(default_factory=dict)
    meant_for: dict[str, str] = field(default_factory=dict)
    """Servers that Secrets name in their annotation."""

    owners: dict[str, str] = field(default_factory=dict)
    """Uids of the Clusters that the Secrets' labels name."""

    sealed: set[str] = field(default_factory=set)
    """Secrets that are immutable."""

    read_before: float = 0.0
    """How long ago Secrets were read."""

    accepts: bytes | None = None
    """The only key of auth/jwt that slurmctld takes; any if `None`."""

    pods: list[str] = field(default_factory=list)
    controller_pod: dict[str, Any] | None = None
    ending: dict[str, Any] | None = None
    """slurmctld's pod while it is being deleted."""

    daemon_pods: dict[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)
    """Pods of the other daemons, by component."""

    preflights: dict[str, dict[str, Any]] = field(default_factory=dict)
    refuses: Callable[[str], str] = lambda text: ""
    """What a daemon of a preflight says of a slurm.conf; empty if it takes it."""

    version: str = ""
    """What `slurmctld -V` says in a rehearsal."""

    releases: dict[str, str] = field(default_factory=dict)
    """What images say when they are asked for their release, if not their tags; empty for one without Slurm."""

    tried: list[str] = field(default_factory=list)
    """Every slurm.conf that was tried."""

    running: list[dict[str, Any]] = field(default_factory=list)
    login_pods: list[dict[str, Any]] = field(default_factory=list)
    """slurmd pods, whole."""

    use: Use = field(default_factory=lambda: Use(0.0, ""))
    states: dict[str, str] = field(default_factory=dict)
    """States of partitions that Slurm shows."""

    accounting: AccountingAnswer = AccountingAnswer(0.0, "10.0.0.1")  # noqa: RUF009 - frozen
    """What slurmdbd answers."""

    monitor: dict[str, Any] | None = None
    """The ServiceMonitor that was last written."""

    slurm: SlurmView | None = None
    memory: Memory = field(default_factory=lambda: Memory("cluster-uid"))
    now: float = 1000.0
    wall: datetime = WALL
    server: str = "http://there:6820"
    log: list[Action] = field(default_factory=list)
    torn_down: bool = False
    versions: int = 0
    offline: dict[str, int] = field(default_factory=dict)
    """Domains that SSSD cannot reach, and since when."""

    rooms: dict[str, Room] = field(
        default_factory=lambda: {name: Room(2**30, 2**29, 1000, 900) for name in volumes.NAMES}
    )
    """Of the volumes that agents look at."""

    missing: frozenset[str] = frozenset()
    """Host names that have no address."""

    texts: dict[str, TextSource] = field(default_factory=dict)
    """ConfigMaps that the spec names."""

    rigid: str = ""
    """Why the API server lets no claim grow; empty if it does."""

    capacity: str = ""
    """Size of all volumes; empty if each is as large as its claim requests."""

    written: dict[str, tuple[str, datetime | None]] = field(default_factory=dict)
    """Version of Secrets, and when that was written."""

    proves: Callable[[Holder, KeySet, float], KeyFinding] = lambda holder, keys, at: KeyFinding(at)
    """What a daemon proves about a key set."""

    reconfigured: Callable[[], None] = lambda: None
    """Called when slurmctld has read its files."""

    stale: dict[str, str] = field(default_factory=dict)
    """What the kubelet has mounted instead of what the ConfigMap holds."""

    def add(self, *node_sets: dict[str, Any]) -> None:
        for one in node_sets:
            self.node_sets[one["metadata"]["name"]] = one

    def parsed_cluster(self, obj: Object) -> Cluster:
        return Cluster.parse(obj)

    def parsed_node_set(self, obj: Object) -> NodeSet:
        return NodeSet.parse(obj)

    def traced_pod(self, pod: Object) -> Object:
        return traced(pod)

    def snapshot(self) -> Snapshot:
        names = {"slurm-auth-slurm", "slurm-auth-jwt", "slurm-auth-copy", "slurm-auth-accepted", *self.secrets}
        cluster = self.parsed_cluster(self.raw)
        names.update(JOB_LOGS_KEY.secrets(cluster, self.node_sets.values()))
        return Snapshot(
            cluster=cluster,
            raw=self.raw,
            node_sets=tuple((self.parsed_node_set(obj), obj) for _, obj in sorted(self.node_sets.items())),
            children=dict(self.children),
            pods=ClusterPods(
                slurmd_names=tuple(self.pods),
                slurmds=tuple(map(self.traced_pod, self.running)),
                controller=self.traced_pod(self.controller_pod) if self.controller_pod is not None else None,
                controller_ending=traced_or_none(self.ending),
                daemons={name: tuple(map(traced, pods)) for name, pods in self.daemon_pods.items()},
                preflights={name: traced(pod) for name, pod in self.preflights.items()},
                logins=tuple(map(traced, self.login_pods)),
            ),
            sources={
                name: Source(
                    name,
                    self.now - self.read_before,
                    exists=name in self.secrets,
                    servers=self.meant_for.get(name),
                    cluster_uid=self.owners.get(name, "") if name in self.secrets else "",
                    cluster_name="slurm" if self.owners.get(name) else "",
                    object_uid=f"uid-of-{name}" if name in self.secrets else "",
                    version=self.written.get(name, ("", None))[0],
                    written_at=self.written.get(name, ("", None))[1],
                    immutable=name in self.sealed,
                    data=dict(self.secrets.get(name, {})),
                )
                for name in names
            },
            slurm=self.slurm,
            memory=self.memory.frozen(),
            server=self.server,
            texts=dict(self.texts),
        )

    def plan(self) -> Plan:
        made = plan(self.snapshot(), ENVIRONMENT, self.now, self.wall)
        asked = [one for one in made.actions if isinstance(one, ReadKeys)]
        if not asked or self.read_before:
            return made
        # The controller looks again at once, in the same pass.
        self.happen(asked[0])
        return plan(self.snapshot(), ENVIRONMENT, self.now, self.wall)

    def step(self) -> Plan:
        """One pass: plan, and let it all happen."""
        made = self.plan()
        self.memory.keys.known, self.memory.keys.troubled = made.keys.known, made.keys.troubled
        self.memory.keys.seen = made.keys.secrets.seen or self.memory.keys.seen
        self.memory.keys.staged = made.keys.secrets.staged or self.memory.keys.staged
        for action in made.actions:
            self.log.append(action)
            self.happen(action)
        if made.status is not None:
            self.raw = {**self.raw, "status": made.status.to_dict()}
            conditions.check(self.raw["status"])
        self.now += 0.5
        return made

    def settle(self, passes: int = 30) -> list[Action]:
        """Pass after pass until one has nothing to do; returns all that was done."""
        self.log = []
        for _ in range(passes):
            before = copy.deepcopy(self.raw.get("status"))
            made = self.step()
            busy = [one for one in made.actions if not isinstance(one, SILENT) and not asks(one, JobsQuestion)]
            if not busy and before == self.raw.get("status"):
                return self.log
        raise AssertionError(f"no end after {passes} passes: {self.log[-5:]}")

    def happen(self, action: Action) -> None:  # noqa: C901, PLR0912, PLR0915
        match action:
            case SetFinalizer():
                metadata = action.obj["metadata"]
                found = [one for one in metadata.get("finalizers") or [] if one != action.finalizer]
                metadata["finalizers"] = [*found, *([action.finalizer] if action.present else [])]
                if metadata.get("deletionTimestamp") and not metadata["finalizers"]:
                    self.node_sets.pop(metadata["name"], None)
            case MakeKey():
                key = b"k" * action.size
                is_set = action.key == naming.SLURM_JWKS
                self._make(action.body, {action.key: key_sets.of_one("generated", key) if is_set else key})
            case MakePassword():
                self._make(action.body, {action.key: b"p" * 48})
            case AdoptKey():
                self.owners[action.name] = self.raw["metadata"]["uid"]
            case PutKeyBack():
                self._make(action.body, {action.key: action.value})
            case KeepKeys():
                data = {key: base64.b64decode(value) for key, value in action.body["data"].items()}
                self._make(action.body, data)
            case SealKey():
                self.sealed.add(action.secret)
            case ReadKeys():
                self.read_before, self.memory.keys.asked = 0.0, (action.purpose, self.now)
            case Write():
                self._written(action)
            case KeepMonitor():
                self.monitor = action.child.body
                self.memory.writes.monitors[action.child.name] = action.child.digest, self.now
            case Connect():
                contact = Contact(ContactState.READY, WALL, "")
                replicas = frozenset(action.replicas)
                self.slurm = SlurmView(
                    contact, action.fingerprint, {}, WALL, "26.05.5", "v0.0.45", replicas, action.slurm_key
                )
            case UseReplicas():
                assert self.slurm is not None
                self.slurm = replace(self.slurm, replicas=frozenset(action.urls))
            case UseSlurmKey():
                assert self.slurm is not None
                self.slurm = replace(self.slurm, slurm_key=action.key)
            case Disconnect():
                self.slurm = None
            case GrowClaim():
                self._grow(action)
            case TouchPod():
                self.memory.rollout.touched = action.hash, self.now
                assert self.controller_pod is not None
                annotations = self.controller_pod["metadata"].setdefault("annotations", {})
                annotations[labels.ANNOTATION_CONFIG_TOUCH] = action.value
            case ReplacePod():
                self.memory.rollout.replaced |= {(action.component, action.hash)}
            case StartPreflight():
                self._preflight(action)
            case EndPreflight():
                self.memory.rollout.judge(action.name, action.verdict)
            case ExcludeSlurmdKinds():
                self.memory.rollout.left_out = dict(action.left_out)
            case Remove():
                self.preflights.pop(action.name, None)
                self.children.pop((action.resource.kind, action.name), None)
            case HoldBackNodeSets():
                self.memory.rollout.held, self.memory.rollout.held_for = dict(action.held), action.held_for
            case Reload():
                self.memory.rollout.loaded = Loaded(
                    action.pod_uid, action.change, self.now, proven=True, since=self.now
                )
                self.reconfigured()
            case EmitEvent() if action.obj["kind"] == "NodeSet":
                self.memory.rollout.reported_nodesets |= {(action.obj["metadata"]["name"], action.message)}
            case EmitEvent():
                self.memory.last_events[action.reason] = action.message
            case TearDown():
                self.torn_down = True
            case Ask():
                self.asked(action.question)
            case _:
                pass

    def asked(self, question: Question[Any]) -> None:  # noqa: C901, PLR0912 - one each
        """Answer a question at once, as this world is."""
        match question:
            case KeyQuestion():
                before = self.memory.answers.of(KeyQuestion)
                attempts = before.attempts if before is not None and before.key == question.key else 0
                taken = self.accepts in {None, question.key}
                self.memory.answers.note(
                    KeyQuestion,
                    KeyTrial(
                        question.key, self.now, taken, attempts + 1, "" if taken else "Protocol authentication error"
                    ),
                )
            case UseQuestion():
                self.memory.answers.note(UseQuestion, replace(self.use, asked_at=self.now, hash=question.hash))
            case StatesQuestion():
                self.memory.answers.note(StatesQuestion, PartitionStates(self.now, question.hash, self.states))
            case FilesQuestion():
                files = expected(self.stale or self.children["ConfigMap", "slurm-config"]["data"])
                self.memory.answers.note(FilesQuestion, Mounted(question.pod["metadata"]["uid"], self.now, files))
            case NamesQuestion():
                self.memory.answers.note(NamesQuestion, self.names(question.pod["metadata"]["uid"]))
            case DirectoryQuestion():
                self.memory.answers.note(
                    DirectoryQuestion, Directory(question.pod["metadata"]["uid"], self.now, dict(self.offline))
                )
            case VolumesQuestion():
                rooms = {name: self.rooms[name] for name in volumes.of_pod(question.pod)}
                uid, name = question.pod["metadata"]["uid"], question.pod["metadata"]["name"]
                self.memory.answers.note(VolumesQuestion, Volumes(uid, self.now, rooms), name)
            case KeySetQuestion():
                self.memory.answers.note(KeySetQuestion, self._proven(question))
            case ReservationsQuestion():
                made = frozenset(one.name for one in question.wanted)
                self.memory.answers.note(ReservationsQuestion, Reserved(self.now, question.wanted, made))
            case AccountingQuestion():
                self.memory.answers.note(AccountingQuestion, replace(self.accounting, at=self.now))
            case AccountsQuestion():
                request = question.request
                asked = wanted.wanted(request.tree, request.cluster, request.unknown)
                sizes = len(asked.accounts), len(asked.users), len(asked.associations), len(asked.qos)
                self.memory.answers.note(
                    AccountsQuestion,
                    Comparison(
                        request.version,
                        self.now,
                        counts=Counts(*sizes),
                        problems=asked.problems,
                        settled=not asked.problems,
                    ),
                )
            case JobsQuestion():
                self.memory.answers.note(JobsQuestion, Jobs(self.now, 0.0, JobCounts()))
            case ClaimQuestion():
                # Nobody looks: each test says what the claim shows.
                return
            case _:
                raise AssertionError(f"no answer to {question}")

    def answer(self, kind: type[Question[A]], about: str = "") -> A:
        """The last answer to a question."""
        found = self.memory.answers.of(kind, about)
        assert found is not None
        return found

    def names(self, pod_uid: str) -> Names:
        """What the agent reports of the file that is mounted."""
        named = frozenset(names_in(self.slurm_conf))
        return Names(pod_uid, self.now, named - self.missing, named & self.missing)

    def trouble(self, trouble: Trouble, why: str = "because") -> None:
        assert self.slurm is not None
        contact = Contact(ContactState.UNREACHABLE, WALL, why, trouble)
        self.slurm = replace(self.slurm, contact=contact)

    def condition(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = next(one for one in self.raw["status"]["conditions"] if one["type"] == kind)
        return found

    @property
    def slurm_conf(self) -> str:
        text: str = self.children["ConfigMap", "slurm-config"]["data"]["slurm.conf"]
        return text

    def _make(self, body: dict[str, Any], data: dict[str, bytes]) -> None:
        name = body["metadata"]["name"]
        self.secrets[name], self.owners[name] = data, body["metadata"]["labels"][labels.LABEL_CLUSTER_UID]
        self.sealed.discard(name)
        if body.get("immutable"):
            self.sealed.add(name)

    def _proven(self, question: KeySetQuestion) -> KeyProof:
        before = self.memory.answers.of(KeySetQuestion)
        kept = before.found if before is not None and before.set == question.set.id else {}
        found = {**kept, **{one.id: self.proves(one, question.set, self.now) for one in question.asked}}
        rounds = before.rounds + 1 if before is not None and kept else 1
        return KeyProof(
            question.set.id, question.since, self.now, rounds, {one: found[one] for one in question.all & {*found}}
        )

    def _grow(self, action: GrowClaim) -> None:
        """Look at a claim; it grows unless the world is `rigid`."""
        before = self.memory.writes.claims.get(action.name)
        has, grown = (before.size, before.grown) if before is not None else (self._first_size(action.name), "")
        why = ""
        if (quantity(action.size) or 0) > (quantity(has) or 0):
            has, grown, why = (has, grown, self.rigid) if self.rigid else (action.size, action.size, "")
        capacity = self.capacity or has
        self.memory.writes.claims[action.name] = ClaimSize(action.size, has, self.now, capacity, grown, why=why)

    def _first_size(self, claim: str) -> str:
        """The size that a claim is made with."""
        for (kind, name), obj in self.children.items():
            for template in obj["spec"].get("volumeClaimTemplates") or () if kind == "StatefulSet" else ():
                if claim == f"{template['metadata']['name']}-{name}-0":
                    return str(template["spec"]["resources"]["requests"]["storage"])
        return ""

    def _preflight(self, action: StartPreflight) -> None:
        name = action.preflight.name
        about = action.preflight.pod.body["metadata"]["annotations"]["kubernetes.io/description"]
        assert "in this pod, beside the running daemons" in about, "the pod of a trial must say what it is"
        if action.preflight.config_map is None:
            self._asked(action.preflight.pod.body, name)
            return
        config_map = copy.deepcopy(action.preflight.config_map.body)
        config_map["metadata"]["uid"] = f"uid-of-{name}"
        self.children["ConfigMap", name] = config_map
        text = config_map["data"]["slurm.conf"]
        self.tried.append(text)
        words = self.refuses(text)
        ended = {"exitCode": 1 if words else 0, "message": f"slurmctld: fatal: {words}" if words else self.version}
        pod = copy.deepcopy(action.preflight.pod.body)
        pod["metadata"] |= {"uid": f"uid-of-{name}", "creationTimestamp": WALL.isoformat()}
        pod["status"] = {
            "phase": "Failed" if words else "Succeeded",
            "containerStatuses": [{"name": "slurmctld", "state": {"terminated": ended}}],
        }
        self.preflights[name] = pod

    def _asked(self, body: Mapping[str, Any], name: str) -> None:
        """Let images say their releases: their tags, unless another is known."""
        pod = copy.deepcopy(dict(body))
        pod["metadata"] |= {"uid": f"uid-of-{name}", "creationTimestamp": WALL.isoformat()}
        ends = []
        for one in pod["spec"]["containers"]:
            tagged = str(Release.of_image(one["image"]) or (self.slurm.slurm_version if self.slurm else "24.11.5"))
            release = self.releases.get(one["image"], tagged)
            said = {"message": f"slurm-wlm {release}"} if release else {"exitCode": 127, "message": "not found"}
            ends.append({"name": one["name"], "state": {"terminated": {"exitCode": 0, **said}}})
        pod["status"] = {"phase": "Succeeded", "containerStatuses": ends}
        self.preflights[name] = pod

    def _written(self, action: Write) -> None:
        body = {"kind": action.child.resource.kind, **copy.deepcopy(action.child.body)}
        self.versions += 1
        body["metadata"] |= {"uid": f"uid-of-{action.child.name}", "resourceVersion": str(self.versions)}
        self.children[action.child.key] = body
        if action.child.key == ("StatefulSet", "slurm-controller") and self.controller_pod is None:
            notes = dict(body["spec"]["template"]["metadata"].get("annotations") or {})
            self.controller_pod = {
                "metadata": {"name": f"{action.child.name}-0", "namespace": "here", "uid": "pod-uid"}
                | ({"annotations": notes} if notes else {}),
                "status": {"podIP": "10.0.0.1"},
            }
