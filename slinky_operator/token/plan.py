"""The rules of a Token: whether it may have its user, and when a token is made, renewed or taken away. Pure.

- A token is renewed at half of its life, so that the API server may be away for the other half. The moment is spread by
  a tenth of the life, always the same for one token: many that were made together are not renewed together.
- What is in the Secret decides, not the status: a token that somebody changed, one signed with an earlier key of the
  Cluster, and one of another user are replaced.
- If the Cluster does not grant the user (any longer), the value in the Secret is removed. If the Cluster or its key
  cannot be seen, nothing is changed: the token in the Secret ends by itself.
- With `refresh: false` there is one token for each spec: a Secret that was deleted is written again with the same end.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.fields import format_duration
from slinky_api.v1alpha1.token import Token
from slinky_operator.reconcile.text import stamp
from slinky_operator.slurm import naming
from slinky_operator.token import grants
from slinky_operator.token.jwts import Claims
from slinky_operator.token.snapshot import Snapshot

CHECK_S: Final = 30.0
"""Seconds until a Token is looked at again, if its token is not due before: nobody tells when a Secret is changed."""

CHECK_EACH_S: Final = 0.1
"""The same for each Token that there is, so that thousands of them do not keep the API server busy."""

SOON_S: Final = 2.0
"""The same while the Secret of an earlier Token of the name is about to be collected."""

LIFE: Final = timedelta(hours=24)
"""Life of a token, if the Token does not say: programs run unattended, and the operator may be away for half of it."""

LIFE_ONCE: Final = timedelta(minutes=15)
"""The same of one that is not renewed."""

MOST: Final = 250
"""Tokens of one Cluster in one namespace that are served, the oldest first."""

SKEW: Final = timedelta(seconds=5)
"""A token made later than now by more than this was made before the clock was set back."""

_RESERVED: Final = (
    *naming.generated_secrets(""),
    naming.job_logs_key(""),
    naming.exporter(""),
    naming.HOST_KEYS_SUFFIX,
)
"""Ends of the names of Secrets that the operator makes for Clusters and LoginSets."""


class Write(Enum):
    """What to do with the Secret."""

    CREATE = "create"
    PATCH = "patch"
    """Set the value."""
    CLEAR = "clear"
    """Remove the value."""
    DELETE = "delete"
    """Delete it, since it is immutable; the next pass makes another."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is no token, and what to do."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass does."""

    write: Write | None = None
    claims: Claims | None = None
    """What the token in the Secret says, after the write; None if there is none, or it cannot be told."""
    problem: Problem | None = None
    wake_up: float = CHECK_S
    """Seconds until the next pass, if nothing happens."""
    keeps_token: bool = False
    """Whether the Secret may have a token that this pass could not read: the status keeps its times."""


def plan(snapshot: Snapshot) -> Plan:
    """Decide what to do about a Token."""
    refused = _refused(snapshot)
    if refused is not None:
        return _without(snapshot, refused)
    unseen = _unseen(snapshot)
    if unseen is not None:
        collected = snapshot.secret is not None and snapshot.secret.of_namesake
        keeps = unseen.reason is not Reason.SECRET_NOT_OWNED
        return Plan(problem=unseen, wake_up=SOON_S if collected else CHECK_S, keeps_token=keeps)
    found = snapshot.secret.claims if snapshot.secret is not None else None
    if found is not None and _is_good(snapshot, found):
        return Plan(claims=found, wake_up=_until_due(snapshot, found))
    claims = _wanted(snapshot)
    return _ended(snapshot, found) if claims is None else _issued(snapshot, claims)


def _is_of_exporter(token: Token) -> bool:
    """Whether it is the Token that the operator makes for the exporter of a Cluster."""
    namespace, name = token.cluster_key
    own = token.metadata.labels.get(labels.LABEL_CLUSTER_NAME) == name
    return own and namespace == token.namespace and token.name == token.secret_name == naming.exporter(name)


def due(token: Token, claims: Claims) -> datetime:
    """When a token is to be renewed: between 0.45 and 0.55 of its life."""
    seed = f"{token.uid}{claims.issued.timestamp()}".encode()
    return claims.issued + claims.life * (0.45 + 0.1 * (zlib.crc32(seed) / 2**32))


# Whether there may be a token


def _refused(snapshot: Snapshot) -> Problem | None:
    """Why the Token may have none, as far as the Cluster can be seen."""
    token, cluster = snapshot.token, snapshot.cluster
    if token.secret_name.endswith(_RESERVED) and not _is_of_exporter(token):
        return Problem(
            Reason.SECRET_NAME_RESERVED,
            f"Secret {token.secret_name}: names that end in {', '.join(_RESERVED)} are reserved for Clusters and "
            "LoginSets; name another one in spec.secretRef of a new Token",
        )
    if cluster is None:
        return None
    user, wanted = token.spec.username, token.spec.lifetime
    longest = grants.longest_life(cluster, token.namespace, user)
    if longest is None:
        return _not_granted(token)
    if cluster.spec.external:
        return Problem(
            Reason.NOT_SUPPORTED,
            f"Cluster {cluster.name} has spec.server: its Slurm runs elsewhere, and so do its keys; make the token "
            "there, with scontrol token",
        )
    if wanted is not None and wanted > longest:
        return Problem(
            Reason.LIFETIME_TOO_LONG,
            f"spec.lifetime is {format_duration(wanted)}, and the Cluster grants tokens of {user} for "
            f"{format_duration(longest)} at most (spec.auth.tokens[].maxLifetime)",
        )
    return None


def _not_granted(token: Token) -> Problem:
    """The same words whether the Cluster exists or not: a tenant need not learn what other namespaces have."""
    where, name = token.cluster_key
    user, cluster = token.spec.username, name if where == token.namespace else f"{where}/{name}"
    told = f"Cluster {cluster} does not grant tokens of {user} to namespace {token.namespace}"
    if where != token.namespace:
        told += ", or does not exist"
    more = ", by its exact name" if user.lower() in grants.PRIVILEGED else ""
    return Problem(
        Reason.NOT_GRANTED,
        f"{told}. Anyone who may change that Cluster can add namespace and user to spec.auth.tokens{more}",
    )


def _unseen(snapshot: Snapshot) -> Problem | None:
    """What is missing for a token that the Token may have."""
    token, cluster, secret = snapshot.token, snapshot.cluster, snapshot.secret
    if cluster is None:
        if token.cluster_key[0] != token.namespace:
            return _not_granted(token)
        return Problem(
            Reason.CLUSTER_NOT_FOUND,
            f"there is no Cluster {token.cluster_key[1]} in namespace {token.namespace}, or its spec is invalid",
        )
    if snapshot.is_surplus:
        return Problem(
            Reason.TOO_MANY_TOKENS,
            f"namespace {token.namespace} has {MOST} older Tokens of this Cluster, which is the maximum; delete some",
        )
    if secret is not None and not secret.is_ours:
        owned = f"it belongs to {secret.owner}" if secret.owner else "it was not made for this Token"
        return Problem(
            Reason.SECRET_NOT_OWNED,
            f"Secret {token.secret_name} exists and {owned}; it is not changed. Delete it, or name another one in "
            "spec.secretRef of a new Token",
        )
    if snapshot.key is None:
        return Problem(
            Reason.CLUSTER_NOT_READY,
            f"Cluster {cluster.name} has no key of auth/jwt yet, or lost it: its condition Ready says why",
        )
    return None


def _without(snapshot: Snapshot, problem: Problem) -> Plan:
    """Take away the token that is there."""
    secret = snapshot.secret
    if secret is None or not secret.is_ours or not secret.has_value:
        return Plan(problem=problem)
    return Plan(Write.DELETE if secret.immutable else Write.CLEAR, problem=problem)


# Whether a token is good


def _is_good(snapshot: Snapshot, found: Claims) -> bool:
    token, now = snapshot.token, snapshot.now
    if found.username != token.spec.username or found.issued > now + SKEW:
        return False
    if not token.spec.refresh and token.status.observed_generation == token.metadata.generation:
        # The rest of a life is shorter than the life that was asked for.
        return found.expires > now
    return found.life == _life(snapshot) and now < due(token, found)


def _wanted(snapshot: Snapshot) -> Claims | None:
    """The token to make; None if there was one, and it is not to be renewed."""
    token, now = snapshot.token, snapshot.now.replace(microsecond=0)
    ends, status = now + _life(snapshot), token.status
    if not token.spec.refresh and status.observed_generation == token.metadata.generation and status.expires_at:
        ends = min(ends, status.expires_at)
    return Claims(token.spec.username, now, ends) if ends > now else None


def _issued(snapshot: Snapshot, claims: Claims) -> Plan:
    """Write a token."""
    secret, wake_up = snapshot.secret, _until_due(snapshot, claims)
    if secret is not None and secret.immutable:
        return Plan(Write.DELETE, wake_up=0.0)
    return Plan(Write.CREATE if secret is None else Write.PATCH, claims, wake_up=wake_up)


def _ended(snapshot: Snapshot, found: Claims | None) -> Plan:
    """Say that there was a token, and will be no other."""
    ended = snapshot.token.status.expires_at
    told = f"the token ended{f' at {stamp(ended)}' if ended is not None else ''} and is not renewed"
    why = f"{told} (spec.refresh is false); recreate the Token for a new one"
    return Plan(claims=found, problem=Problem(Reason.TOKEN_EXPIRED, why), keeps_token=True)


def _until_due(snapshot: Snapshot, claims: Claims) -> float:
    at = due(snapshot.token, claims) if snapshot.token.spec.refresh else claims.expires
    return min(CHECK_S, max(1.0, (at - snapshot.now).total_seconds()))


def _life(snapshot: Snapshot) -> timedelta:
    """The life to give: whole seconds, as a JWT has them."""
    token = snapshot.token
    assert snapshot.cluster is not None  # noqa: S101 - asked before
    longest = grants.longest_life(snapshot.cluster, token.namespace, token.spec.username) or LIFE
    usual = LIFE if token.spec.refresh else LIFE_ONCE
    return timedelta(seconds=int((token.spec.lifetime or min(usual, longest)).total_seconds()))
