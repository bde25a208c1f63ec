"""The part of the plan about keys: which ones daemons run with, and what to do if a Secret differs. Pure.

A key is generated once, before slurmctld has first existed. The daemons' keys are kept in a Secret of the operator, the
copy, and that is written before slurmctld's StatefulSet: so whether a key is known, and which, survives the operator.
For a generated key of auth/slurm the StatefulSet also has a fingerprint, which identifies the right one if both Secrets
were lost, or restored from a backup.

- A generated key of auth/slurm is a key set of one key. That of earlier operators is a single key, and stays one.
- A generated key that is missing is restored. So is one of auth/slurm that was replaced: running slurmds have the
  earlier one, and a slurmctld with another rejects the ends of their jobs.
- A user's key belongs to the user: if it is missing or changed, that is reported, and nothing is done that would make a
  daemon read it. A changed one of auth/slurm is used once nothing is left that runs with the earlier one.
- A key set of the user's changes in steps, each of which all daemons have to prove before the next (`key_steps`).
- A user's key that Slurm cannot use safely, or at all, is refused before a daemon reads it (`key_sizes`); one that
  daemons run with already is only reported.
- A changed key of auth/jwt is loaded into slurmctld. Until then tokens are signed with the earlier one, and with
  whichever slurmctld accepts (`key_loading`). slurmdbd reads it after slurmctld, with a pod of its own
  (`accounting.stored`).
- A private key of tokens has rules of its own (`signing`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.events import EventReason
from slinky_operator.cluster.actions import Action, EmitEvent, KeepKeys, MakeKey, PutKeyBack, Remove, SealKey
from slinky_operator.cluster.daemons import metadata
from slinky_operator.cluster.memory.keys import SeenSecret
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import stored, variants
from slinky_operator.cluster.parts.job_counts.question import JobsQuestion
from slinky_operator.cluster.parts.keys import key_messages, staged_keys, stored_keys
from slinky_operator.cluster.parts.keys.findings import Keys, SlurmKeySecrets
from slinky_operator.cluster.parts.keys.key_trial import KeyQuestion
from slinky_operator.cluster.parts.keys.proof import key_steps
from slinky_operator.cluster.parts.keys.proof.key_steps import Standing
from slinky_operator.cluster.parts.keys.sets import key_sets, key_sizes
from slinky_operator.cluster.parts.keys.signing import look as look_at_signing
from slinky_operator.cluster.secrets.checks import Missing, check, not_allowed
from slinky_operator.kube.events import EventType
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.contact import ContactState
from slinky_operator.slurm.naming import KeySource

KEY_SIZES: Final = {naming.SLURM_KEY: 128, naming.JWT_KEY: 32}
"""Bytes of generated keys."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The findings about one key."""

    known: bytes = field(default=b"", repr=False)
    actions: tuple[Action, ...] = ()
    trouble: Missing | None = None
    mountable: bool = True
    step: Missing | None = None
    standing: Standing | None = None
    ahead: bool = False
    """Whether the staged Secret gets a key that is accepted once it is there."""


def look(snapshot: Snapshot, now: float, wall: datetime) -> Keys:
    """Check the keys of a managed Cluster.

    Parameters
    ----------
    now
        Monotonic seconds.
    wall
        The time of day, for keys that expire.
    """
    slurm, jwt = naming.slurm_key(snapshot.cluster), naming.jwt_key(snapshot.cluster)
    assert slurm is not None and jwt is not None  # noqa: PT018, S101 - a managed Cluster has both
    seen = _seen(snapshot, slurm, now)
    of_slurm = _of_slurm(snapshot, slurm, seen, now, wall)
    if seen is not None:
        seen = replace(seen, refused=of_slurm.trouble is not None)
    of_jwt, changed = _of_jwt(snapshot, jwt, now)
    found = {naming.SLURM_KEY: of_slurm, naming.JWT_KEY: of_jwt}
    known = {name: one.known for name, one in found.items() if one.known}
    direct = staged_keys.is_direct(snapshot, slurm)
    if of_slurm.known and of_slurm.standing is not None and of_slurm.standing.note:
        known[stored_keys.LOADED] = of_slurm.standing.note
    known |= _for_accounting(snapshot, known)
    signing = look_at_signing(snapshot, wall)
    keep = tuple(_keep(snapshot, {**known, **signing.kept} if known else {}, now))
    waits = bool(keep) or of_slurm.ahead
    is_new = of_slurm.known != stored_keys.known(snapshot, naming.SLURM_KEY, slurm)
    accepted = slurm if is_new else staged_keys.as_accepted(snapshot, slurm)
    stage, staging = staged_keys.follow(snapshot, accepted, of_slurm.known, now, waits=waits)
    if signing.in_use is not None:
        known[naming.SIGNING_KEY] = signing.in_use.value
    is_right = of_slurm.mountable or not direct
    return Keys(
        known,
        (*of_slurm.actions, *of_jwt.actions, *keep, *stage),
        of_slurm.trouble,
        of_jwt.trouble,
        changed,
        not keep and staging is None and is_right and of_jwt.mountable and all(one.known for one in found.values()),
        signing,
        tuple(_weak(known, accepted, naming.SLURM_KEY)) + tuple(_weak(known, jwt, naming.JWT_KEY)),
        of_slurm.step or of_jwt.step,
        _settling(snapshot, slurm, seen, now, wall),
        of_slurm.standing,
        SlurmKeySecrets(seen, direct, staging, staged_keys.seen(snapshot, slurm, of_slurm.known, now)),
    )


