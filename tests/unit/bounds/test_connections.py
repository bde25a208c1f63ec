"""What opens a connection is listed here: bytes of a pod or a server come in through an intake, and nowhere else.

A new module that reads over HTTP or a socket fails this test until it is listed with the bounds that it has.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hack.localkube.paths import PROJECT

PACKAGES = ("slinky_operator", "slurm_exporter", "api")

NETWORK = {
    *("aiohttp", "httpx", "socket", "socketserver", "ftplib", "smtplib", "poplib", "imaplib", "nntplib"),
    *("requests", "urllib3", "websockets", "websocket", "grpc", "paramiko", "kubernetes", "kubernetes_asyncio"),
    *("http.client", "http.server", "urllib.request", "xmlrpc.client", "telnetlib", "multiprocessing.connection"),
}
"""Modules that open connections."""

CALLS = {
    *("open_connection", "open_unix_connection", "start_server", "start_unix_server", "create_connection"),
    *("create_server", "create_unix_connection", "create_unix_server", "create_datagram_endpoint"),
    *("create_subprocess_exec", "create_subprocess_shell", "get_server_certificate", "__import__", "import_module"),
}
"""Calls that open connections without an import of such a module, or start what may."""

ALLOWED: dict[str, tuple[set[str], str]] = {
    # Answers of pods and servers
    "slinky_operator/slurm/connection/pod_reader.py": ({"httpx"}, "the intake of pods' answers"),
    "slinky_operator/slurm/connection/job_output.py": ({"httpx"}, "PIECE and a deadline for each answer"),
    "slinky_operator/slurm/connection/signed_messages.py": (
        {"open_connection"},
        "`longest` of its callers, and their deadline",
    ),
    "slinky_operator/slurm/connection/clients.py": ({"httpx"}, "transports; the client reads with its intake"),
    "slinky_operator/slurm/connection/replicas.py": ({"httpx"}, "a transport; it reads no body"),
    "slinky_operator/slurm/connection/fencing.py": ({"httpx"}, "a transport; it reads no body"),
    "slinky_operator/slurm/connection/overrides.py": ({"httpx"}, "a transport; it reads no body"),
    "slinky_operator/pod_programs/joblogs/follower/sources.py": (
        {"http.client"},
        "MAX_CHUNK and a deadline for each answer, pieces of 1 MiB",
    ),
    "slinky_operator/pod_programs/joblogs/server/connections.py": (
        {"socket"},
        "a share for each holder; it reads nothing",
    ),
    "slinky_operator/pod_programs/joblogs/copies/pace.py": ({"socket"}, "a pace and an end for each copy"),
    "slinky_operator/pod_programs/joblogs/timed_socket.py": (
        {"socket", "create_connection"},
        "the deadline of the two above",
    ),
    # The API server, which is trusted
    "slinky_operator/custom_resource_watch.py": ({"aiohttp"}, "levels of objects are limited by `kube.calls.depth`"),
    "slinky_operator/kube/calls/connection.py": ({"aiohttp", "urllib.request"}, ""),
    "slinky_operator/kube/calls/discovery.py": ({"aiohttp"}, ""),
    "slinky_operator/kube/calls/login.py": ({"kubernetes"}, "credentials; it is asked for nothing else"),
    "slinky_operator/kube/calls/reading.py": ({"aiohttp"}, ""),
    "slinky_operator/kube/calls/transport.py": ({"aiohttp"}, ""),
    # Servers: requests have a size and a deadline
    "slinky_operator/pod_programs/agent/connections.py": ({"socket"}, "connections, bytes and seconds are limited"),
    "slinky_operator/pod_programs/agent/server.py": (
        {"socket", "create_server"},
        "connections, bytes and seconds are limited",
    ),
    "slinky_operator/pod_programs/agent/sack.py": (
        {"socket", "create_server"},
        "the same; LONGEST and SECONDS for an answer of sackd, at its socket",
    ),
    "slinky_operator/pod_programs/joblogs/server/listener.py": (
        {"socket"},
        "connections, bytes and seconds are limited",
    ),
    "slinky_operator/pod_programs/joblogs/server/opening.py": (
        {"socket"},
        "a channel between two processes of one pod",
    ),
    "slinky_operator/pod_programs/joblogs/command.py": ({"socket", "create_server"}, "listens for the server"),
    "slinky_operator/pod_programs/joblogs/copies/serving.py": ({"socket"}, "bounded frames, COPY_SECONDS"),
    "slinky_operator/runtime/health.py": ({"aiohttp"}, "no request has a body that is read"),
    "slinky_operator/virtual_nodes/kubelet/answers.py": ({"aiohttp"}, "no request has a body that is read"),
    "slinky_operator/virtual_nodes/kubelet/listener.py": (
        {"aiohttp", "socket", "create_server"},
        "connections by address, seconds until a caller is known; no request has a body that is read",
    ),
    "slurm_exporter/page/server.py": ({"aiohttp"}, "no request has a body that is read"),
    # No connection
    "slinky_operator/pod_programs/agent/resolver.py": ({"socket"}, "the resolver of the C library"),
    "slinky_operator/settings.py": ({"socket"}, "the name of the host"),
}
"""By module: what it uses, and what bounds the bytes that it reads."""

TRANSPORTS = ("clients", "replicas", "pod_reader")
READS = {"json", "aread", "content", "text", "aiter_bytes", "aiter_raw", "aiter_text", "aiter_lines"}
"""Attributes of an httpx response that read its body without limit."""


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (PROJECT / package).rglob("*.py"))


def used(tree: ast.AST) -> set[str]:
    """What of the network a module uses."""
    found: set[str] = set()
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or "", *(f"{node.module}.{one.name}" for one in node.names)]
        for name in names:
            parts = name.split(".")
            found |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)} & NETWORK
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in CALLS:
            found.add(called.attr)
        elif isinstance(called, ast.Name) and called.id in CALLS:
            found.add(called.id)
    return found


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_connections_are_opened_where_their_bytes_are_bounded() -> None:
    found = {str(path.relative_to(PROJECT)): uses for path in modules() if (uses := used(parsed(path)))}
    allowed = {path: uses for path, (uses, _) in ALLOWED.items()}
    assert {path: uses for path, uses in found.items() if allowed.get(path) != uses} == {}
    assert allowed.keys() - found.keys() == set(), "they open none any more"


@pytest.mark.parametrize(
    "line",
    [
        "import httpx",
        "from urllib import request",
        "import urllib.request as x",
        "from http.client import HTTPConnection",
        "import asyncio\nasyncio.open_connection('a', 1)",
        "from asyncio import open_connection\nopen_connection('a', 1)",
        "from importlib import import_module\nimport_module('socket')",
        "__import__('socket')",
    ],
)
def test_each_way_to_open_a_connection_is_seen(line: str) -> None:
    assert used(ast.parse(line))


def test_a_response_is_read_by_the_intake_only() -> None:
    for name in TRANSPORTS:
        tree = parsed(PROJECT / "slinky_operator" / "slurm" / "connection" / f"{name}.py")
        read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & READS
        assert not read, f"{name} reads a body past the intake: {read}"


def test_every_client_of_slurmrestd_shares_the_intake_and_names_its_owner() -> None:
    made = 0
    for path in modules():
        if path.is_relative_to(PROJECT / "slinky_operator"):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "SlurmClient":
                    made += 1
                    assert {"intake", "owner"} <= {one.arg for one in node.keywords}, f"{path}:{node.lineno}"
    assert made
