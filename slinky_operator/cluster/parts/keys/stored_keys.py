"""The stored data about a Cluster's keys: in the Secrets of its spec, in the copy, on slurmctld's StatefulSet. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import stored, variants
from slinky_operator.cluster.parts.accounting.mariadb import ANNOTATION_MOUNTS
from slinky_operator.cluster.parts.keys.key_trial import KeyQuestion
from slinky_operator.cluster.secrets.checks import Missing
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.secrets import Source
from slinky_operator.slurm import naming
from slinky_operator.slurm.naming import KeySource

ANNOTATION_KEY: Final = labels.CLUSTER_PREFIX + "slurm-key"
"""On slurmctld's StatefulSet: name of the Secret with the generated key of auth/slurm, and the key's fingerprint."""

LOADED: Final = "slurm-keys-loaded"
"""Key of the copy: which key set slurmctld was seen to have read, and whether all daemons have (`key_steps`)."""

TRY_AGAIN: Final = 60.0
"""Seconds until a Secret that could not be written is tried again."""


@dataclass(frozen=True, slots=True)
class MountedKey:
    """Where a running container has a key."""

    pod: str
    container: str
    path: str


def fingerprint(key: bytes) -> str:
    """Distinguishes keys without disclosing any; for generated keys only, which cannot be guessed."""
    return hashlib.sha256(b"slurm-operator key\0" + key).hexdigest()[:16]


def value_in(snapshot: Snapshot, source: KeySource) -> bytes:
    """The key in a Secret; nothing if it is blank."""
    found = snapshot.sources.get(source.secret)
    value = found.data.get(source.key, b"") if found is not None and found.exists else b""
    return value if value.strip() else b""


def copy_in(snapshot: Snapshot) -> Source | None:
    """The copy, if it exists and was created by the operator."""
    found = snapshot.sources.get(naming.key_copy(snapshot.cluster.name))
    return found if found is not None and found.exists and found.cluster_uid else None


def known(snapshot: Snapshot, name: str, source: KeySource) -> bytes:
    """The key of the daemons: from the copy, as last seen, or from what pods mount; unless the fingerprint contradicts.

    A key of auth/jwt that slurmctld has been seen to take comes first: the copy may not have been written since, or is
    an earlier one that was read before.

    What pods mount is there too if somebody has deleted the copy while no operator was. So is a copy that has only lost
    its label: an answer of slurmctld shows whether it has that key of auth/jwt, or the one in the Secret.
    """
    mark, copy = mark_of(snapshot, source), copy_in(snapshot)
    is_staged = name == naming.SLURM_KEY and source.staged
    found = (
        _taken(snapshot) if name == naming.JWT_KEY else b"",
        copy.data.get(name, b"") if copy is not None else b"",
        snapshot.memory.keys.known.get(name, b""),
        _staged(snapshot) if is_staged else b"",
        _unassigned(snapshot).get(name, b"") if name == naming.JWT_KEY and value_in(snapshot, source) else b"",
    )
    return next((one for one in found if one and mark in {"", fingerprint(one)}), b"")


def accepted(snapshot: Snapshot) -> bytes:
    """The key of auth/slurm of the daemons, whatever the spec says where it is; empty if nothing shows it."""
    copy = copy_in(snapshot)
    held = copy.data.get(naming.SLURM_KEY, b"") if copy is not None else b""
    return held or snapshot.memory.keys.known.get(naming.SLURM_KEY, b"") or _staged(snapshot)


def _taken(snapshot: Snapshot) -> bytes:
    """The key of auth/jwt that slurmctld was last asked about, if it has taken a token that is signed with it."""
    trial = snapshot.memory.answers.of(KeyQuestion)
    return trial.key if trial is not None and trial.accepted else b""


def _unassigned(snapshot: Snapshot) -> Mapping[str, bytes]:
    """What is in a copy from which the label with the Cluster's uid was taken."""
    found = snapshot.sources.get(naming.key_copy(snapshot.cluster.name))
    is_bare = found is not None and found.exists and not found.cluster_uid
    return found.data if found is not None and is_bare and found.cluster_name == snapshot.cluster.name else {}


def _staged(snapshot: Snapshot) -> bytes:
    """The key of auth/slurm in the Secret from which pods mount it."""
    found = snapshot.sources.get(naming.accepted_key(snapshot.cluster.name))
    values = found.data.values() if found is not None and found.exists and found.cluster_uid else ()
    return next((one for one in values if one), b"")


