"""The answers of the agent."""

from __future__ import annotations

import http.client
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

from slinky_operator.pod_programs.agent.files import expected, mounted
from slinky_operator.pod_programs.agent.resolver import Resolver
from slinky_operator.pod_programs.agent.server import answer, serve


def as_kubelet(folder: Path, generation: str, files: dict[str, str]) -> None:
    """Mount files as the kubelet does: a new folder, and one rename that swaps a link to it."""
    data = folder / f"..{generation}"
    data.mkdir()
    for name, text in files.items():
        (data / name).write_text(text)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    (folder / "..data_tmp").symlink_to(data.name)
    (folder / "..data_tmp").rename(folder / "..data")


def test_what_is_mounted_is_what_was_written(tmp_path: Path) -> None:
    files = {"slurm.conf": "ClusterName=x\n", "umlaut.conf": "\u00e4"}
    as_kubelet(tmp_path, "1", files)
    assert mounted(tmp_path) == expected(files)
    as_kubelet(tmp_path, "2", {"slurm.conf": "ClusterName=y\n"})
    assert mounted(tmp_path) == expected({"slurm.conf": "ClusterName=y\n"})


def test_a_folder_that_is_not_there_is_an_answer_too(tmp_path: Path) -> None:
    assert answer(b"GET /files HTTP/1.1\r\n\r\n", tmp_path / "no", Resolver()).startswith(b"HTTP/1.1 503 ")
    assert answer(b"GET /etc/passwd HTTP/1.1\r\n\r\n", tmp_path, Resolver()).startswith(b"HTTP/1.1 404 ")
    assert answer(b"", tmp_path, Resolver()).startswith(b"HTTP/1.1 404 ")


def test_it_serves_one_after_the_other(tmp_path: Path) -> None:
    as_kubelet(tmp_path, "1", {"slurm.conf": "x"})
    ports: queue.Queue[int] = queue.Queue()
    threading.Thread(
        target=serve, args=(tmp_path, 0), kwargs={"host": "127.0.0.1", "ready": ports.put}, daemon=True
    ).start()
    port = ports.get(timeout=120)
    for _ in range(2):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", "/files")
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())) == (200, {"files": expected({"slurm.conf": "x"})})
        connection.close()


def test_it_needs_nothing_heavy() -> None:
    code = (
        "import sys, slinky_operator.pod_programs.agent.server;"
        "print(*(m for m in ('pydantic', 'httpx', 'aiohttp', 'asyncio', 'ssl', 'http') if m in sys.modules))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "."}
    )
    assert found.stdout.strip() == ""
