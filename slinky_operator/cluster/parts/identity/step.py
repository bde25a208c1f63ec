"""Steps about users: the checked copy of passwd and group, what is wrong with their source, and the directory. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import Action, Ask, Remove
from slinky_operator.cluster.daemons import metadata
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.identity.condition import UserSource
from slinky_operator.cluster.parts.identity.question import DirectoryQuestion
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.writes.due import writes
from slinky_operator.identity import pod as identity
from slinky_operator.identity import users
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming

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
