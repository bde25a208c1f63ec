"""
A slurmrestd for tests: real HTTP on loopback, no Slurm behind it.

:class:`FakeSlurmrestd` answers as the real one does, down to its oddities; the conformance suite of this library runs
against both and must see no difference. Faults are put in by hand, see :mod:`slurm_client.testing.faults`.

What is asked for is imported then: pytest loads the plugin in this room in every run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slurm_client.testing.answers.calls import RecordedRequest
    from slurm_client.testing.faults import Fault, Faults
    from slurm_client.testing.server import FakeSlurmrestd
    from slurm_client.testing.world import World

__all__ = ["FakeSlurmrestd", "Fault", "Faults", "RecordedRequest", "World"]

_HOMES = {
    "FakeSlurmrestd": "server",
    "Fault": "faults",
    "Faults": "faults",
    "RecordedRequest": "answers.calls",
    "World": "world",
}


def __getattr__(name: str) -> Any:
    """Import what the room offers from where it lives."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
