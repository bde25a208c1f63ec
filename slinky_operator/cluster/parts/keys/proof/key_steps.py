"""Steps of a key set of auth/slurm: which daemons have proven to have it, and when the next step may follow. Pure.

A set is accepted, and kept in the copy, when the set before it is proven: then each daemon has one of both, and each
signs with a key that all others have, whatever their kubelets have mounted and in whatever order they read it. So

1. an accepted set is staged (`staged_keys`), mounted (`KUBELETS`), and slurmctld reconfigured, its slurmds with it;
2. each daemon is asked whether it has all keys of the set, signs with its default, and takes none that has expired;
3. once all have proven that, the set is noted as loaded in the copy; only then another one is accepted.

slurmctld does not show which key it signs with. That it has read a set that switches to another one follows from a
reconfigure that it has shown to have carried out after the time for kubelets, or from a key that it refuses because it
has expired in this set.

What the operator forgets is asked again. The note in the copy is written after the fact: without it, daemons are asked,
and slurmctld is reconfigured, once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from slinky_operator.cluster.memory.keys import SeenSecret
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.keys import staged_keys, stored_keys
from slinky_operator.cluster.parts.keys.proof import key_holders
from slinky_operator.cluster.parts.keys.proof.answers import NOT_ASKED, KeyProof
from slinky_operator.cluster.parts.keys.proof.question import KeySetQuestion
from slinky_operator.cluster.parts.keys.sets import key_sets
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.secrets import Source
from slinky_operator.reconcile.text import moment
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.key_proof import Daemon, Holder, KeySet
from slinky_operator.slurm.naming import KeySource

KUBELETS: Final = 120.0
"""Seconds in which kubelets mount a changed Secret: 72 were measured, and their usual limit is 90."""

VALID: Final = 60.0
"""Seconds for which a daemon's proof counts when the next step is to be accepted."""

PAUSE: Final = 5.0
"""Seconds between two rounds of questions; doubled each time."""

LONGEST_PAUSE: Final = 60.0

AGAIN: Final = 120.0
"""Seconds until slurmctld is reconfigured again for daemons that have not read the set; more after a while."""

LONGEST_AGAIN: Final = 1800.0

SETTLED: Final = 5.0
"""Seconds after a reconfigure until daemons are asked."""

NOT_READ: Final = "has not read the set since kubelets have had time to mount it"