def look_elsewhere(snapshot: Snapshot) -> Keys:
    """Check the key of an external Cluster: only what its slurmctld was seen to accept is remembered."""
    source = naming.jwt_key(snapshot.cluster)
    if source is None or snapshot.cluster.spec.token is not None:
        return Keys()
    value, known = stored_keys.value_in(snapshot, source), snapshot.memory.keys.known.get(naming.JWT_KEY, b"")
    if not value or not_allowed(snapshot, source.secret, "") is not None:
        # An administrator who removes the Secret may want to deny the operator access.
        return Keys()
    if not known or value == known or _is_accepted(snapshot, value):
        return Keys({naming.JWT_KEY: value})
    trouble = Missing(Reason.KEY_PENDING, key_messages.pending_elsewhere(source))
    return Keys({naming.JWT_KEY: known}, jwt=trouble, changed=value)


def notes(snapshot: Snapshot, keys: Keys) -> dict[str, str]:
    """The annotations of slurmctld's StatefulSet about its key; unchanged if nothing better is known."""
    source = naming.slurm_key(snapshot.cluster)
    if source is None or not source.generated:
        return {}
    known = keys.known.get(naming.SLURM_KEY)
    mark = f"{source.secret}:{stored_keys.fingerprint(known)}" if known else stored_keys.marks(snapshot)
    return {stored_keys.ANNOTATION_KEY: mark} if mark else {}


# One key


def _seen(snapshot: Snapshot, source: KeySource, now: float) -> SeenSecret | None:
    if source.generated:
        return None
    known, value = stored_keys.known(snapshot, naming.SLURM_KEY, source), stored_keys.value_in(snapshot, source)
    return key_steps.seen(snapshot, source, now, accepted_before=value == known)


def _of_slurm(snapshot: Snapshot, source: KeySource, seen: SeenSecret | None, now: float, wall: datetime) -> _Found:
    known, value = stored_keys.known(snapshot, naming.SLURM_KEY, source), stored_keys.value_in(snapshot, source)
    if not known:
        return _first(snapshot, naming.SLURM_KEY, source, value, now)
    if value == known and source.file != staged_keys.as_accepted(snapshot, source).file:
        words = key_messages.other_form(snapshot.cluster, source)
        return _Found(known, trouble=Missing(Reason.KEY_CHANGED, words), mountable=False)
    if value == known:
        return _loading(snapshot, source, _Found(known, tuple(_seal(snapshot, source))), seen, now, wall)
    if not value:
        return _gone(snapshot, naming.SLURM_KEY, source, known, now)
    return _of_other(snapshot, source, known, value, seen, now, wall)


