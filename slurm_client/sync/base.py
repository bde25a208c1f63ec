"""The thread with the event loop, and how any other thread waits for what runs in it."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from typing_extensions import override

from slurm_client import errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Generator
    from types import TracebackType

    from slurm_client.client import SlurmClient
    from slurm_client.watch import Event, Reader

__all__ = ["Blocking", "BlockingReader", "LoopThread"]

T = TypeVar("T")
B = TypeVar("B", bound="Blocking")


class LoopThread:
    """A thread that runs an event loop until it is ended."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="slurm-client", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """
        Return what a coroutine returns; it is cancelled if the caller is interrupted.

        Raises
        ------
        ClientClosed
            After :meth:`end`.
        RuntimeError
            In the thread of the loop itself, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a blocking call was made in the thread that carries it out: it would wait for itself")
        if not self.is_alive:
            work.close()
            raise errors.ClientClosed("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether it was not ended."""
        return self._thread.is_alive()

    def end(self) -> None:
        """End the loop and the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking:
    """Base of all classes of blocking calls: what is asked, and the thread in which that happens."""

    _asked: object
    _thread: LoopThread
    _has_thread = False
    """Whether the thread ends with it; else it is that of another client."""

    def _start(self, make: Callable[[], SlurmClient]) -> None:
        """Make the client in a thread of its own."""
        self._thread, self._has_thread = LoopThread(), True
        try:
            self._asked = self._call(make)
        except BaseException:
            self._thread.end()
            raise

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.wait(work)

    def _call(self, function: Callable[[], T]) -> T:
        """Return what an ordinary function returns in the thread of the loop."""

        async def called() -> T:
            return function()

        return self._wait(called())

    def _each(self, stream: AsyncIterator[T]) -> Generator[T, None, None]:
        """Give what an asynchronous iterator gives; ``close()`` ends it."""

        async def following() -> T:
            return await anext(stream)

        try:
            while True:
                try:
                    item = self._wait(following())
                except StopAsyncIteration:
                    return
                yield item
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None and self._thread.is_alive:
                self._wait(close())

    def _beside(self, kind: type[B], make: Callable[[], object]) -> B:
        """Return blocking calls of something else that lives in the same thread."""
        made = kind.__new__(kind)
        vars(made).update(_thread=self._thread, _asked=self._call(make))
        return made


class BlockingReader(Generic[T]):
    """
    Changes of objects, one after the other, for ``for``; close it, best by ``with``.

    See :class:`~slurm_client.watch.Reader`.
    """

    def __init__(self, client: Blocking, make: Callable[[], Reader[T]]) -> None:
        self._thread = client._thread  # noqa: SLF001 - of one family
        self._reader: Reader[T] = client._call(make)  # noqa: SLF001

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event[T]:
        """Wait for the next change; ends when the client is closed."""
        try:
            return self._thread.wait(self._next())
        except StopAsyncIteration:
            raise StopIteration from None

    async def _next(self) -> Event[T]:
        return await self._reader.__anext__()

    @property
    def is_synced(self) -> bool:
        """Whether the initial list has been read to its end."""
        return self._reader.is_synced

    def initial(self) -> dict[str, T]:
        """Wait for the initial list and return its objects by key; iteration goes on with the changes after it."""
        return self._thread.wait(self._reader.initial())

    def close(self) -> None:
        """Read no more."""
        if self._thread.is_alive:
            self._thread.wait(self._reader.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @override
    def __repr__(self) -> str:
        return f"BlockingReader({self._reader!r})"
