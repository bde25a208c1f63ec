"""A proxy to the API server that can be closed: the client sees an API server that becomes unreachable and returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml


class Gate:
    """Forwards connections while it is open; while it is shut, it cuts every one, and counts them."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.cut = 0
        self._open = True
        self._writers: set[asyncio.StreamWriter] = set()

    def open(self) -> None:
        self._open = True

    def shut(self) -> None:
        self._open = False
        self.cut = 0
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._open:
            self.cut += 1
            writer.transport.abort()
            return
        onward_reader, onward = await asyncio.open_connection(self.host, self.port)
        self._writers |= {writer, onward}
        try:
            await asyncio.gather(_pump(reader, onward), _pump(onward_reader, writer))
        finally:
            self._writers -= {writer, onward}
            writer.transport.abort()
            onward.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.transport.abort()
    except OSError:
        writer.transport.abort()


@asynccontextmanager
async def gate_before(kubeconfig: Path, file: Path) -> AsyncIterator[Gate]:
    """Put a gate before an API server, and write to `file` a kubeconfig that goes through it."""
    gate = Gate(*_address(kubeconfig))
    server = await asyncio.start_server(gate.serve, "127.0.0.1", 0)
    _redirect(kubeconfig, file, server.sockets[0].getsockname()[1])
    try:
        yield gate
    finally:
        server.close()
        gate.shut()


def _address(kubeconfig: Path) -> tuple[str, int]:
    (cluster,) = yaml.safe_load(kubeconfig.read_text())["clusters"]
    address = urlsplit(cluster["cluster"]["server"])
    return str(address.hostname), int(address.port or 443)


def _redirect(kubeconfig: Path, file: Path, port: int) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    file.write_text(yaml.safe_dump(config))
