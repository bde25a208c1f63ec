"""Authentication of a Cluster: tokens and keys."""

from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from slinky_api.v1alpha1.common import SET, ApiModel, KeyRef
from slinky_api.v1alpha1.fields import Duration, Namespace, UserName
from slinky_api.v1alpha1.rules import Keywords

TOKEN_KEY: Final = "auth-token"  # noqa: S105
"""Default key of the token's Secret; the only one that Slinky 0.1 had."""


def _secret_ref(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


SecretRefOrName = Annotated[
    KeyRef,
    BeforeValidator(_secret_ref),
    # A text or an object. Kubernetes has a keyword for "number or text" only, and CEL does not see fields without a
    # type. But each keyword of JSON Schema applies to one type only, so those of numbers, arrays and Booleans are made
    # unsatisfiable, which leaves a text or an object, each with its own rules.
    Keywords(
        {
            "x-kubernetes-preserve-unknown-fields": True,
            "minLength": 1,
            "maxLength": 253,
            "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
            "required": ["name"],
            "properties": {
                "name": {
                    "type": "string",
                    "description": "Name of the Secret.",
                    "minLength": 1,
                    "maxLength": 253,
                    "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
                },
                "key": {
                    "type": "string",
                    "description": "Key within it.",
                    "minLength": 1,
                    "maxLength": 253,
                    "pattern": r"^[-._a-zA-Z0-9]+$",
                },
            },
            "minimum": 1,
            "maximum": 0,
            "minItems": 1,
            "maxItems": 0,
            "not": {"enum": [True, False]},
        },
        replace=True,
    ),
]


class Token(ApiModel):
    """How to authenticate with a Slurm that runs elsewhere."""

    secret_ref: SecretRefOrName
    """The Secret with the token: its name, as in Slinky 0.1, or an object with name and key. Default key: auth-token.
    The Secret must name the server in its annotation cluster.slinky.slurm.net/server, unless it contains only a JWT of
    Slurm under auth-token."""

    @property
    def secret_name(self) -> str:
        """Name of the Secret."""
        return self.secret_ref.name

    @property
    def secret_key(self) -> str:
        """Key within the Secret."""
        return self.secret_ref.key or TOKEN_KEY


class TokenGrant(ApiModel):
    """Who may request tokens of this cluster."""

    namespaces: Annotated[tuple[Namespace, ...], Field(max_length=256), SET] = ()
    """Namespaces in which tokens may be requested. Default: the Cluster's own."""
    usernames: Annotated[tuple[UserName, ...], Field(max_length=1024), SET] = ()
    """Slurm users for whom tokens may be requested."""


class Auth(ApiModel):
    """Keys and tokens."""

    slurm_key_ref: KeyRef | None = None
    """Secret with the key of auth/slurm (key slurm.key, or a key set as slurm.jwks). Generated if not set. With
    spec.server, the Secret must name the server in its annotation cluster.slinky.slurm.net/server."""
    jwt_key_ref: KeyRef | None = None
    """Secret with the HS256 key of auth/jwt (key jwt_hs256.key). Generated if not set. With spec.server, the operator
    signs its tokens with it, and spec.token is not needed; the Secret must then name the server in its annotation
    cluster.slinky.slurm.net/server."""
    jwks_ref: KeyRef | None = None
    """ConfigMap with the public keys (key jwks.json) of other token issuers. Not supported yet: has no effect, and
    Degraded says so."""
    token_lifetime: Duration | None = None
    """Lifetime of the tokens that the operator signs for itself, for example 30m or 1h30m. They are renewed after half
    of it. Default: 15m."""
    tokens: Annotated[tuple[TokenGrant, ...], Field(max_length=64)] = ()
    """Who may request tokens. Not supported yet: has no effect, and Degraded says so."""
