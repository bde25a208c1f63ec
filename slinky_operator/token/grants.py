"""Which Slurm users a Cluster grants to which namespace, and for how long. Pure.

The rules are in `spec.auth.tokens` of the Cluster, so anyone who may change the Cluster decides. Without rules there is
the user `nobody` in the Cluster's own namespace: Slurm lets it look, and run jobs as `nobody`. The user of
`spec.metrics.exporter` is granted beside them.

A token of root or of SlurmUser rules the cluster and can stand for every user, so no pattern covers them. Names are
compared with those two in lower case: some directories do not distinguish case.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from slinky_api.v1alpha1.cluster.auth import TokenGrant
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.token import NOBODY

PRIVILEGED: Final = frozenset({"root", "slurm"})
"""Users whose tokens rule the cluster: granted by their exact names only."""

LONGEST: Final = timedelta(hours=24)
"""Longest life of a token, if its grant does not say."""

OF_EXPORTER: Final = timedelta(hours=24)
"""Life of the token of a Cluster's exporter, renewed after half of it: the operator may be away for 12 hours."""

_DEFAULT: Final = (TokenGrant(),)


def longest_life(cluster: Cluster, namespace: str, username: str) -> timedelta | None:
    """For how long a namespace may have a token of a user; None if it may have none.

    Parameters
    ----------
    cluster
        The Cluster with the grants.
    namespace
        Namespace of the Token.
    username
        The Slurm user.
    """
    found = [
        grant.max_lifetime or LONGEST
        for grant in (*(cluster.spec.auth.tokens or _DEFAULT), *_of_exporter(cluster))
        if namespace in (grant.namespaces or (cluster.namespace,))
        and any(_covers(pattern, username) for pattern in grant.usernames or (NOBODY,))
    ]
    return max(found, default=None)


def _of_exporter(cluster: Cluster) -> tuple[TokenGrant, ...]:
    """The user of the Cluster's exporter, whose pod is in the Cluster's own namespace; never a privileged one."""
    exporter = cluster.spec.metrics.exporter
    if not exporter.enabled or cluster.spec.external or exporter.slurm_user.lower() in PRIVILEGED:
        return ()
    return (TokenGrant(usernames=(exporter.slurm_user,), max_lifetime=OF_EXPORTER),)


def _covers(pattern: str, username: str) -> bool:
    if not pattern.endswith("*"):
        return pattern == username
    return username.lower() not in PRIVILEGED and username.startswith(pattern.removesuffix("*"))
