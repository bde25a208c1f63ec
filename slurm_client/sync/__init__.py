"""
The client for programs that are not asynchronous: the same calls with the same types, waited for.

A thread runs the event loop; any number of other threads may call. The calls themselves are in the modules beside this
one, of which all but `base` are generated from the asynchronous ones (``python -m hack.client.package``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from slurm_client.sync.base import BlockingReader
from slurm_client.sync.client import BlockingClient

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

    from slurm_client.client import SlurmClient

__all__ = ["BlockingReader", "SyncSlurmClient"]

T = TypeVar("T")


class SyncSlurmClient(BlockingClient):
    """
    One slurmrestd, asked from ordinary code.

    ::

        with SyncSlurmClient("http://slurmrestd:6820", FileToken("/run/slurm/token")) as slurm:
            for node in slurm.nodes():
                print(node.name, node.state)

    Parameters are those of :class:`~slurm_client.client.SlurmClient`; calls raise the same errors.

    Raises
    ------
    ValueError
        For a URL or a data parser that cannot be used.
    """

    def run(self, ask: Callable[[SlurmClient], Coroutine[Any, Any, T]]) -> T:
        """Carry out what ``ask`` makes of the asynchronous client, and return its result: many calls at once, say."""
        return self._wait(ask(self._client))

    def close(self) -> None:
        """
        End all watches, close all connections and end the thread.

        Of a client that :meth:`as_user` returned, the watches alone: the rest is that of the client it is from.
        """
        if self._thread.is_alive:
            self._wait(self._client.close())
            if self._has_thread:
                self._thread.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
