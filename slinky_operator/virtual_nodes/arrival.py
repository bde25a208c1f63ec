"""How one knows to have arrived at the kubelet API of this process: a path that needs no login, and a mark. Pure.

Who asks for it through the API server, and what follows from the answer, is left to `nodes`.
"""

from __future__ import annotations

import hashlib
from typing import Final

PATH: Final = "/arrived"
"""Path of the kubelet API; kubelets have none of this name."""

FIELD: Final = "slurmVirtualNodes"
"""Field of the answer, an object in JSON, with the mark."""


def mark_of(identity: str) -> str:
    """The mark of a process.

    Parameters
    ----------
    identity
        Its name in the Lease. It is not shown: the path is open to everybody who reaches the port.
    """
    return hashlib.sha256(identity.encode()).hexdigest()[:32]