def _of_other(
    snapshot: Snapshot,
    source: KeySource,
    known: bytes,
    value: bytes,
    seen: SeenSecret | None,
    now: float,
    wall: datetime,
) -> _Found:
    """The findings if the Secret has another key of auth/slurm than the daemons."""
    why = key_sizes.why_not(source, value)
    if why:
        direct = staged_keys.is_direct(snapshot, source)
        words = key_messages.refused_beside(snapshot.cluster, naming.SLURM_KEY, why, direct=direct)
        trouble = Missing(Reason.SECRET_INVALID, words)
        return _Found(known, trouble=trouble, mountable=False)
    if source.generated and snapshot.sources[source.secret].cluster_uid:
        return _put_back(snapshot, source, known, key_messages.undone(source), now)
    extended = _is_extended(snapshot, source, known, value, wall)
    if not source.generated and extended and stored_keys.ran(snapshot):
        found = key_steps.standing(snapshot, source, known, seen, now, wall, next_waits=True)
        if found.lacking and not (found.known and _nothing_left(snapshot)):
            return _too_early(snapshot, source, known, found)
        # With no slurmd and no job left, slurmctld is started with the set, whatever it has now.
        extended = not found.lacking
    if not source.generated and _may_change(snapshot, source, known, value, wall):
        first = key_steps.first_note(known, value) if source.file == naming.SLURM_JWKS else b""
        return _replaced(snapshot, source, value, first, now, extended=extended)
    early = key_sets.early_default(known, value) if source.file == naming.SLURM_JWKS else ""
    words = key_messages.changed(snapshot.cluster, source, early, direct=staged_keys.is_direct(snapshot, source))
    trouble = Missing(Reason.KEY_CHANGED, words)
    return _Found(known, trouble=trouble, mountable=False)


def _loading(
    snapshot: Snapshot, source: KeySource, found: _Found, seen: SeenSecret | None, now: float, wall: datetime
) -> _Found:
    """The same, with how far the daemons are with a key set."""
    if source.file != naming.SLURM_JWKS:
        return found
    standing = key_steps.standing(snapshot, source, found.known, seen, now, wall, next_waits=False)
    words = key_messages.loading(source, standing.lacking, standing.since)
    step = Missing(Reason.KEY_PENDING, words) if standing.lacking else None
    return replace(found, step=step, standing=standing)


def _too_early(snapshot: Snapshot, source: KeySource, known: bytes, found: Standing) -> _Found:
    """The findings if the set before has to be proven first."""
    if not staged_keys.is_direct(snapshot, source):
        # No daemon can read it before, and nothing has to be put back.
        trouble = Missing(Reason.KEY_PENDING, key_messages.waits_for_proof(source, found.lacking, found.since))
    elif found.known or not found.loaded:
        words = key_messages.too_early(snapshot.cluster, source, found.lacking, found.since)
        trouble = Missing(Reason.KEY_CHANGED, words)
    else:
        trouble = Missing(Reason.KEY_PENDING, key_messages.asked_first(source))
    return _Found(known, trouble=trouble, mountable=False, standing=found)


def _settling(
    snapshot: Snapshot, source: KeySource, seen: SeenSecret | None, now: float, wall: datetime
) -> Missing | None:
    if not stored_keys.ran(snapshot) or key_steps.settles_in(snapshot, source, seen, now, wall) <= 0:
        return None
    return Missing(Reason.KEY_PENDING, key_messages.settling(source, int(key_steps.KUBELETS)))


def _of_jwt(snapshot: Snapshot, source: KeySource, now: float) -> tuple[_Found, bytes]:
    """The findings, and a key that differs from the known one, if any."""
    known, value = stored_keys.known(snapshot, naming.JWT_KEY, source), stored_keys.value_in(snapshot, source)
    if not known:
        return _first(snapshot, naming.JWT_KEY, source, value, now), b""
    if not value:
        return _gone(snapshot, naming.JWT_KEY, source, known, now), b""
    if value == known or _is_accepted(snapshot, value):
        late = value == known and stored_keys.slurmdbd_is_behind(snapshot)
        step = Missing(Reason.KEY_PENDING, key_messages.slurmdbd_reads_later(source)) if late else None
        return _Found(value, step=step), b""
    refused = key_sizes.why_not(source, value)
    if refused:
        words = key_messages.refused_beside(snapshot.cluster, naming.JWT_KEY, refused)
        # It is tried all the same: a slurmctld that its kubelet has restarted has read it.
        return _Found(known, trouble=Missing(Reason.SECRET_INVALID, words), mountable=False), value
    return _Found(
        known, trouble=Missing(Reason.KEY_PENDING, key_messages.pending(source, _hangs_at(snapshot, value)))
    ), value


