"""How a Cluster says who may speak to its Slurm: tokens and keys."""

from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from slinky_api.v1alpha1.common import SET, ApiModel, KeyRef
from slinky_api.v1alpha1.fields import Duration, Namespace, UserName
from slinky_api.v1alpha1.rules import Keywords

TOKEN_KEY: Final = "auth-token"  # noqa: S105
"""Key of the token's Secret where none is named; the only one 0.1 knew."""


def _secret_ref(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


SecretRefOrName = Annotated[
    KeyRef,
    BeforeValidator(_secret_ref),
    # A text or an object. Kubernetes has a word for "number or text" only, and CEL does not see fields without a type.
    # But each keyword of JSON Schema speaks of one type alone, so those of numbers, arrays and Booleans can be made
    # impossible, and what is left is a text or an object, each with its own rules.
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
    """The Secret with the token: its name, as in Slinky 0.1, or an object with name and key. The key is
    auth-token where none is named. The Secret must name the server in its annotation cluster.slinky.slurm.net/server,
    unless it holds nothing but a JWT of Slurm's under auth-token."""

    @property
    def secret_name(self) -> str:
        """Name of the Secret."""
        return self.secret_ref.name

    @property
    def secret_key(self) -> str:
        """Key within the Secret."""
        return self.secret_ref.key or TOKEN_KEY


class TokenGrant(ApiModel):
    """Who may have tokens of this cluster."""

    namespaces: Annotated[tuple[Namespace, ...], Field(max_length=256), SET] = ()
    """Namespaces in which tokens may be asked for; the Cluster's own where empty."""
    usernames: Annotated[tuple[UserName, ...], Field(max_length=1024), SET] = ()
    """Slurm users they may be for."""


class Auth(ApiModel):
    """Keys and tokens."""

    slurm_key_ref: KeyRef | None = None
    """Secret with the key of auth/slurm (key slurm.key, or a key set as slurm.jwks); generated where absent. With
    spec.server, the Secret must name the server in its annotation cluster.slinky.slurm.net/server."""
    jwt_key_ref: KeyRef | None = None
    """Secret with the HS256 key of auth/jwt (key jwt_hs256.key); generated where absent. With spec.server, the operator
    mints its tokens from it, and spec.token is not needed; the Secret must then name the server in its annotation
    cluster.slinky.slurm.net/server."""
    jwks_ref: KeyRef | None = None
    """ConfigMap with the public keys (key jwks.json) of whoever else issues tokens. Not supported yet: without effect,
    and Degraded says so."""
    token_lifetime: Duration | None = None
    """Lifetime of the tokens that the operator mints for itself, renewed at half of it: hours, minutes and seconds such
    as 30m or 1h30m; 15m where absent."""
    tokens: Annotated[tuple[TokenGrant, ...], Field(max_length=64)] = ()
    """Who may have tokens. Not supported yet: without effect, and Degraded says so."""
