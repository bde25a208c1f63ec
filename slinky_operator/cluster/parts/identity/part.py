"""The part about users: keeps the texts that daemons mount, and shows where users come from. Pure.

Only slurmctld looks up users, so what SSSD beside it says is shown. SSSD goes on without its directory, and so does
Slurm: that makes no Cluster unready or degraded. SSSD learns that a directory is away when it asks it, and that it is
back by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import Action, Ask, Remove
from slinky_operator.cluster.daemons import metadata
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import Part, Problem, Shown
from slinky_operator.cluster.parts.identity.question import DirectoryQuestion
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.writes.due import writes
from slinky_operator.identity import pod as identity
from slinky_operator.identity import users
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.reconcile.text import named, stamp
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming

Word = Literal["True", "False", "Unknown"]

REACHED: Final = "SSSD beside slurmctld reaches the directory, as far as it has asked"

GOES_ON: Final = "Users that SSSD knows stay known, others are not found; running jobs go on"


@dataclass(frozen=True, slots=True)
class UserSource:
    """What is known of the source of users."""

    trouble: users.IdentityTrouble | None = None
    """What is wrong with it: daemons start and run without."""


def of_directory(snapshot: Snapshot) -> tuple[Word, Reason, str] | None:
    """Status, reason and message of `DirectoryReachable`; `None` for a Cluster without SSSD."""
    cluster, pod = snapshot.cluster, snapshot.pods.controller
    if cluster.spec.external or not identity.has_sssd(cluster):
        return None
    answer = snapshot.memory.answers.of(DirectoryQuestion)
    if answer is None or pod is None or answer.pod_uid != pod["metadata"]["uid"]:
        known = find(cluster.status.conditions, ClusterCondition.DIRECTORY_REACHABLE)
        if known is not None and answer is None and known.status != "Unknown":
            # An operator that has just started knows nothing yet.
            return known.status, Reason(known.reason), known.message
        return "Unknown", Reason.CONNECTING, "SSSD beside slurmctld has not been asked yet"
    if answer.offline is None:
        return "Unknown", Reason.CONNECTING, answer.why
    if not answer.offline:
        return "True", Reason.AS_EXPECTED, REACHED
    domains = named([f"{name} (since {_time(since)})" for name, since in sorted(answer.offline.items())])
    log = f"kubectl -n {cluster.namespace} logs {pod['metadata']['name']} -c {identity.SSSD}"
    words = f"SSSD beside slurmctld: Backend is offline, domain {domains}. {GOES_ON}. The cause is in its log: {log}"
    return "False", Reason.DIRECTORY_AWAY, words


def _time(seconds: int) -> str:
    return stamp(datetime.fromtimestamp(seconds, UTC))


class IdentityPart(Part):
    """The users whom daemons resolve, and their directory."""

    name = "identity"
    condition = ClusterCondition.DIRECTORY_REACHABLE

    @override
    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterable[str]:
        return () if cluster.spec.external else users.secrets(cluster.spec.identity)

    @override
    def shown(self, state: PassState) -> Shown | None:
        return of_directory(state.snapshot)

    @override
    def problems(self, state: PassState) -> Iterator[Problem]:
        trouble = state.found(UserSource).trouble
        if trouble is not None:
            yield Problem(trouble.reason, trouble.message)


IDENTITY: Final = IdentityPart()


ASK_EVERY: Final = 30.0
"""Seconds between two questions whether SSSD reaches the directory."""

ASK_EVERY_WHILE_AWAY: Final = 10.0
"""The same while it does not, or that is not known."""


def keep_users(state: PassState) -> Iterator[Action]:
    """Write the users whom the daemons resolve, and delete them once no pod mounts them."""
    snapshot = state.snapshot
    cluster, found = snapshot.cluster, users.users(snapshot.cluster, snapshot.texts)
    state.note(UserSource(found.trouble or users.trouble_of_sssd(cluster, snapshot.sources)))
    name = naming.users(cluster.name)
    if found.texts is not None:
        about = metadata(cluster, name, naming.COMPONENT_CONFIG)
        yield from writes(snapshot, (Child(CONFIGMAPS, {"metadata": about, "data": dict(found.texts)}),), state.now)
        return
    live = snapshot.children.get((CONFIGMAPS.kind, name))
    wanted = cluster.spec.identity is not None and cluster.spec.identity.passwd is not None
    if live is None or wanted or live["metadata"].get("deletionTimestamp") or not adoption.is_ours(live, cluster):
        return
    if not any(_mounts(pod, name) for pod in _pods(snapshot)):
        yield Remove(CONFIGMAPS, name, live["metadata"]["uid"])


def ask_directory(state: PassState) -> Iterator[Action]:
    """Ask the agent beside slurmctld whether SSSD reaches the directory, if the last answer is old enough."""
    snapshot, pod = state.snapshot, state.snapshot.pods.controller
    if not identity.has_sssd(snapshot.cluster) or pod is None or not (pod.get("status") or {}).get("podIP"):
        return
    last, due = snapshot.memory.answers.of(DirectoryQuestion), 0.0
    if last is not None and last.pod_uid == pod["metadata"]["uid"]:
        reached = last.offline is not None and not last.offline
        due = last.asked_at + (ASK_EVERY if reached else ASK_EVERY_WHILE_AWAY) - state.now
    if due <= 0:
        yield Ask(DirectoryQuestion(pod))
    state.wake_up(due if due > 0 else ASK_EVERY_WHILE_AWAY)


def _pods(snapshot: Snapshot) -> Iterator[Object]:
    """All pods that may mount them, and the templates of those to come."""
    yield from snapshot.pods.slurmds
    yield from snapshot.pods.logins
    yield from (pod for pods in snapshot.pods.daemons.values() for pod in pods)
    yield from filter(None, (snapshot.pods.controller, snapshot.pods.controller_ending))
    for one in snapshot.children.values():
        template = (one.get("spec") or {}).get("template")
        if isinstance(template, dict):
            yield template


def _mounts(pod: Object, name: str) -> bool:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return any((one.get("configMap") or {}).get("name") == name for one in volumes)
