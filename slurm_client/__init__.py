"""
An asynchronous client for slurmrestd, useful without anything else of this project.

::

    async with SlurmClient("http://slurmrestd:6820", token=FileToken("/run/slurm/token")) as slurm:
        for node in await slurm.nodes():
            print(node.name, node.state)

For programs that are not asynchronous there is :mod:`slurm_client.sync`, for a look around ``python -m slurm_client``.
Models are in :mod:`slurm_client.models`, errors in :mod:`slurm_client.errors`, tokens in :mod:`slurm_client.tokens`, a
server for tests in :mod:`slurm_client.testing`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slurm_client.client import SlurmClient
    from slurm_client.connection.session import RetryPolicy
    from slurm_client.errors import SlurmError
    from slurm_client.operations.base import Listing
    from slurm_client.tokens import CallableToken, FileToken, MintedToken, StaticToken, TokenProvider
    from slurm_client.watch import Event, Pace

__all__ = [
    "CallableToken",
    "Event",
    "FileToken",
    "Listing",
    "MintedToken",
    "Pace",
    "RetryPolicy",
    "SlurmClient",
    "SlurmError",
    "StaticToken",
    "TokenProvider",
]

# Imported when they are first asked for: who needs a model or an error does not pay for the client.
_HOMES = {
    "CallableToken": "tokens",
    "Event": "watch",
    "FileToken": "tokens",
    "Listing": "operations.base",
    "MintedToken": "tokens",
    "Pace": "watch",
    "RetryPolicy": "connection.session",
    "SlurmClient": "client",
    "SlurmError": "errors",
    "StaticToken": "tokens",
    "TokenProvider": "tokens",
}


def __getattr__(name: str) -> Any:
    """Import what the package offers from where it lives."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
