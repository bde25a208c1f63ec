"""What a pass over a Token knows, read once and frozen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.token import Token
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slinky_operator.token.jwts import Claims


@dataclass(frozen=True, slots=True)
class StoredToken:
    """The Secret of the Token's name, as the API server has it."""

    uid: str
    resource_version: str
    is_ours: bool
    """Whether this very Token is its controller."""
    owner: str = ""
    """Kind and name of another controller; empty without one."""
    of_namesake: bool = False
    """Whether that is a Token of the same name that is gone: the garbage collector will delete the Secret."""
    immutable: bool = False
    has_value: bool = False
    """Whether there is anything under the Token's key."""
    claims: Claims | None = None
    """What the token says; None unless it was signed with `Snapshot.key`."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the plan reads."""

    token: Token
    now: datetime
    cluster: Cluster | None
    """None if there is none, or it cannot be read."""
    key: SigningKey | None
    """The key whose tokens the Cluster's slurmctld takes; None if it is not known."""
    secret: StoredToken | None
    """None if there is no Secret of this name."""
    is_surplus: bool = False
    """Whether the namespace has `plan.MOST` older Tokens of this Cluster."""