def note(snapshot: Snapshot) -> bytes:
    """What was last noted about the daemons' key set, here or in the copy; empty if nothing was."""
    copy = copy_in(snapshot)
    return (copy.data.get(LOADED, b"") if copy is not None else b"") or snapshot.memory.keys.known.get(LOADED, b"")


def mark_of(snapshot: Snapshot, source: KeySource) -> str:
    """The fingerprint on slurmctld's StatefulSet of the key in this Secret; empty if it has none."""
    secret, _, mark = marks(snapshot).partition(":")
    return mark if source.generated and source.file != naming.JWT_KEY and secret == source.secret else ""


def marks(snapshot: Snapshot) -> str:
    """The whole annotation."""
    found = snapshot.children.get(("StatefulSet", naming.controller(snapshot.cluster.name)))
    return str((((found or {}).get("metadata") or {}).get("annotations") or {}).get(ANNOTATION_KEY, ""))


def existed(snapshot: Snapshot) -> bool:
    """Whether a slurmctld of this Cluster has existed: then its keys exist somewhere, and new ones are useless.

    A pod alone shows nothing: that of an earlier Cluster of the name exists for a moment after the rest is deleted.
    """
    name = snapshot.cluster.name
    copy = snapshot.sources.get(naming.key_copy(name))
    return bool(
        ("StatefulSet", naming.controller(name)) in snapshot.children
        or snapshot.pods.slurmd_names
        or (copy is not None and copy.exists)
        or ran(snapshot)
    )


def started(snapshot: Snapshot) -> bool:
    """Whether a slurmctld may run with what its Secrets hold: its StatefulSet is there, or it is known to have run."""
    return ("StatefulSet", naming.controller(snapshot.cluster.name)) in snapshot.children or ran(snapshot)


def ran(snapshot: Snapshot) -> bool:
    """Whether a slurmctld of this Cluster is known to have run."""
    cluster, config = snapshot.cluster, snapshot.cluster.status.config
    good = ("ConfigMap", naming.good_config(cluster.name)) in snapshot.children
    return good or bool(config is not None and config.applied_hash)


def mounted_by(snapshot: Snapshot, source: KeySource) -> MountedKey | None:
    """A container that runs with a key, whatever has become of its Secret; `None` if none is seen.

    A kubelet keeps what it has mounted for a pod, but starts no pod whose Secret is missing.
    """
    pods, own = snapshot.pods, f"{naming.KEY_FOLDER}/{source.file}"
    found = [(pods.controller, naming.CONTROLLER_CONTAINER, own)]
    found += [(pod, naming.ACCOUNTING_CONTAINER, own) for pod in pods.daemons.get(naming.COMPONENT_ACCOUNTING, ())]
    if source.file != naming.JWT_KEY:
        slurmds = sorted(pods.slurmds, key=lambda one: str(one["metadata"]["name"]))
        found += [(pod, naming.SLURMD, f"{naming.CONF_FOLDER}/{source.file}") for pod in slurmds]
    running = (
        MountedKey(str(pod["metadata"]["name"]), container, path)
        for pod, container, path in found
        if pod is not None and _runs(pod, container)
    )
    return next(running, None)


def _runs(pod: Object, container: str) -> bool:
    """Whether a container runs; a pod that shows none of its containers has started them, unless it is pending."""
    status = pod.get("status") or {}
    shown = status.get("containerStatuses")
    if not shown:
        return status.get("phase") != "Pending"
    return any(one["name"] == container and "running" in (one.get("state") or {}) for one in shown)


def is_ours(snapshot: Snapshot, source: Source) -> bool:
    """Whether a Secret is labelled as this Cluster's."""
    return source.cluster_uid == snapshot.cluster.uid


def slurmdbd_is_behind(snapshot: Snapshot) -> bool:
    """Whether a pod of slurmdbd has started with earlier keys than it must have read, and is to be replaced."""
    keys = stored.slurmdbd_digest(snapshot).partition("-")[2]
    pods = snapshot.pods.daemons.get(naming.COMPONENT_ACCOUNTING, ())
    started = [(pod["metadata"].get("annotations") or {}).get(ANNOTATION_MOUNTS, "") for pod in pods]
    return variants.runs_slurmdbd(snapshot.cluster) and any(one and one.partition("-")[2] != keys for one in started)


def denied(snapshot: Snapshot, secret: str, now: float) -> Missing | None:
    """Why a Secret could not be written a moment ago."""
    found = snapshot.memory.writes.denied.get(("Secret", secret))
    if found is None or now - found.at >= TRY_AGAIN:
        return None
    return Missing(Reason.CHILD_REFUSED, f"Secret {secret}: {found.why}")
