"""
An asynchronous client for slurmrestd, useful without anything else of this project.

::

    async with SlurmClient("http://slurmrestd:6820", token=FileToken("/run/slurm/token")) as slurm:
        for node in await slurm.nodes():
            print(node.name, node.state)

Models are in :mod:`slurm_client.models`, errors in :mod:`slurm_client.errors`, tokens in :mod:`slurm_client.tokens`, a
server for tests in :mod:`slurm_client.testing`.
"""

from slurm_client.client import SlurmClient
from slurm_client.errors import SlurmError
from slurm_client.tokens import CallableToken, FileToken, MintedToken, StaticToken, TokenProvider

__all__ = [
    "CallableToken",
    "FileToken",
    "MintedToken",
    "SlurmClient",
    "SlurmError",
    "StaticToken",
    "TokenProvider",
]
