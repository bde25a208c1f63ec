"""The key of auth/slurm that the operator signs its questions to slurmds with. Pure."""

from __future__ import annotations

from datetime import datetime

from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.keys import stored_keys
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.cluster.parts.keys.key_guard import foreign_key_trouble
from slinky_operator.cluster.parts.keys.sets import key_sets
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.signed_messages import SharedKey


def of_questions(snapshot: Snapshot, keys: Keys, wall: datetime) -> SharedKey | None:
    """The key that slurmds are known to have; of a key set, the default. None if there is none.

    Parameters
    ----------
    wall
        The time of day.
    """
    source = naming.mounted_key(snapshot.cluster)
    if source is None:
        return None
    known = keys.known.get(naming.SLURM_KEY, b"")
    if snapshot.cluster.spec.external:
        known = stored_keys.value_in(snapshot, source) if foreign_key_trouble(snapshot) is None else b""
    if not known:
        return None
    if source.file != naming.SLURM_JWKS:
        return SharedKey("", known)
    found = key_sets.read(known, wall)
    return next((one for one in found.live if one.kid == found.default), None) if found is not None else None
