"""The key that tokens of a Cluster are signed with, out of the copy that its daemons run with."""

from __future__ import annotations

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.slurm import naming
from slinky_operator.slurm.tokens import signing_keys
from slinky_operator.slurm.tokens.signing_keys import SigningKey


async def signing_key(secrets: SecretReader, cluster: Cluster, older_than: float) -> SigningKey | None:
    """Read the key, if the copy belongs to this very Cluster; None if it is not known.

    Parameters
    ----------
    secrets
        Reads the copy.
    cluster
        A Cluster; of one that runs elsewhere there is no key.
    older_than
        Seconds for which a copy that was read counts.

    Raises
    ------
    KubeError
        The Secret could not be read.
    """
    if cluster.spec.external:
        return None
    name = naming.key_copy(cluster.name)
    found = (await secrets.read(cluster.namespace, (name,), older_than=older_than))[name]
    if not found.exists or found.cluster_uid != cluster.uid:
        return None
    secret, pem = found.data.get(naming.JWT_KEY, b""), found.data.get(naming.SIGNING_KEY, b"")
    try:
        return signing_keys.private(pem) if pem else SigningKey(secret) if secret else None
    except signing_keys.UnusableKey:
        # Somebody has edited the copy: the Cluster controller writes it again.
        return None
