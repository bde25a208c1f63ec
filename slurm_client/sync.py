"""
The client for programs that are not asynchronous: the same calls, waited for.

A thread runs the event loop; any number of other threads may call. There is no second list of operations to keep in
step: :meth:`SyncSlurmClient.run` takes what is to be asked and keeps its type.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

from slurm_client.client import SlurmClient

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from types import TracebackType

    from slurm_client.models import Node
    from slurm_client.watch import Event, Reader

__all__ = ["SyncSlurmClient"]

T = TypeVar("T")


class SyncSlurmClient:
    """
    One slurmrestd, asked from ordinary code.

    ::

        with SyncSlurmClient("http://slurmrestd:6820", FileToken("/run/slurm/token")) as slurm:
            nodes = slurm.run(lambda client: client.nodes())

    Parameters are those of :class:`~slurm_client.client.SlurmClient`; calls raise the same errors.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="slurm-client", daemon=True)
        self._thread.start()
        try:
            self._client = self._wait(self._make(arguments, options))
        except BaseException:
            self._end()
            raise

    @staticmethod
    async def _make(arguments: tuple[Any, ...], options: dict[str, Any]) -> SlurmClient:
        return SlurmClient(*arguments, **options)

    def run(self, ask: Callable[[SlurmClient], Coroutine[Any, Any, T]]) -> T:
        """Carry out what ``ask`` makes of the client, and return its result."""
        return self._wait(ask(self._client))

    def watch_nodes(self) -> Iterator[Event[Node]]:
        """Give events of nodes for ever; see :meth:`~slurm_client.client.SlurmClient.watch_nodes`."""
        reader = self._wait(self._reader())
        try:
            while True:
                try:
                    yield self._wait(reader.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._wait(reader.aclose())

    async def _reader(self) -> Reader[Node]:
        return self._client.watch_nodes()

    def close(self) -> None:
        """End all watches, close all connections and end the thread."""
        if self._thread.is_alive():
            self._wait(self._client.close())
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
