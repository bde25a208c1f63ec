"""Which users of `spec.accounting.tree` the daemons of a Cluster do not know, as far as that can be known. Pure.

With users from passwd, the copy that the daemons mount shows it. With SSSD nothing does: neither slurmrestd nor
slurmdbd says whether a name resolves, and slurmctld takes an association into use once it does.
"""

from __future__ import annotations

from typing import Final

from slinky_api.v1alpha1.cluster.accounting_tree import AccountTree
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounts import faults
from slinky_operator.identity import entries
from slinky_operator.slurm import naming

OF_IMAGES: Final = frozenset({"root", "slurm", "nobody"})
"""Users whom every image has."""


def unknown(snapshot: Snapshot, tree: AccountTree) -> tuple[str, ...] | None:
    """Users of a tree whom the daemons do not know; `None` while what the daemons know is not there."""
    identity = snapshot.cluster.spec.identity
    if identity is None or identity.passwd is None:
        return ()
    copy = snapshot.children.get(("ConfigMap", naming.users(snapshot.cluster.name)))
    if copy is None:
        return None
    lines = (copy.get("data") or {}).get(entries.PASSWD, "").splitlines()
    known = OF_IMAGES.union(line.partition(":")[0] for line in lines)
    return tuple(name for name in faults.user_names(tree) if name not in known)
