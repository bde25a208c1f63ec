"""Authentication of a Cluster: tokens and keys."""

from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from slinky_api.v1alpha1.common import SET, ApiModel, KeyRef
from slinky_api.v1alpha1.fields import Duration, Namespace
from slinky_api.v1alpha1.rules import VALIDATIONS, Keywords, Text, cel, matching

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
            "maxLength": 253,
            "pattern": r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
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


class ServerToken(ApiModel):
    """How to authenticate with a Slurm that runs elsewhere."""

    secret_ref: SecretRefOrName
    """The Secret with the token: its name, as in Slinky 0.1, or an object with name and key; empty for no token.
    Default key: auth-token. The Secret must name the server in its annotation cluster.slinky.slurm.net/server, unless
    it contains only a JWT of Slurm under auth-token."""

    @property
    def secret_name(self) -> str:
        """Name of the Secret."""
        return self.secret_ref.name

    @property
    def secret_key(self) -> str:
        """Key within the Secret."""
        return self.secret_ref.key or TOKEN_KEY


SHORTEST: Final = timedelta(seconds=30)
"""Shortest life of a token: half of it must be enough to renew it."""

_SHORTEST_MESSAGE: Final = "must be at least 30s: a token is renewed at half of its life"


def _check_shortest(lifetime: timedelta) -> timedelta:
    if lifetime < SHORTEST:
        raise ValueError(_SHORTEST_MESSAGE)
    return lifetime


Lifetime = Annotated[
    Duration,
    AfterValidator(_check_shortest),
    Keywords({VALIDATIONS: [cel("duration(self) >= duration('30s')", _SHORTEST_MESSAGE)]}),
]
"""Life of a token."""

UserPattern = Annotated[
    str,
    Text(
        matching(
            r"\*|[A-Za-z0-9_][A-Za-z0-9_.@-]*\*?",
            "must be a user name, a prefix of one followed by '*', or '*' for every user but root and slurm",
        ),
        at_least=1,
        at_most=64,
        by_pattern=True,
    ),
]


class TokenGrant(ApiModel):
    """Who may request tokens of this cluster, by Token objects."""

    namespaces: Annotated[tuple[Namespace, ...], Field(max_length=256), SET] = ()
    """Namespaces in which tokens may be requested. Default: the Cluster's own."""
    usernames: Annotated[tuple[UserPattern, ...], Field(max_length=1024), SET] = ()
    """Slurm users for whom tokens may be requested: a name, a prefix with * at its end, or * for all. No pattern
    covers root and slurm: they must be named. Default: nobody."""
    max_lifetime: Lifetime | None = None
    """Longest life of such a token. Default: 24h."""


class Auth(ApiModel):
    """Keys and tokens."""

    slurm_key_ref: KeyRef | None = None
    """Secret with the key of auth/slurm (key slurm.key, or a key set as slurm.jwks). Generated, as a key set, if
    not set. With spec.server, the Secret must name the server in its annotation cluster.slinky.slurm.net/server."""
    jwt_key_ref: KeyRef | None = None
    """Secret with the HS256 key of auth/jwt (key jwt_hs256.key). Generated if not set. With spec.server, the operator
    signs its tokens with it unless there is spec.token; the Secret must then name the server in its annotation
    cluster.slinky.slurm.net/server."""
    jwks_ref: KeyRef | None = None
    """ConfigMap with the public keys of other token issuers, as a JSON Web Key Set (key jwks.json): Slurm takes RS256
    tokens that they have signed, of any user, beside those of the operator. Without effect with spec.server, where the
    keys are elsewhere."""
    signing_key_ref: KeyRef | None = None
    """Secret with an RSA private key in PEM form (key signing.pem, 2048 to 4096 bits). The operator signs its tokens
    and those of Token objects with it instead of the key of auth/jwt; Slurm gets the public half. When the key is
    replaced, the earlier one is taken until its last token has ended, so that no call fails. Without effect with
    spec.server."""
    token_lifetime: Duration | None = None
    """Lifetime of the tokens that the operator signs for itself, for example 30m or 1h30m. They are renewed after half
    of it. Without effect with spec.token. Default: 15m."""
    keys_when_deleted: Literal["Delete", "Retain"] | None = None
    """What becomes of the generated keys when the Cluster is deleted. With Retain the next Cluster of this name has
    the same keys, as slurmds outside Kubernetes need. Default: Delete."""
    tokens: Annotated[tuple[TokenGrant, ...], Field(max_length=64)] = ()
    """Who may request tokens, by Token objects. Default: the user nobody, in the Cluster's own namespace. What is
    no longer granted is taken away: the Token's Secret loses its value. A JWT that was copied stays valid until it
    ends. Without effect with spec.server."""