def _hangs_at(snapshot: Snapshot, value: bytes) -> str:
    """What has not worked so far on the way of a key to slurmctld."""
    loaded, trial = snapshot.memory.rollout.loaded, snapshot.memory.answers.of(KeyQuestion)
    if loaded is not None and not loaded.proven:
        return loaded.why
    if trial is None or trial.key != value or trial.attempts <= 1:
        return ""
    return f"{trial.attempts} tokens signed with it were refused, the last with: {trial.why}"


def _first(snapshot: Snapshot, name: str, source: KeySource, value: bytes, now: float) -> _Found:
    """The findings if nothing is known of the key so far."""
    cluster, purpose = snapshot.cluster, key_messages.PURPOSES[name]
    found, mark = snapshot.sources.get(source.secret), stored_keys.mark_of(snapshot, source)
    holder = stored_keys.mounted_by(snapshot, source)
    why = key_sizes.why_not(source, value) if value and not stored_keys.started(snapshot) else ""
    if why:
        trouble: Missing | None = Missing(Reason.SECRET_INVALID, key_messages.refused(source, why))
    elif value and mark in {"", stored_keys.fingerprint(value)}:
        return _Found(value)
    elif value:
        trouble = Missing(Reason.KEY_CHANGED, key_messages.other_than_started(cluster, name, source, holder))
    elif not source.generated or (found is not None and found.exists and not stored_keys.existed(snapshot)):
        trouble = check(found, source.secret, source.key, purpose)
    elif stored_keys.existed(snapshot):
        trouble = Missing(Reason.KEY_LOST, key_messages.lost(cluster, name, source, holder))
    else:
        trouble = stored_keys.denied(snapshot, source.secret, now)
        if trouble is None:
            trouble = Missing(Reason.DAEMONS_STARTING, f"{purpose}: being made")
            controller, copy = naming.controller(cluster.name), naming.key_copy(cluster.name)
            make = MakeKey(_body(snapshot, source), source.key, KEY_SIZES[name], controller, copy)
            return _Found(actions=(make,), trouble=trouble, mountable=False)
    return _Found(trouble=trouble, mountable=False)


def _gone(snapshot: Snapshot, name: str, source: KeySource, known: bytes, now: float) -> _Found:
    """The findings if the Secret is gone, or no longer has a key in it."""
    found = snapshot.sources.get(source.secret)
    if source.generated and (found is None or not found.exists or found.cluster_uid):
        return _put_back(snapshot, source, known, key_messages.restored(name, source), now)
    trouble = check(found, source.secret, source.key, key_messages.PURPOSES[name])
    assert trouble is not None  # noqa: S101 - there is no key in it
    direct = name != naming.SLURM_KEY or staged_keys.is_direct(snapshot, source)
    words = key_messages.missing(snapshot.cluster, name, trouble.message, direct=direct)
    return _Found(known, trouble=Missing(trouble.reason, words), mountable=False)


def _may_change(snapshot: Snapshot, source: KeySource, known: bytes, value: bytes, wall: datetime) -> bool:
    """Whether nothing needs the earlier key: it is in the new set, no slurmctld has run with it, or no slurmd does."""
    extended = _is_extended(snapshot, source, known, value, wall)
    return extended or not stored_keys.ran(snapshot) or _nothing_left(snapshot)


def _nothing_left(snapshot: Snapshot) -> bool:
    """Whether no slurmd runs, and no job does: a pod that has lost its labels is not among the pods."""
    jobs = snapshot.memory.answers.of(JobsQuestion)
    counts = jobs.counts if jobs is not None else None
    if snapshot.pods.slurmd_names:
        return False
    if counts is None:
        # Its key may be why Slurm does not answer: then no job can be counted.
        away = snapshot.slurm is not None and snapshot.slurm.contact.state is ContactState.UNREACHABLE
        return away and not snapshot.cluster.spec.nodes
    return not (counts.running or counts.suspended or counts.completing)


def _is_extended(snapshot: Snapshot, source: KeySource, known: bytes, value: bytes, wall: datetime) -> bool:
    files = {source.file, staged_keys.as_accepted(snapshot, source).file}
    return files == {naming.SLURM_JWKS} and key_sets.extends(known, value, wall)


def _is_accepted(snapshot: Snapshot, value: bytes) -> bool:
    trial = snapshot.memory.answers.of(KeyQuestion)
    return trial is not None and trial.accepted and trial.key == value


