"""The private key that tokens are signed with (`spec.auth.signingKeyRef`), and the public ones Slurm must have. Pure.

A key is replaced in three steps, so that no token is refused on the way:

1. the public half of the new key joins the set of the daemons, by the way of every configuration;
2. once slurmctld has shown to run with it, and slurmdbd was restarted with it, tokens are signed with the new key;
3. the earlier key stays in the set until the last token that it may have signed has ended.

The key in use, and which were in use before, are in the copy (`stored_keys`): a Secret of the user's that is gone,
changed or unusable is reported, and tokens are signed with the key in use as before. Each step follows from what is
stored, so the operator may die between any two; a step that is done twice changes nothing.

The secret of auth/jwt stays beside: slurmctld takes tokens of both kinds, and the operator falls back on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.daemons import shared_objects
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import stored as accounting
from slinky_operator.cluster.parts.accounting import variants
from slinky_operator.cluster.parts.accounting.mariadb import ANNOTATION_MOUNTS
from slinky_operator.cluster.parts.keys import stored_keys
from slinky_operator.cluster.secrets.checks import Missing, check
from slinky_operator.kube.objects import Object, is_ready
from slinky_operator.slurm import naming
from slinky_operator.slurm.tokens import key_set, signing_keys
from slinky_operator.slurm.tokens.signing_keys import PublicKey, SigningKey, UnusableKey

FORMER: Final = "signing-former.jwks"
"""Key of the copy with the public halves of keys that were in use, each with the time of its end (``exp``)."""

MOST_FORMER: Final = 8
"""Former keys that are kept; of more, tokens of the oldest end early."""

LONGEST_LIFE: Final = timedelta(hours=24)
"""Life of a token of a grant that does not say."""

SKEW: Final = timedelta(minutes=1)
"""Added to the longest life of a token: clocks differ, and a token may be signed by a pass that has begun before."""

_PURPOSE: Final = "spec.auth.signingKeyRef"


@dataclass(frozen=True, slots=True)
class Signing:
    """What tokens are signed with, and what Slurm must know."""

    in_use: SigningKey | None = None
    """`None` if tokens are signed with the secret of auth/jwt."""

    public: tuple[PublicKey, ...] = ()
    """The operator's keys for the set of the daemons: in use, next, former."""

    kept: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Entries of the copy; those without a value are to be removed."""

    trouble: Missing | None = None


@dataclass(frozen=True, slots=True)
class _Former:
    key: PublicKey
    until: datetime


def look(snapshot: Snapshot, wall: datetime) -> Signing:
    """Decide on the key of a managed Cluster.

    Parameters
    ----------
    wall
        The time of day.
    """
    source = naming.signing_key(snapshot.cluster)
    copy = stored_keys.copy_in(snapshot)
    held = copy.data if copy is not None else {}
    in_use = _usable(held.get(naming.SIGNING_KEY, b"") or snapshot.memory.keys.known.get(naming.SIGNING_KEY, b""))
    former = [one for one in _read_former(held.get(FORMER, b"")) if one.until > wall]
    given, trouble = (None, None) if source is None else _given(snapshot, source, in_use)
    following = given if given is not None and given != in_use else None
    ends = source is None and in_use is not None
    if following is not None and _daemons_have(snapshot, signing_keys.public_of(following.value)):
        former, in_use, following = _retired(snapshot.cluster, former, in_use, wall), following, None
    elif ends:
        former, in_use = _retired(snapshot.cluster, former, in_use, wall), None
    if following is not None:
        assert source is not None  # noqa: S101 - it has given the key
        trouble = Missing(Reason.KEY_PENDING, _pending(source.secret, source.key, in_use))
    own = [signing_keys.public_of(one.value) for one in (in_use, following) if one is not None]
    former = [one for one in former if in_use is None or one.key.kid != in_use.key_id]
    public = (*own, *(one.key for one in former if one.key not in own))
    kept = {naming.SIGNING_KEY: in_use.value if in_use is not None else b"", FORMER: _written(former)}
    return Signing(in_use, public, kept, trouble)


def _given(
    snapshot: Snapshot, source: naming.KeySource, in_use: SigningKey | None
) -> tuple[SigningKey | None, Missing | None]:
    """The key in the user's Secret, or why it cannot be used."""
    missing = check(snapshot.sources.get(source.secret), source.secret, source.key, _PURPOSE)
    if missing is not None:
        return None, Missing(missing.reason, f"{missing.message}; {_goes_on(snapshot, in_use)}")
    try:
        return signing_keys.private(stored_keys.value_in(snapshot, source)), None
    except UnusableKey as error:
        words = f"{_PURPOSE}: {source.key} of Secret {source.secret} cannot sign tokens: {error}"
        return None, Missing(Reason.SECRET_INVALID, f"{words}; {_goes_on(snapshot, in_use)}")


