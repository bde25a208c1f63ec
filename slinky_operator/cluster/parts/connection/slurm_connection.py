"""The part of the plan about the connection to Slurm: its settings, and why there is none."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.auth import TOKEN_KEY
from slinky_operator.cluster.actions import Connect
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.secrets.checks import Missing, check, not_allowed
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.contact import LONGEST_PAUSE, Endpoint
from slinky_operator.slurm.tokens.signing_keys import SigningKey


@dataclass(frozen=True, slots=True)
class Connection:
    """What is known of the connection."""

    missing: Missing | None = None
    """Why there is none."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Limits for every connection, from the settings."""

    timeout: float = 30.0
    poll_interval: float = 1.0
    poll_interval_max: float = 30.0
    most_elsewhere: int = 20
    """Clusters of one namespace whose Slurm runs elsewhere and that are connected to; 0 for any number."""


LONGEST_PAUSE_ELSEWHERE: Final = 60.0
"""Seconds between two questions to a Slurm elsewhere that does not answer, or refuses, at most: the pause grows with
the time for which it has not."""


def too_many(snapshot: Snapshot, pace: Pace) -> Missing | None:
    """Why this Slurm is not connected to, whatever its settings: older ones of the namespace are all that it may have.

    Parameters
    ----------
    snapshot
        Of the Cluster.
    pace
        The limits.
    """
    most, namespace = pace.most_elsewhere, snapshot.cluster.namespace
    if not snapshot.cluster.spec.external or not most or snapshot.older_elsewhere < most:
        return None
    return Missing(
        Reason.TOO_MANY_CLUSTERS,
        f"namespace {namespace} has {most} older Clusters with server, and the operator connects to {most} in one "
        "namespace: delete one of them, or ask the administrator of the operator to raise "
        "external_clusters_per_namespace (limits.externalClusters of its chart)",
    )


def connect(snapshot: Snapshot, keys: tuple[SigningKey, ...], pace: Pace) -> Connect | Missing:
    """The settings of the connection.

    Parameters
    ----------
    keys
        Keys whose tokens slurmctld may take.
    """
    cluster = snapshot.cluster
    spec = cluster.spec
    endpoint = Endpoint(
        snapshot.server,
        ca_pem=spec.ca_pem,
        timeout=pace.timeout,
        poll_interval=pace.poll_interval,
        poll_interval_max=pace.poll_interval_max,
        longest_pause=LONGEST_PAUSE_ELSEWHERE if spec.external else LONGEST_PAUSE,
    )
    token = ""
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
        trouble = not_allowed(snapshot, name, "token", as_token=wanted == TOKEN_KEY)
        if trouble is not None:
            return trouble
        digest = snapshot.sources[name].digest(wanted)
    else:
        ref = naming.jwt_key(cluster)
        assert ref is not None  # noqa: S101 - the API demands one of the two
        purpose = "key of auth/jwt"
        trouble = not_allowed(snapshot, ref.secret, purpose)
        if trouble is None and not keys:
            nowhere = Missing(Reason.SECRET_NOT_FOUND, f"{purpose}: that of slurmctld is not in Secret {ref.secret}")
            trouble = check(snapshot.sources.get(ref.secret), ref.secret, ref.key, purpose) or nowhere
        if trouble is not None:
            return trouble
        digest = hashlib.sha256(b"".join(hashlib.sha256(key.value).digest() for key in keys)).hexdigest()
    parts = (endpoint, digest, spec.token_lifetime, spec.token is None)
    fingerprint = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    return Connect(endpoint, fingerprint, token, () if token else keys, spec.token_lifetime)
