"""Every fault by its name, by lane, and how all of them are mended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.campaign.faults import answers, claims, machines, network, processes
from tests.campaign.faults.answers import ANSWERS
from tests.campaign.faults.claims import FULL_DISKS
from tests.campaign.faults.kind import Fault, Place
from tests.campaign.faults.machines import MACHINES
from tests.campaign.faults.network import UNREACHABLE
from tests.campaign.faults.processes import PROCESSES

FAULTS: Final[Mapping[str, Fault]] = {**PROCESSES, **UNREACHABLE, **MACHINES, **ANSWERS, **FULL_DISKS}


def mend_all(place: Place) -> None:
    """End whatever a fault may have left."""
    claims.mend(place)
    answers.mend(place)
    processes.mend(place)
    network.mend(place)
    machines.mend(place)
