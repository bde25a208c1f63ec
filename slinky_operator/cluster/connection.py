"""The part of the plan about the connection with Slurm: what it is made of, and why it cannot be made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from slinky_api.conditions import Reason
from slinky_operator.cluster.actions import Connect
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.sources import Source
from slinky_operator.slurm import naming
from slinky_operator.slurm.clients import Endpoint


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no connection, or no daemon."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Pace:
    """Times for every connection, from the settings."""

    timeout: float = 30.0
    poll_interval: float = 1.0
    poll_interval_max: float = 30.0


def check(source: Source | None, name: str, key: str, purpose: str) -> Missing | None:
    """Whether a Secret holds what it is to hold."""
    if source is None or not source.exists:
        return Missing(Reason.SECRET_NOT_FOUND, f"{purpose}: there is no Secret {name}")
    if key not in source.data:
        has = ", ".join(sorted(source.data)) or "none"
        return Missing(Reason.SECRET_KEY_NOT_FOUND, f"{purpose}: Secret {name} has no key {key} (its keys: {has})")
    if not source.data[key].strip():
        return Missing(Reason.SECRET_INVALID, f"{purpose}: key {key} of Secret {name} is empty")
    return None


def slurm_key_trouble(snapshot: Snapshot) -> Missing | None:
    """Why the key of auth/slurm cannot be mounted, for a managed Cluster."""
    key = naming.slurm_key(snapshot.cluster)
    if key is None:
        return None
    return _check_key(snapshot, key, "key of auth/slurm")


def _check_key(snapshot: Snapshot, key: naming.KeySource, purpose: str) -> Missing | None:
    source = snapshot.sources.get(key.secret)
    if key.generated and (source is None or not source.exists):
        return Missing(Reason.DAEMONS_STARTING, f"{purpose}: being made")
    return check(source, key.secret, key.key, purpose)


def connect(snapshot: Snapshot, pace: Pace) -> Connect | Missing:
    """What the connection is to be made of."""
    cluster = snapshot.cluster
    spec = cluster.spec
    endpoint = Endpoint(
        snapshot.server,
        ca_pem=spec.ca_pem,
        timeout=pace.timeout,
        poll_interval=pace.poll_interval,
        poll_interval_max=pace.poll_interval_max,
    )
    token, key = "", b""
    if spec.token is not None:
        name, wanted = spec.token.secret_name, spec.token.secret_key
        trouble = check(snapshot.sources.get(name), name, wanted, "token")
        if trouble is not None:
            return trouble
        content = snapshot.sources[name].data[wanted]
        if not content.isascii():
            return Missing(Reason.SECRET_INVALID, f"token: key {wanted} of Secret {name} is not a token")
        token = content.decode("ascii").strip()
        if any(character.isspace() or not character.isprintable() for character in token):
            return Missing(Reason.SECRET_INVALID, f"token: key {wanted} of Secret {name} is not a token")
        digest = snapshot.sources[name].digest(wanted)
    else:
        ref = naming.jwt_key(cluster)
        assert ref is not None  # noqa: S101 - the API demands one of the two
        trouble = _check_key(snapshot, ref, "key of auth/jwt")
        if trouble is not None:
            return trouble
        key = snapshot.sources[ref.secret].data[ref.key]
        digest = snapshot.sources[ref.secret].digest(ref.key)
    parts = (endpoint, digest, spec.token_lifetime, spec.token is None)
    fingerprint = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    return Connect(endpoint, fingerprint, token, key, spec.token_lifetime)
