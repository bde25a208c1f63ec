"""The Secret from which pods mount the key of auth/slurm: the accepted one, and no other. Pure.

The user's Secret may hold a set that is refused, or comes too early, at any moment. A pod or a container that starts
then would read it. A key set that the operator has generated becomes the user's one day, to be rotated, and no pod is
to change for that. So pods mount `naming.accepted_key`, into which the operator writes what is in the copy: a key that
all daemons can live with, whenever each of them reads it. A generated single key, of earlier operators, is mounted
directly.

1. The copy is written first: it decides which key is accepted, also for a successor of the operator.
2. The staged Secret follows it. slurmctld and slurmdbd are neither started nor restarted before it does.
3. Kubelets mount it; their time begins when it is written.

Pods that an earlier operator has made mount the user's Secret itself, and go on with it until something else replaces
them: no job, no session and no slurmctld ends for this. While a daemon has such a pod, the rules about what kubelets
may have mounted hold as before for the whole Cluster (`is_direct`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace

from slinky_api.conditions import Reason
from slinky_operator.cluster.actions import KeepKeys
from slinky_operator.cluster.daemons import metadata
from slinky_operator.cluster.memory.keys import SeenSecret
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.keys import key_messages, stored_keys
from slinky_operator.cluster.secrets.checks import Missing
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.secrets import Source
from slinky_operator.slurm import naming
from slinky_operator.slurm.naming import KeySource


def staged_in(snapshot: Snapshot) -> Source | None:
    """The staged Secret, if it exists and was created by the operator."""
    found = snapshot.sources.get(naming.accepted_key(snapshot.cluster.name))
    return found if found is not None and found.exists and found.cluster_uid else None


def holds(snapshot: Snapshot, source: KeySource, key: bytes) -> bool:
    """Whether pods mount this key as `source.file`, which is right at once for a single key that is generated."""
    if not source.staged:
        return True
    found = staged_in(snapshot)
    return found is not None and found.data == {source.file: key} and stored_keys.is_ours(snapshot, found)


def is_current(snapshot: Snapshot, source: KeySource) -> bool:
    """Whether pods mount the accepted key: the copy is written before the staged Secret."""
    return holds(snapshot, as_accepted(snapshot, source), stored_keys.known(snapshot, naming.SLURM_KEY, source))


def as_accepted(snapshot: Snapshot, source: KeySource) -> KeySource:
    """The same source, with the file that daemons have (`key_form`)."""
    return replace(source, file=snapshot.cluster.status.slurm_key_file or source.file)


def stage(snapshot: Snapshot, source: KeySource, key: bytes) -> KeepKeys:
    """Write a key into the staged Secret."""
    about = metadata(snapshot.cluster, naming.accepted_key(snapshot.cluster.name), naming.COMPONENT_AUTH)
    data = {source.file: base64.b64encode(key).decode()}
    return KeepKeys({"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "Opaque", "data": data})


def follow(
    snapshot: Snapshot, source: KeySource, known: bytes, now: float, *, waits: bool
) -> tuple[tuple[KeepKeys, ...], Missing | None]:
    """Write the accepted key where pods mount it; and why it is not there yet.

    Parameters
    ----------
    source
        With the file that daemons have.
    known
        The accepted key; empty if there is none yet.
    waits
        Whether something else is written first: the copy.
    """
    if not known or holds(snapshot, source, known):
        return (), None
    why = refusal(snapshot, source, now)
    return (() if waits or why is not None else (stage(snapshot, source, known),)), why or pending(source)


def refusal(snapshot: Snapshot, source: KeySource, now: float) -> Missing | None:
    """Why the staged Secret could not be written a moment ago."""
    return None if not source.staged else stored_keys.denied(snapshot, naming.accepted_key(snapshot.cluster.name), now)


def is_direct(snapshot: Snapshot, source: KeySource) -> bool:
    """Whether a daemon may read `source` itself: by its running pod, or by the next one of its workload."""
    if not source.staged:
        return True
    running = (snapshot.pods.controller, snapshot.pods.controller_ending, *snapshot.pods.slurmds)
    slurmdbd = snapshot.pods.daemons.get(naming.COMPONENT_ACCOUNTING, ())
    pods = [one for one in (*running, *slurmdbd) if one is not None]
    owners = (naming.controller(snapshot.cluster.name), naming.accounting(snapshot.cluster.name))
    children = (snapshot.children.get(("StatefulSet", name)) for name in owners)
    templates = [one["spec"]["template"] for one in children if one is not None]
    accepted = naming.accepted_key(snapshot.cluster.name)
    return not all(accepted in _secrets(one) for one in (*pods, *templates))


def mounted(snapshot: Snapshot, source: KeySource) -> tuple[Source, ...]:
    """The Secrets that daemons may have mounted, as last read."""
    staged, given = staged_in(snapshot), snapshot.sources.get(source.secret)
    found = (given if is_direct(snapshot, source) else None, staged if source.staged else None)
    return tuple(one for one in found if one is not None)


def seen(snapshot: Snapshot, source: KeySource, known: bytes, now: float) -> SeenSecret | None:
    """The version of the staged Secret, since when it is known, and whether somebody else has put another key there.

    Parameters
    ----------
    known
        The accepted key.
    """
    if not source.staged:
        return None
    found, before = staged_in(snapshot), snapshot.memory.keys.staged
    if found is None or (before is not None and before.version == found.version):
        return before
    # The key that was accepted until a moment ago is no stranger's.
    held = found.data.get(as_accepted(snapshot, source).file, found.data.get(source.file))
    strange = held not in {known, snapshot.memory.keys.known.get(naming.SLURM_KEY, known)}
    changed, suspect = before is not None, before is not None and before.refused
    return SeenSecret(found.version, now, changed=changed, refused=strange, suspect=suspect)


def pending(source: KeySource) -> Missing:
    """The staged Secret does not hold the accepted key yet."""
    return Missing(Reason.KEY_PENDING, key_messages.staging(source))


def _secrets(pod: Object) -> Iterator[str]:
    """Names of the Secrets that a pod mounts."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        secret = volume.get("secret")
        if secret:
            yield str(secret.get("secretName"))
        for one in (volume.get("projected") or {}).get("sources") or ():
            if one.get("secret"):
                yield str(one["secret"].get("name"))
