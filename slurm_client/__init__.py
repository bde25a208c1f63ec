"""
An asynchronous client for slurmrestd, useful without anything else of this project.

::

    async with SlurmClient("http://slurmrestd:6820", token=FileToken("/run/slurm/token")) as slurm:
        for node in await slurm.nodes():
            print(node.name, node.state)

For programs that are not asynchronous there is :mod:`slurm_client.sync`, for a look around ``slurm-rest``.
What one needs daily is here; all models are in :mod:`slurm_client.models`, errors in :mod:`slurm_client.errors`, tokens
in :mod:`slurm_client.tokens`, a server for tests in :mod:`slurm_client.testing`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slurm_client import errors, models
    from slurm_client.client import SlurmClient
    from slurm_client.connection.circuit import Circuit
    from slurm_client.connection.intake import Intake
    from slurm_client.connection.retries import RetryPolicy
    from slurm_client.errors import Report, SlurmError
    from slurm_client.hooks import Attempt, Hook, Outcome
    from slurm_client.models import (
        INFINITE,
        Infinite,
        Job,
        JobId,
        JobSpec,
        Listing,
        Node,
        Partition,
        Reservation,
        ReservationSpec,
    )
    from slurm_client.models.plain import to_dict
    from slurm_client.operations.requests import RawAnswer
    from slurm_client.sync import SyncSlurmClient
    from slurm_client.tokens import CallableToken, FileToken, MintedToken, NoToken, StaticToken, TokenProvider
    from slurm_client.version import __version__
    from slurm_client.watch import Event, Pace

__all__ = [
    "INFINITE",
    "Attempt",
    "CallableToken",
    "Circuit",
    "Event",
    "FileToken",
    "Hook",
    "Infinite",
    "Intake",
    "Job",
    "JobId",
    "JobSpec",
    "Listing",
    "MintedToken",
    "NoToken",
    "Node",
    "Outcome",
    "Pace",
    "Partition",
    "RawAnswer",
    "Report",
    "Reservation",
    "ReservationSpec",
    "RetryPolicy",
    "SlurmClient",
    "SlurmError",
    "StaticToken",
    "SyncSlurmClient",
    "TokenProvider",
    "__version__",
    "errors",
    "models",
    "to_dict",
]

# Imported when they are first asked for: who needs a model or an error does not pay for the client.
_HOMES = {
    "Attempt": "hooks",
    "CallableToken": "tokens",
    "Circuit": "connection.circuit",
    "Event": "watch",
    "FileToken": "tokens",
    "Hook": "hooks",
    "INFINITE": "models",
    "Infinite": "models",
    "Intake": "connection.intake",
    "Job": "models",
    "JobId": "models",
    "JobSpec": "models",
    "Listing": "models",
    "MintedToken": "tokens",
    "NoToken": "tokens",
    "Node": "models",
    "Outcome": "hooks",
    "Pace": "watch",
    "Partition": "models",
    "RawAnswer": "operations.requests",
    "Report": "errors",
    "Reservation": "models",
    "ReservationSpec": "models",
    "RetryPolicy": "connection.retries",
    "SlurmClient": "client",
    "SlurmError": "errors",
    "StaticToken": "tokens",
    "SyncSlurmClient": "sync",
    "TokenProvider": "tokens",
    "__version__": "version",
    "to_dict": "models.plain",
}

_MODULES = frozenset({"errors", "models", "testing", "tokens"})
"""Modules that are there as attributes without an import of their own."""


def __getattr__(name: str) -> Any:
    """Import what the package offers from where it lives."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List what is offered, imported or not yet."""
    return sorted({*globals(), *__all__})
