"""Seeds that `make test` plays in every run."""

from __future__ import annotations

from typing import Final

SECONDS: Final = 45.0
"""Length of their rounds, without the end."""

KEPT: Final = (448, 451, 463)
"""Seeds whose rounds come to rest soon.

Between them they kill the operator, slurmctld and an agent, take slurmctld, DNS and a kubelet away, fill both disks,
let the API server refuse, and rotate keys, while users scale, edit and evict. None upgrades Slurm or loses a Node,
since a site is made again for that. Each plan is drawn from what the lanes have: a new kind makes other rounds of these
numbers, and a test says when one of these faults is no longer in them.
"""
