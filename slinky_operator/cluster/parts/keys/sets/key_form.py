"""Whether daemons have the key of auth/slurm as a key set or as a single key. Pure.

Slurm reads one or the other, from files of different names, and a daemon with one does not understand a daemon with the
other. So the form belongs to the key that was accepted, and not to what the spec asks for: pods mount the file that
daemons have until another key is accepted. The form of the first key is that of the Secret; one that the operator makes
is a key set, which can be rotated under jobs. Clusters of earlier operators have a single key, and keep it.

The form is in `Cluster.status`, where NodeSets and LoginSets find it. Here it is derived again in each pass, since a
status may be lost: a key set and a single key differ in what is in them.
"""

from __future__ import annotations

from dataclasses import replace

from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.keys import stored_keys
from slinky_operator.cluster.parts.keys.sets import key_sets
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming


def settled(snapshot: Snapshot) -> Snapshot:
    """The same, with the form of the key in the Cluster's status."""
    cluster = snapshot.cluster
    if cluster.spec.external:
        return snapshot
    status = cluster.status.model_copy(update={"slurm_key_file": _file(snapshot)})
    return replace(snapshot, cluster=cluster.model_copy(update={"status": status}))


def _file(snapshot: Snapshot) -> str:
    """What daemons have the key as, or will have the first one."""
    cluster = snapshot.cluster
    known, source = stored_keys.accepted(snapshot), naming.slurm_key(cluster)
    assert source is not None  # noqa: S101 - a managed Cluster has one
    if not known:
        return source.file if not source.generated else _of_generated(snapshot)
    if source.generated and (source.secret, naming.SLURM_KEY) in _mounted(snapshot):
        return naming.SLURM_KEY
    is_set = key_sets.is_one(known)
    if not source.generated and stored_keys.value_in(snapshot, source) == known:
        # What daemons have as a key set may be given under the name of a single key.
        return (cluster.status.slurm_key_file if is_set and source.file == naming.SLURM_KEY else None) or source.file
    return naming.SLURM_JWKS if is_set else naming.SLURM_KEY


def _of_generated(snapshot: Snapshot) -> str:
    """The form of a generated key of which the operator has no copy."""
    name = naming.slurm_key_secret(snapshot.cluster.name)
    found, mounted = snapshot.sources.get(name), {file for _, file in _mounted(snapshot)}
    held = set(found.data) if found is not None and found.exists else set()
    for files in (mounted, held, {snapshot.cluster.status.slurm_key_file}):
        for one in (naming.SLURM_JWKS, naming.SLURM_KEY):
            if one in files:
                return one
    return naming.SLURM_KEY if stored_keys.existed(snapshot) else naming.SLURM_JWKS


def _mounted(snapshot: Snapshot) -> set[tuple[str, str]]:
    """Secrets, and files of the key of auth/slurm, that slurmctld's StatefulSet mounts."""
    live: Object = snapshot.children.get(("StatefulSet", naming.controller(snapshot.cluster.name))) or {}
    template = ((live.get("spec") or {}).get("template") or {}).get("spec") or {}
    sources = (
        one.get("secret") or {}
        for volume in template.get("volumes") or ()
        for one in (volume.get("projected") or {}).get("sources") or ()
    )
    return {
        (str(one.get("name")), str(item.get("path")))
        for one in sources
        for item in one.get("items") or ()
        if item.get("path") in {naming.SLURM_KEY, naming.SLURM_JWKS}
    }
