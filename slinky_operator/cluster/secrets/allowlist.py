"""Whether a Secret may be used for an external Slurm: the Secret itself must allow it. Pure.

`spec.server` and the name of the Secret are written by users who may edit Clusters, and who need not be allowed to read
Secrets. If any Secret were accepted, its content could be sent to any address. So a Secret names the servers that it is
meant for in an annotation; one without it is accepted as a token only if it can be nothing else: the form in which
Slinky 0.1 stored its tokens, a JWT of Slurm under `auth-token` and nothing else. A Secret that this operator has made
is never such a token, whatever its form: the Secret of a Token object looks the same, and belongs to its user.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import jwt

from slinky_api import labels
from slinky_api.v1alpha1.cluster.auth import TOKEN_KEY
from slinky_operator.reconcile.secrets import Source
from slurm_client.tokens import clean

_PORTS: Final = {"http": 80, "https": 443}

_USER: Final = "sun"
"""Claim with the user in every token of Slurm."""


def why_not(source: Source, server: str, namespace: str, *, as_token: bool) -> str | None:
    """Why a Secret may not be used for a server, with what to do about it; None if it may.

    Parameters
    ----------
    source
        The Secret as last read.
    server
        `spec.server`.
    namespace
        Of the Secret, for the command.
    as_token
        Whether it is sent as it is; a key is never accepted without the annotation.
    """
    wanted = origin(server)
    if source.servers is None:
        if as_token and is_token_of_slinky(source):
            return None
        told, more = f"Secret {source.name} does not say that it is meant for {wanted}", ""
    else:
        if wanted in {origin(one) for one in source.servers.replace(",", " ").split()}:
            return None
        told, more = f"Secret {source.name} is meant for other servers than {wanted}", " --overwrite"
    command = f"kubectl annotate secret {source.name} --namespace {namespace}{more}"
    return f"{told}; if it is: {command} {labels.ANNOTATION_SECRET_SERVER}={wanted}"


def origin(url: str) -> str:
    """Scheme, host and port of a URL, normalized; empty if the URL has none."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return ""
    if parts.scheme not in _PORTS or not host:
        return ""
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{port or _PORTS[parts.scheme]}"


def is_token_of_slinky(source: Source) -> bool:
    """Whether a Secret has the form in which Slinky 0.1 stored its tokens, so that it can be nothing else."""
    if source.is_of_operator or set(source.data) != {TOKEN_KEY}:
        return False
    try:
        token = clean(source.data[TOKEN_KEY].decode("ascii"))
        claims = jwt.decode(token, options={"verify_signature": False})
    except (UnicodeDecodeError, jwt.PyJWTError, RecursionError):
        return False
    return isinstance(claims.get(_USER), str)
