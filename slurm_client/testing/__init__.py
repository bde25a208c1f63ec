"""
A slurmrestd for tests: real HTTP on loopback, no Slurm behind it.

:class:`FakeSlurmrestd` answers as the real one does, down to its oddities; the conformance suite of this library runs
against both and must see no difference. Faults are put in by hand, see :mod:`slurm_client.testing.faults`.
"""

from slurm_client.testing.calls import RecordedRequest
from slurm_client.testing.faults import Fault, Faults
from slurm_client.testing.server import FakeSlurmrestd
from slurm_client.testing.world import World

__all__ = ["FakeSlurmrestd", "Fault", "Faults", "RecordedRequest", "World"]
