"""The step about users: the checked copy of passwd and group, and what is wrong with their source. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from slinky_operator.cluster import succession
from slinky_operator.cluster.actions import Action, Remove
from slinky_operator.cluster.components import metadata
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.steps.progress import Progress
from slinky_operator.cluster.steps.writes import writes
from slinky_operator.identity import users
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.reconcile.children import Child
from slinky_operator.slurm import naming


def keep_users(progress: Progress) -> Iterator[Action]:
    """Write the users whom the daemons resolve, and delete them once no pod mounts them."""
    snapshot = progress.snapshot
    cluster, found = snapshot.cluster, users.users(snapshot.cluster, snapshot.texts)
    progress.identity = found.trouble or users.trouble_of_sssd(cluster, snapshot.sources)
    name = naming.users(cluster.name)
    if found.texts is not None:
        about = metadata(cluster, name, naming.COMPONENT_CONFIG)
        yield from writes(snapshot, (Child(CONFIGMAPS, {"metadata": about, "data": dict(found.texts)}),), progress.now)
        return
    live = snapshot.children.get((CONFIGMAPS.kind, name))
    wanted = cluster.spec.identity is not None and cluster.spec.identity.passwd is not None
    if live is None or wanted or live["metadata"].get("deletionTimestamp") or not succession.is_ours(live, cluster):
        return
    if not any(_mounts(pod, name) for pod in _pods(snapshot)):
        yield Remove(CONFIGMAPS, name, live["metadata"]["uid"])


def _pods(snapshot: Snapshot) -> Iterator[Object]:
    """All pods that may mount them, and the templates of those to come."""
    yield from snapshot.slurmd_objects
    yield from (pod for pods in snapshot.daemon_pods.values() for pod in pods)
    yield from filter(None, (snapshot.controller_pod, snapshot.controller_ending))
    for one in snapshot.children.values():
        template = (one.get("spec") or {}).get("template")
        if isinstance(template, dict):
            yield template


def _mounts(pod: Object, name: str) -> bool:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return any((one.get("configMap") or {}).get("name") == name for one in volumes)
