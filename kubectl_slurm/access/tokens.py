"""A token for slurmrestd, with the least that gives one.

In this order: one that the user gives, one of a Token of the namespace, one of a Token that is made for this call and
deleted after it, and one of ``scontrol token`` in slurmctld's pod, where an editor of the namespace may run commands
anyway. The last way is for administration, and for a look around while the operator is away. A token is never printed
here, nor kept.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kubectl_slurm.access.kinds import SECRETS, TOKENS
from kubectl_slurm.access.kubectl import Kubectl
from kubectl_slurm.access.kubernetes import Kubernetes
from kubectl_slurm.errors import KubectlFailed, MissingRight, NoToken
from kubectl_slurm.facts import reading
from kubectl_slurm.facts.objects import ClusterFacts, TokenFacts

READER: Final = "nobody"
"""The user who looks, if no other is asked for: what a Cluster grants without rules."""

ADMINISTRATOR: Final = "slurm"
"""The user who drains nodes and the like."""

PRIVILEGED: Final = frozenset({"root", "slurm"})
"""Users whom `spec.auth.tokens` grants by their exact names only."""

LIFETIME: Final = "5m"
SHORTEST: Final = timedelta(minutes=1)
"""What a Token must still be good for."""

PATIENCE: Final = 10.0
"""Seconds that the operator has for a Token."""

PAUSE: Final = 0.2
SLURMCTLD: Final = "slurmctld"
"""The container of slurmctld in the pod ``<cluster>-controller-0``."""

ADVICE: Final = (
    "grant it to this namespace in spec.auth.tokens of the Cluster (docs/tokens.md), name another user with --as, or"
    " give a token in $SLURM_JWT together with --cluster or --server"
)


class NotGranted(NoToken):
    """The Cluster does not grant the user to the namespace."""


class _Silence(NoToken):
    """The operator has not answered, so that nobody knows what is granted."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, as `acquire` needs it."""

    now: Callable[[], datetime]
    sleep: Callable[[float], None] = time.sleep


@contextmanager
def acquire(
    kube: Kubernetes, kubectl: Kubectl, cluster: ClusterFacts, user: str, clock: Clock, *, namespace: str
) -> Iterator[str]:
    """A token of a user for a Cluster, for as long as the context lasts.

    Parameters
    ----------
    namespace
        Of the Tokens.

    Raises
    ------
    NoToken
        There is none, and why.
    MissingRight
        The user of Kubernetes may not read or make one.
    """
    found = [reading.token(obj) for obj in kube.objects(TOKENS)]
    usable = [one for one in found if fits(one, cluster, user, clock.now())]
    if usable:
        yield _value(kube, usable[0])
        return
    why, silent = "", False
    try:
        _check_grant(cluster, namespace, user)
        with made(kube, cluster, user, clock) as token:
            yield token
            return
    except _Silence as error:
        why, silent = str(error), True
    except NoToken as error:
        why = str(error)
    except MissingRight as error:
        if user not in PRIVILEGED:
            raise
        why = str(error)
    by_scontrol = user in PRIVILEGED or (silent and user == READER)
    if not by_scontrol or cluster.external or namespace != cluster.namespace:
        raise NoToken(f"there is no token of the Slurm user {user!r} for Cluster {cluster.name!r}: {why}; {ADVICE}")
    yield _of_scontrol(kubectl, cluster, user, why)


def _check_grant(cluster: ClusterFacts, namespace: str, user: str) -> None:
    """Raise NotGranted for a user who is granted by the exact name only, and is not.

    Each Token of such a user would leave a Warning Event in the namespace.
    """
    if user in PRIVILEGED and (namespace, user) not in cluster.grants:
        raise NotGranted(f"Cluster {cluster.name} does not grant tokens of {user} to namespace {namespace}")


def fits(token: TokenFacts, cluster: ClusterFacts, user: str, now: datetime) -> bool:
    """Whether a Token is one of this user for this Cluster, with a value that holds; not one of another call."""
    return (
        not token.temporary
        and (token.cluster_namespace, token.cluster, token.user) == (cluster.namespace, cluster.name, user)
        and token.ready is not None
        and token.ready.status == "True"
        and (token.expires is None or token.expires > now + SHORTEST)
    )


@contextmanager
def made(kube: Kubernetes, cluster: ClusterFacts, user: str, clock: Clock) -> Iterator[str]:
    """Make a Token, and delete it afterwards; NotGranted if the Cluster does not grant the user."""
    reference = {"name": cluster.name}
    if cluster.namespace != kube.namespace:
        reference["namespace"] = cluster.namespace
    made = kube.create(
        TOKENS,
        {
            "metadata": {
                "generateName": "kubectl-slurm-",
                "labels": reading.TEMPORARY,
            },
            "spec": {"clusterRef": reference, "username": user, "lifetime": LIFETIME, "refresh": False},
        },
    )
    name = str(made["metadata"]["name"])
    try:
        yield _wait(kube, name, clock)
    finally:
        kube.delete(TOKENS, name)


def _wait(kube: Kubernetes, name: str, clock: Clock) -> str:
    waited = 0.0
    while waited < PATIENCE:
        token = reading.token(kube.get(TOKENS, name))
        if token.ready is not None and token.ready.status == "True":
            return _value(kube, token)
        if token.ready is not None and token.ready.status == "False" and token.ready.reason == "NotGranted":
            raise NotGranted(token.ready.message or "the Cluster does not grant this user")
        clock.sleep(PAUSE)
        waited += PAUSE
    raise _Silence(f"the operator made no token within {PATIENCE:.0f} s: look whether it runs")


def _value(kube: Kubernetes, token: TokenFacts) -> str:
    data = kube.get(SECRETS, token.secret).get("data") or {}
    try:
        value = base64.b64decode(data[token.key], validate=True).decode("ascii")
    except (KeyError, binascii.Error, UnicodeDecodeError, TypeError):
        value = ""
    if not value:
        raise NoToken(f"Secret {token.secret!r} of Token {token.name!r} has no token under {token.key!r}")
    return value


def _of_scontrol(kubectl: Kubectl, cluster: ClusterFacts, user: str, why: str) -> str:
    pod = f"{cluster.name}-controller-0"
    command = ("exec", f"--namespace={cluster.namespace}", pod, f"--container={SLURMCTLD}", "--")
    try:
        said = kubectl.run(*command, "scontrol", "token", f"username={user}", "lifespan=300")
    except KubectlFailed as error:
        raise NoToken(
            f"there is no token of the Slurm user {user!r} for Cluster {cluster.name!r}: {why}; scontrol token in pod"
            f" {pod} gives none either: {error}; {ADVICE}"
        ) from error
    value = said.strip().removeprefix("SLURM_JWT=")
    if not value or "\n" in value:
        raise NoToken(f"scontrol token in pod {pod} printed no token")
    return value


__all__ = ["ADMINISTRATOR", "READER", "Clock", "NotGranted", "acquire", "fits", "made"]