def _goes_on(snapshot: Snapshot, in_use: SigningKey | None) -> str:
    if in_use is None:
        return "tokens are signed with the key of auth/jwt meanwhile"
    copy = naming.key_copy(snapshot.cluster.name)
    return (
        f"tokens are still signed with the key in use, {in_use.key_id}, which is {naming.SIGNING_KEY} of Secret {copy}:"
        " put it back, or give another RSA key"
    )


def _pending(secret: str, key: str, in_use: SigningKey | None) -> str:
    now = "the key of auth/jwt" if in_use is None else f"the key in use, {in_use.key_id},"
    return (
        f"{_PURPOSE}: {key} of Secret {secret} is a new key. Slurm gets its public half with the next configuration "
        f"(condition ConfigApplied); tokens are signed with {now} until then"
    )


def _usable(pem: bytes) -> SigningKey | None:
    try:
        return signing_keys.private(pem) if pem else None
    except UnusableKey:
        return None


# Whether the daemons know a key


def _daemons_have(snapshot: Snapshot, key: PublicKey) -> bool:
    """Whether slurmctld has shown to run with a key in its set, and slurmdbd was started with it."""
    name = snapshot.cluster.name
    current, good = (
        shared_objects.intact(snapshot.children.get(("ConfigMap", one)))
        for one in (naming.config(name), naming.good_config(name))
    )
    if current is None or good is None or current["data"] != good["data"]:
        return False
    proven = shared_objects.change_of(current) == shared_objects.change_of(good)
    return proven and key_set.has(current["data"].get(key_set.FILE, ""), key) and _slurmdbd_has(snapshot, key)


def _slurmdbd_has(snapshot: Snapshot, key: PublicKey) -> bool:
    cluster = snapshot.cluster
    if not variants.runs_slurmdbd(cluster):
        return True
    secret = naming.accounting(cluster.name)
    text = accounting.value_in(snapshot, secret, key_set.FILE).decode(errors="replace")
    pods = snapshot.pods.daemons.get(naming.COMPONENT_ACCOUNTING, ())
    digest = accounting.slurmdbd_digest(snapshot)
    return key_set.has(text, key) and bool(pods) and all(_runs_with(pod, digest) for pod in pods)


def _runs_with(pod: Object, digest: str) -> bool:
    started = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_MOUNTS)
    return started == digest and is_ready(pod)


# Former keys


def _retired(cluster: Cluster, former: list[_Former], key: SigningKey | None, wall: datetime) -> list[_Former]:
    """Former keys with one that signs no more, the latest first."""
    if key is None:
        return former
    lives = (grant.max_lifetime or LONGEST_LIFE for grant in cluster.spec.auth.tokens)
    until = wall + max(LONGEST_LIFE, cluster.spec.token_lifetime, *lives) + SKEW
    public = signing_keys.public_of(key.value)
    others = [one for one in former if one.key != public]
    return [_Former(public, until), *others][:MOST_FORMER]


def _read_former(text: bytes) -> list[_Former]:
    try:
        listed: list[dict[str, Any]] = json.loads(text)["keys"] if text else []
        return [
            _Former(PublicKey(str(one["kid"]), str(one["n"]), str(one["e"])), datetime.fromtimestamp(one["exp"], UTC))
            for one in listed[:MOST_FORMER]
            if one["kid"] == signing_keys.thumbprint(str(one["n"]), str(one["e"]))
        ]
    except (ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError):
        return []


def _written(former: list[_Former]) -> bytes:
    """The same as text; empty for none."""
    if not former:
        return b""
    listed = [
        {"kty": "RSA", "kid": one.key.kid, "n": one.key.n, "e": one.key.e, "exp": int(one.until.timestamp())}
        for one in former
    ]
    return json.dumps({"keys": listed}).encode()