_ALL: Final = " all"
_READ: Final = " read"
_SAME: Final = " same"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the daemons are with the accepted set."""

    set: KeySet | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)
    """Daemons that have not proven to have it, and what is missing; empty once all have."""

    known: bool = True
    """Whether each daemon has been asked, so that `lacking` is more than the lack of an answer."""

    loaded: bool = True
    """Whether slurmctld is known to have read the set."""

    outdated: bool = False
    """Whether a daemon has shown that another reconfigure would help it."""

    asked: tuple[Holder, ...] = ()
    """Daemons to be asked now."""

    not_reloading: frozenset[str] = frozenset()
    """Ids of daemons that run with another set and read theirs at their start only."""

    all: frozenset[str] = frozenset()
    """Ids of all daemons that are asked."""

    since: datetime | None = None
    """Since when they are asked."""

    note: bytes = b""
    """What the copy must say of the set."""


def seen(snapshot: Snapshot, source: KeySource, now: float, *, accepted_before: bool) -> SeenSecret | None:
    """The version of the Secret, and since when it is known.

    Parameters
    ----------
    accepted_before
        Whether it holds what is in the copy.
    """
    found, before = snapshot.sources.get(source.secret), snapshot.memory.keys.seen
    if found is None or not found.exists:
        return before
    if before is None:
        return SeenSecret(found.version, now)
    if before.version == found.version:
        return before
    return SeenSecret(found.version, now, changed=True, suspect=accepted_before or before.refused)


def settles_in(snapshot: Snapshot, source: KeySource, version: SeenSecret | None, now: float, wall: datetime) -> float:
    """Seconds for which a kubelet may still have a refused content of the Secret mounted, for slurmctld or slurmds.

    What the Secret held in between counts, even if it was never read here. An accepted step needs no wait: daemons go
    together with it as with the one before. After a start of the operator, any recent write may have been either.
    Where no pod mounts the user's Secret, only what somebody else has written into the staged one counts.
    """
    staged = snapshot.memory.keys.staged
    if staged is not None and staged.suspect and snapshot.pods.controller is not None:
        return max(0.0, _settled_at(snapshot, source, version, now, wall) - now)
    if not staged_keys.is_direct(snapshot, source):
        return 0.0
    found = snapshot.sources.get(source.secret)
    if (
        found is None
        or version is None
        or snapshot.pods.controller is None
        or (version.changed and not version.suspect)
    ):
        return 0.0
    created = _created(snapshot)
    if not version.changed and (found.written_at is None or (created is not None and found.written_at <= created)):
        return 0.0
    return max(0.0, _settled_at(snapshot, source, version, now, wall) - now)


def standing(
    snapshot: Snapshot,
    source: KeySource,
    known: bytes,
    version: SeenSecret | None,
    now: float,
    wall: datetime,
    *,
    next_waits: bool,
) -> Standing:
    """Find out how far the daemons are with the accepted set.

    Parameters
    ----------
    known
        The accepted set.
    version
        Of the Secret.
    now
        Monotonic seconds.
    wall
        The time of day.
    next_waits
        Whether the Secret has another set, which is accepted if this one is proven, now: nothing is noted then if
        daemons may read the other one.
    """
    may_read_next = next_waits and staged_keys.is_direct(snapshot, source)
    mark, stored = key_sets.mark(known).encode(), stored_keys.note(snapshot)
    if not next_waits and (stored == mark + _ALL.encode() or not stored_keys.started(snapshot)):
        return Standing(note=mark + _ALL.encode())
    key_set = key_sets.read(known, wall)
    if key_set is None:
        # Daemons run with it all the same; nothing can be asked.
        lacking = {"the set that daemons have": "cannot be read here"} if next_waits else {}
        return Standing(lacking=lacking, note=stored)
    loaded = stored in {mark + one.encode() for one in (_READ, _ALL)}
    loaded = loaded or (not may_read_next and _was_read(snapshot, source, version, now, wall))
    found = key_holders.holders(snapshot)
    proof = snapshot.memory.answers.of(KeySetQuestion)
    proof = proof if proof is not None and proof.set == key_set.id else None
    read = (
        snapshot.memory.rollout.loaded.since + SETTLED if snapshot.memory.rollout.loaded is not None else float("-inf")
    )
    lacking, due, known_all, outdated = dict(found.unproven), [], True, False
    not_reloading: set[str] = set()
    confirmed = key_holders.is_confirmed(snapshot, key_set.ids)
    for one in found.asked:
        of_one = proof.found.get(one.id) if proof is not None else None
        if of_one is None or (next_waits and not of_one.lacks and now - of_one.at > VALID):
            known_all = False
            lacking[one.name] = NOT_ASKED
        elif of_one.lacks and not (confirmed and one.elsewhere and not of_one.outdated):
            outdated = outdated or (of_one.outdated and one.reloads and of_one.at >= read)
            lacking[one.name] = of_one.lacks
            if of_one.outdated and not one.reloads:
                not_reloading.add(one.id)
        else:
            # One that signs as before shows the set by its keys, and one that refuses an expired key by that.
            shown_by = stored.split(b" ")[1:] if stored.startswith(mark) else []
            shows = stored == mark + _SAME.encode() or any(
                key_sets.mark(gone.kid.encode()).encode() in shown_by for gone in key_set.expired
            )
            loaded = loaded or (one.daemon is Daemon.SLURMCTLD and shows)
            continue
        due.append(one)
    if not loaded:
        lacking.setdefault("slurmctld", NOT_READ)
    is_due = proof is None or now - proof.asked >= _pause(proof) or proof.asked < read <= now
    note = mark + (_READ if lacking else _ALL).encode()
    return Standing(
        key_set,
        lacking,
        known_all,
        loaded,
        outdated,
        tuple(due) if is_due else (),
        frozenset(not_reloading),
        frozenset(one.id for one in found.asked),
        proof.since if proof is not None else None,
        note if loaded and not may_read_next else stored,
    )


def first_note(before: bytes, accepted: bytes) -> bytes:
    """What the copy says of a set in the moment in which it is accepted: what shows that slurmctld has read it.

    Daemons that sign as before show it by the keys that they take. Those that switch show it by a key that they refuse
    once it has expired, if it had no end in the set before.
    """
    mark = key_sets.mark(accepted)
    if key_sets.default_of(before) == key_sets.default_of(accepted):
        return f"{mark}{_SAME}".encode()
    retired = key_sets.without_end(before) - key_sets.without_end(accepted)
    return " ".join([mark, *(key_sets.mark(one.encode()) for one in sorted(retired))]).encode()


def reload_due(
    snapshot: Snapshot, source: KeySource, found: Standing, version: SeenSecret | None, now: float, wall: datetime
) -> float:
    """Seconds until slurmctld is to be reconfigured for the accepted set; infinite if that would change nothing."""
    if found.set is None or (found.loaded and not found.outdated):
        return float("inf")
    settled_at, last = _settled_at(snapshot, source, version, now, wall), snapshot.memory.rollout.loaded
    settles = settled_at - now
    if last is None or last.since < settled_at or not last.proven:
        return settles
    waited = (wall - found.since).total_seconds() if found.since is not None else 0.0
    return max(settles, last.since + min(LONGEST_AGAIN, max(AGAIN, waited / 2)) - now)


def to_restart(
    snapshot: Snapshot, source: KeySource, found: Standing, version: SeenSecret | None, now: float, wall: datetime
) -> Iterator[Object]:
    """Pods of slurmdbd that have started with what their kubelet had mounted before, once it has had its time.

    A pod is deleted once: the next one is created later than that.
    """
    written = _written_at(snapshot, source)
    if written is None or not found.not_reloading or _settled_at(snapshot, source, version, now, wall) > now:
        return
    for pod in snapshot.pods.daemons.get(naming.COMPONENT_ACCOUNTING, ()):
        created = moment(pod["metadata"].get("creationTimestamp"))
        is_late = created is not None and created - written < timedelta(seconds=KUBELETS)
        if is_late and any(pod["metadata"]["uid"] in one.split(" ") for one in found.not_reloading):
            yield pod


def touched_after(
    snapshot: Snapshot, source: KeySource, version: SeenSecret | None, now: float, wall: datetime
) -> float:
    """Since when slurmctld's pod must have been touched for the next reconfigure, in monotonic seconds."""
    last = snapshot.memory.rollout.loaded
    before = last.since if last is not None and last.proven else float("-inf")
    return max(before, _settled_at(snapshot, source, version, now, wall))


