"""How the Slurm of a job's Cluster is reached, and the key with which tokens of users are signed."""

from __future__ import annotations

from typing import Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.reconcile.secrets import SecretReader, signing_key
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slinky_operator.slurmjob.observation import Observer
from slurm_client import SlurmClient

KEY_VALID_S: Final = 10.0
"""Seconds for which a key that was read counts."""


class KeyUnknown(Exception):
    """There is no key to sign a user's token with."""


class SlurmAccess:
    """Finds the connection to a Cluster's Slurm, and the key of its tokens.

    Parameters
    ----------
    secrets
        Reads the keys of Clusters.
    observer
        Knows the connections.
    """

    def __init__(self, secrets: SecretReader, observer: Observer) -> None:
        self._secrets = secrets
        self._observer = observer

    def client(self, cluster: Cluster | None) -> SlurmClient | None:
        """The client of a Cluster's Slurm; None if there is no connection."""
        entry = self._observer.entry(cluster) if cluster is not None else None
        return entry.client if entry is not None else None

    async def key(self, cluster: Cluster | None) -> SigningKey | None:
        """The key of users' tokens; None where the operator's own token stands for users.

        Raises
        ------
        KeyUnknown
            The Cluster has no key yet.
        """
        if cluster is None or cluster.spec.external:
            return None
        key = await signing_key(self._secrets, cluster, KEY_VALID_S)
        if key is None:
            raise KeyUnknown(f"Cluster {cluster.name} has no key to sign tokens with yet")
        return key
