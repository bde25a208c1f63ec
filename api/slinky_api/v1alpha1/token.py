"""Kind Token: a JWT for one Slurm user, signed by the operator with a Cluster's key, kept fresh in a Secret.

Who may have which users is in ``spec.auth.tokens`` of the Cluster (`cluster_auth`), not here: anyone who writes a Token
need not be allowed to change the Cluster.
"""

import re
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from slinky_api.resource import Column, Resource
from slinky_api.v1alpha1.cluster.auth import TOKEN_KEY, Lifetime
from slinky_api.v1alpha1.common import CONDITIONS, GROUP, VERSION, ApiModel, ApiObject, Condition, KeyRef, ObjectMeta
from slinky_api.v1alpha1.fields import DnsLabel, Namespace, UserName
from slinky_api.v1alpha1.rules import Rule, Text, cel, cel_string

NOBODY: Final = "nobody"
"""The user of a Token that names none."""

_NUMBER: Final = "^([0-9]+|0[xX][0-9a-fA-F]*)$"
_NUMBER_PATTERN: Final = re.compile(_NUMBER, re.ASCII)

NO_NUMBER: Final = Rule(
    "must be a name and not a number: Slurm reads a number as a uid, and 0 is root",
    lambda text: _NUMBER_PATTERN.match(text) is None,
    f"!self.matches({cel_string(_NUMBER)})",
)
"""Of a user's name."""


TokenUser = Annotated[UserName, Text(NO_NUMBER, at_least=1, at_most=64)]
TOKEN: Final = Resource(
    group=GROUP,
    version=VERSION,
    kind="Token",
    plural="tokens",
    singular="token",
    short_names=("jwt",),
    categories=("slurm", "slinky"),
    columns=(
        Column("USER", ".status.username", "string", "The Slurm user."),
        Column("ISSUED", ".status.issuedAt", "date", "Age of the token."),
        Column("EXPIRES", ".status.expiresAt", "string", "When the token ends."),
        Column("AGE", ".metadata.creationTimestamp", "date"),
        Column("CLUSTER", ".spec.clusterRef.name", "string", "The Cluster.", wide=True),
        Column("SECRET", ".status.secretName", "string", "The Secret with the token.", wide=True),
        Column(
            "REASON",
            ".status.conditions[?(@.type=='Ready')].reason",
            "string",
            "Reason of the condition Ready.",
            wide=True,
        ),
        Column("STATUS", ".status.summary", "string", "The problem, if there is one.", wide=True),
    ),
)


class ClusterRef(ApiModel):
    """The Cluster whose key signs the token."""

    name: DnsLabel
    """Name of the Cluster."""
    namespace: Namespace | None = None
    """Its namespace. Default: the Token's own. Another one must grant the Token's namespace its users, in
    spec.auth.tokens of the Cluster."""


class TokenSpec(ApiModel):
    """The desired token."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "self.clusterRef == oldSelf.clusterRef",
                    "clusterRef is immutable; create another Token",
                    field=".clusterRef",
                ),
                cel(
                    "has(self.secretRef) == has(oldSelf.secretRef)"
                    " && (!has(self.secretRef) || self.secretRef == oldSelf.secretRef)",
                    "secretRef is immutable, so that no Secret with a token is left over; create another Token",
                    field=".secretRef",
                ),
            ]
        }
    )

    cluster_ref: ClusterRef
    """The Cluster whose key signs the token."""
    username: TokenUser = NOBODY
    """The Slurm user that the token stands for; the Cluster must grant it to the Token's namespace."""
    lifetime: Lifetime | None = None
    """Life of the token, at least 30s; the Cluster sets the maximum. A pod sees a changed Secret up to two minutes
    later, so a token that pods mount should live for 5m or more. While the operator is away nothing is renewed.
    Default: 24h, or 15m with refresh: false, or the Cluster's maximum if that is shorter."""
    refresh: bool = True
    """Whether the token is renewed, at half of its life. Otherwise it ends once, and stays ended."""
    secret_ref: KeyRef | None = None
    """The Secret to write, in the Token's namespace, and the key in it. A Secret of this name that was not made for
    this Token is never changed. Default: the Token's name, and auth-token. Immutable."""


class TokenStatus(ApiModel):
    """The observed state of the token. It never contains the token itself."""

    summary: str = ""
    """The problem, if there is one, in one line."""
    username: str = ""
    """The Slurm user of spec.username, or the default."""
    issued_at: datetime | None = None
    """When the token in the Secret was made; absent if there is none."""
    expires_at: datetime | None = None
    """When it ends."""
    secret_name: str | None = None
    """The Secret with the token."""
    observed_generation: int | None = None
    """The generation of the spec that this status describes."""
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()
    """Conditions of the Token."""


class Token(ApiObject):
    """A JWT for one Slurm user, kept fresh in a Secret of the same name."""

    kind: Literal["Token"] = "Token"
    metadata: ObjectMeta
    spec: TokenSpec
    """The desired token."""
    status: TokenStatus = Field(default_factory=TokenStatus)
    """The observed state of the token."""

    @property
    def cluster_key(self) -> tuple[str, str]:
        """Namespace and name of its Cluster."""
        return self.spec.cluster_ref.namespace or self.namespace, self.spec.cluster_ref.name

    @property
    def secret_name(self) -> str:
        """Name of its Secret."""
        return self.spec.secret_ref.name if self.spec.secret_ref is not None else self.name

    @property
    def secret_key(self) -> str:
        """Key within the Secret."""
        return (self.spec.secret_ref.key if self.spec.secret_ref is not None else None) or TOKEN_KEY