def _was_read(snapshot: Snapshot, source: KeySource, version: SeenSecret | None, now: float, wall: datetime) -> bool:
    """Whether slurmctld has read its keys, or was started, after kubelets have mounted this version of the Secret."""
    if not staged_keys.is_current(snapshot, source):
        return False
    last, pod = snapshot.memory.rollout.loaded, snapshot.pods.controller
    of_this_pod = pod is not None and last is not None and last.pod_uid == pod["metadata"]["uid"]
    settled_at = _settled_at(snapshot, source, version, now, wall)
    if last is not None and of_this_pod and last.proven and last.since >= settled_at:
        return True
    created, written = _created(snapshot), _written_at(snapshot, source)
    return bool(created and written and created - written >= timedelta(seconds=KUBELETS))


def _settled_at(snapshot: Snapshot, source: KeySource, version: SeenSecret | None, now: float, wall: datetime) -> float:
    """When kubelets have had time to mount what daemons' pods mount now, in monotonic seconds."""
    if not staged_keys.is_current(snapshot, source):
        return now + KUBELETS
    staged = staged_keys.seen(snapshot, source, b"", now)
    return max(
        (
            _mounted_at(one, version if one.name == source.secret else staged, now, wall)
            for one in staged_keys.mounted(snapshot, source)
        ),
        default=float("-inf"),
    )


def _mounted_at(found: Source, version: SeenSecret | None, now: float, wall: datetime) -> float:
    """When kubelets have had time to mount this version of a Secret.

    By the API server's clock, if that agrees with the time since which the version is known here.
    """
    latest = (version.at if version is not None else now) + KUBELETS
    if version is None or version.changed:
        return latest
    if found.written_at is None:
        return float("-inf")
    age = (wall - found.written_at).total_seconds()
    return latest if age < 0 else min(latest, now + KUBELETS - age)


def _written_at(snapshot: Snapshot, source: KeySource) -> datetime | None:
    """When what daemons' pods mount was last written; `None` if nothing says so."""
    times = [one.written_at for one in staged_keys.mounted(snapshot, source)]
    return max((one for one in times if one is not None), default=None)


def _created(snapshot: Snapshot) -> datetime | None:
    """When slurmctld's pod was created."""
    pod = snapshot.pods.controller
    return moment(pod["metadata"].get("creationTimestamp")) if pod is not None else None


def _pause(proof: KeyProof) -> float:
    return min(LONGEST_PAUSE, PAUSE * 2.0 ** min(proof.rounds - 1, 10))
