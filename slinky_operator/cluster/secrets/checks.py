"""Whether a Secret has what it must, and may be used: what is missing otherwise. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from slinky_api.conditions import Reason
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.secrets import allowlist
from slinky_operator.reconcile.secrets import Source
from slinky_operator.slurm import naming


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no connection, or no daemon."""

    reason: Reason
    message: str


def check(source: Source | None, name: str, key: str, purpose: str) -> Missing | None:
    """Whether a Secret contains what it must.

    Parameters
    ----------
    source
        The Secret as last read; `None` if it was not read.
    name, key
        Name of the Secret, and the key that it must have.
    purpose
        What the Secret is for, for the message.

    Returns
    -------
    Missing or None
        What is wrong with it; `None` if nothing is.
    """
    if source is None or not source.exists:
        return Missing(Reason.SECRET_NOT_FOUND, f"{purpose}: there is no Secret {name}")
    if key not in source.data:
        # Users who may edit Clusters may name any Secret, and need not be allowed to see what keys it has.
        return Missing(Reason.SECRET_KEY_NOT_FOUND, f"{purpose}: Secret {name} has no key {key}")
    if not source.data[key].strip():
        return Missing(Reason.SECRET_INVALID, f"{purpose}: key {key} of Secret {name} is empty")
    return None


def not_allowed(snapshot: Snapshot, name: str, purpose: str, *, as_token: bool = False) -> Missing | None:
    """Why a Secret may not be used for an external Slurm; a missing one is not reported here.

    Parameters
    ----------
    name
        Name of the Secret.
    purpose
        What the Secret is for, for the message.
    as_token
        Whether it is sent as it is.
    """
    cluster, source = snapshot.cluster, snapshot.sources.get(name)
    if not cluster.spec.external or source is None or not source.exists:
        return None
    why = allowlist.why_not(source, naming.server(cluster), cluster.namespace, as_token=as_token)
    return Missing(Reason.SECRET_NOT_ALLOWED, f"{purpose}: {why}") if why is not None else None
