"""A slurmrestd that ends at a chosen moment: between a request that it has carried out and its answer.

Clients reach it by way of this program, which keeps the answer to the chosen request back, ends slurmrestd, and closes
the connection. While slurmrestd does not run, connections are refused here too.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Self

from hack.machine import ports

if TYPE_CHECKING:
    from types import TracebackType

    from tests.support.slurm_host import SlurmHost


class Cut:
    """The way to the slurmrestd of a Slurm, which runs.

    Parameters
    ----------
    slurm
        Whose slurmrestd it is.
    """

    def __init__(self, slurm: SlurmHost) -> None:
        self._slurm = slurm
        (self._port,) = ports.hold(1)
        self._words = b""
        self._done = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Base URL for clients."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._open):
            writer.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if "slurmrestd" not in self._slurm.daemons:
            await asyncio.to_thread(self._slurm.start_slurmrestd)

    async def stop(self) -> None:
        """End slurmrestd now."""
        self._close()
        await asyncio.to_thread(self._slurm.stop, "slurmrestd", kill=True)

    async def start(self, *, before_answer_to: bytes = b"") -> None:
        """Start slurmrestd.

        Parameters
        ----------
        before_answer_to
            What is in the first line of the request that it carries out last, and does not answer; empty for none.
        """
        self._words = before_answer_to
        self._done.clear()
        await asyncio.to_thread(self._slurm.start_slurmrestd)
        await self._listen()

    async def done(self) -> None:
        """Wait until slurmrestd has ended without an answer."""
        await self._done.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            with contextlib.suppress(OSError):
                await self._pass_on(reader, writer)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", self._slurm.rest_port)
        chosen = asyncio.Event()

        async def ask() -> None:
            while asked := await reader.read(65_536):
                if self._words and self._words in asked.partition(b"\r\n")[0]:
                    chosen.set()
                requests.write(asked)
                await requests.drain()

        asking = asyncio.create_task(ask())
        try:
            while answered := await answers.read(65_536):
                if chosen.is_set() and self._words:
                    self._words = b""
                    await self.stop()
                    self._done.set()
                    return
                writer.write(answered)
                await writer.drain()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            requests.close()
