"""The operator as a separate process, without the local Kubernetes around it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.machine import ports
from tests.support.web import fetch

ROOT = Path(__file__).parents[2]


@dataclass
class OperatorProcess:
    """One that runs, and what it says."""

    process: asyncio.subprocess.Process
    port: int
    log: Path

    def said(self) -> list[str]:
        """The lines of its log."""
        return self.log.read_text().splitlines()

    async def until(self, words: str) -> None:
        """Wait for words in its log."""
        while not any(words in line for line in self.said()):
            assert self.process.returncode is None, self.log.read_text()
            await asyncio.sleep(0.05)

    async def status(self, path: str) -> int:
        """HTTP status of a path; 0 while nothing listens."""
        try:
            return (await asyncio.to_thread(fetch, f"http://127.0.0.1:{self.port}{path}")).status
        except OSError:
            return 0

    async def until_status(self, path: str, wanted: int) -> None:
        """Wait for the HTTP status of a path."""
        while await self.status(path) != wanted:
            assert self.process.returncode is None, self.log.read_text()
            await asyncio.sleep(0.05)

    async def end(self) -> int:
        """Ask it to end and return its exit status."""
        self.process.terminate()
        return await self.process.wait()


@asynccontextmanager
async def operator(
    kubeconfig: Path, namespace: str, folder: Path, *flags: str, first: str = "", everywhere: bool = False
) -> AsyncIterator[OperatorProcess]:
    """Run it over one namespace; it is killed at the end if it has not ended.

    Parameters
    ----------
    kubeconfig, namespace
        What it works with; its Lease is in the namespace as well.
    folder
        Takes its log.
    flags
        Further arguments.
    first
        Python statements to run in the process before, such as those that shorten a time it waits for.
    everywhere
        Whether it works in all namespaces; only its Lease is in this one then.
    """
    (port,) = ports.hold(1)
    log = folder / "operator.log"
    with log.open("w") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", f"{first}\nimport slinky_operator.__main__"),
            *(f"--kubeconfig={kubeconfig}", "--health-host=127.0.0.1"),
            *(f"--health-port={port}", f"--lease-namespace={namespace}"),
            *([] if everywhere else [f"--namespaces={namespace}"]),
            *flags,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'api'}"},
            stdout=output,
            stderr=output,
            cwd=folder,
        )
    try:
        yield OperatorProcess(process, port, log)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
