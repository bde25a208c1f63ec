"""The old kinds, and the names of the SlurmJobs that stand for their objects."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from slinky_api.sylabs import slurm, wlm
from slinky_operator.kube.resources import SLURM_SLURMJOBS, WLM_SLURMJOBS, WLM_WLMJOBS, Resource

LONGEST_NAME: Final = 253
"""Most characters of the name of an object."""

_DIGEST: Final = 10


@dataclass(frozen=True, slots=True)
class OldKind:
    """One old kind."""

    name: str
    """Of its controller, and the beginning of the names of its SlurmJobs. None is the beginning of another."""
    resource: Resource
    model: type[wlm.SlurmJob | wlm.WlmJob | slurm.SlurmJob]

    def child(self, name: str) -> str:
        """Name of the SlurmJob of an object; that of a long name ends in a digest of it."""
        full = f"{self.name}-{name}"
        if len(full) <= LONGEST_NAME:
            return full
        digest = hashlib.sha256(full.encode()).hexdigest()[:_DIGEST]
        return f"{full[: LONGEST_NAME - _DIGEST - 1].rstrip('.-')}-{digest}"


KINDS: Final = (
    OldKind("wlm-slurmjob", WLM_SLURMJOBS, wlm.SlurmJob),
    OldKind("wlm-wlmjob", WLM_WLMJOBS, wlm.WlmJob),
    OldKind("slurm-slurmjob", SLURM_SLURMJOBS, slurm.SlurmJob),
)
"""All of them."""