def _replaced(
    snapshot: Snapshot, source: KeySource, value: bytes, note: bytes, now: float, *, extended: bool
) -> _Found:
    """Use the new key; a running slurmctld is replaced before the key is recorded, so that this is not forgotten."""
    pod = snapshot.pods.controller
    standing = Standing(note=note) if note else None
    if extended or pod is None:
        return _Found(value, standing=standing)
    if not staged_keys.holds(snapshot, source, value):
        # Its successor mounts what is there by then.
        known = stored_keys.known(snapshot, naming.SLURM_KEY, source)
        trouble = staged_keys.refusal(snapshot, source, now) or staged_keys.pending(source)
        return _Found(known, (staged_keys.stage(snapshot, source, value),), trouble, mountable=False, ahead=True)
    about = pod["metadata"]
    tell = EmitEvent(snapshot.raw, EventType.NORMAL, EventReason.KEY_REPLACED, key_messages.taken(source))
    return _Found(value, (Remove(PODS, about["name"], about["uid"]), tell), standing=standing)


def _put_back(snapshot: Snapshot, source: KeySource, known: bytes, words: str, now: float) -> _Found:
    denied = stored_keys.denied(snapshot, source.secret, now)
    if denied is not None:
        return _Found(known, trouble=denied, mountable=False)
    found = snapshot.sources.get(source.secret)
    replaces = found.object_uid if found is not None and found.exists else ""
    tell = EmitEvent(snapshot.raw, EventType.WARNING, EventReason.KEY_RESTORED, words)
    return _Found(known, (PutKeyBack(_body(snapshot, source), source.key, known, replaces, tell),), mountable=False)


def _weak(known: Mapping[str, bytes], source: KeySource, name: str) -> Iterator[str]:
    """What is wrong with a key that daemons run with."""
    why = key_sizes.why_not(source, known[name]) if name in known else ""
    if why:
        yield key_messages.weak(source, why)


# What is written


def _for_accounting(snapshot: Snapshot, known: Mapping[str, bytes]) -> dict[str, bytes]:
    """What the copy says of keys for the pods of accounting (`accounting.stored`)."""
    slurm, jwt = known.get(naming.SLURM_KEY, b""), known.get(naming.JWT_KEY, b"")
    if not slurm or not jwt or variants.wanted(snapshot.cluster) is None:
        return {}
    salt = stored.salted_with(snapshot) or stored.salt(slurm, jwt)
    read = [stored.salt(key_sets.for_restart(one), other) for one, other in (stored.salted_keys(salt), (slurm, jwt))]
    # Never empty: entries without a value would stay as they were.
    return {stored.SALT: salt, stored.KEYS_READ: b" " if read[0] == read[1] else key_sets.mark(read[1])[:8].encode()}


def _seal(snapshot: Snapshot, source: KeySource) -> Iterator[SealKey]:
    """Make a generated key of auth/slurm immutable: it cannot be changed in place, and no kubelet mounts another."""
    found = snapshot.sources[source.secret]
    if source.generated and not found.immutable and stored_keys.is_ours(snapshot, found):
        yield SealKey(source.secret, found.object_uid)


def _body(snapshot: Snapshot, source: KeySource) -> Object:
    about = metadata(snapshot.cluster, source.secret, naming.COMPONENT_AUTH)
    body: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "Opaque"}
    return body | ({"immutable": True} if source.file != naming.JWT_KEY else {})


def _keep(snapshot: Snapshot, known: Mapping[str, bytes], now: float) -> Iterator[KeepKeys]:
    """Write the copy if it does not contain what is known; entries known to be empty go, and others stay."""
    name, copy = naming.key_copy(snapshot.cluster.name), stored_keys.copy_in(snapshot)
    held = dict(copy.data) if copy is not None else {}
    wanted = {key: value for key, value in {**held, **known}.items() if value}
    if not known or stored_keys.denied(snapshot, name, now) is not None:
        return
    if copy is not None and wanted == held and stored_keys.is_ours(snapshot, copy):
        return
    data = {key: base64.b64encode(value).decode() for key, value in sorted(wanted.items())}
    about = metadata(snapshot.cluster, name, naming.COMPONENT_AUTH)
    yield KeepKeys({"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "Opaque", "data": data})
