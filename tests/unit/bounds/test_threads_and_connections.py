"""Every use of a thread, and every module that reads from a network, is named here with what bounds it.

A new one fails until it is named: decide first what bounds its time, its size and how many of them there are at once.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
PACKAGES: Final = ("slinky_operator", "slurm_client", "slurm_exporter")
NOT_OURS: Final = ("slurm_client/testing/", "slurm_client/examples/", "slurm_client/wire/")
"""Fakes, examples and generated tables, of which the operator runs nothing."""

STARTS_A_THREAD: Final = frozenset(
    {"to_thread", "run_in_executor", "ThreadPoolExecutor", "ProcessPoolExecutor", "Thread"}
)

THREADS: Final[Mapping[str, str]] = {
    "slinky_operator/agent/resolver.py": "a fixed number of threads for names, each look-up with its own timeout",
    "slinky_operator/agent/server.py": "a fixed number of callers at a time, each with a deadline",
    "slinky_operator/autoscaling/controller.py": "one count of one Cluster, bounded by jobs and shapes",
    "slinky_operator/joblogs/command.py": "one thread that waits for the end of the parent",
    "slinky_operator/joblogs/server.py": "at most as many as there may be connections",
    "slinky_operator/kube/cache/weight.py": "rules about one object, whose values, characters and levels are bounded",
    "slinky_operator/loginset/execute.py": "host keys of fixed sizes, once for each LoginSet",
    "slinky_operator/oldjobs/controller.py": "one translation of a script of bounded length",
    "slinky_operator/runtime/health.py": "one page of metrics; a second request waits for it",
    "slinky_operator/runtime/loop_lag.py": "one thread for the life of the process",
    "slinky_operator/slurmjob/reading.py": "the records of one job, of which a limited number of characters is read",
    "slinky_operator/slurmjob/translations.py": "one translation of a script of bounded length",
    "slurm_client/sync/base.py": "one thread for each facade without await, until that is closed",
    "slurm_client/tokens.py": "one small file",
    "slurm_exporter/exporter.py": "one page; pages are written one after another",
}
"""What bounds the threads that a module starts."""

NETWORK: Final = frozenset({"aiohttp", "httpx", "kopf", "requests", "http", "socket", "socketserver", "urllib"})

CONNECTIONS: Final[Mapping[str, str]] = {
    "slinky_operator/agent/resolver.py": "answers of the resolver of the C library",
    "slinky_operator/agent/server.py": "reads a head of bounded length, and no body",
    "slinky_operator/app.py": "makes the client that `slurm_queries` reads with",
    "slinky_operator/cluster/execute/context.py": "passes that client on",
    "slinky_operator/cluster/execute/slurm/slurm_queries.py": "answers of agents, each with a limit",
    "slinky_operator/front.py": "answers of the API server, cut where they are nested too deeply",
    "slinky_operator/joblogs/command.py": "makes the socket of `joblogs.server`",
    "slinky_operator/joblogs/copies/porter.py": "messages of bounded length",
    "slinky_operator/joblogs/copies/serving.py": "messages of bounded length",
    "slinky_operator/joblogs/opening.py": "names of errors alone",
    "slinky_operator/joblogs/server.py": "a request of bounded length, with a deadline",
    "slinky_operator/joblogs/sources.py": "answers of a job log server, read in pieces",
    "slinky_operator/kube/calls/connection.py": "answers of the API server, whose objects have 1.5 MB at most",
    "slinky_operator/kube/calls/discovery.py": "the list of kinds of one group, from the API server",
    "slinky_operator/kube/calls/reading.py": "answers of the API server, cut where they are nested too deeply",
    "slinky_operator/kube/calls/transport.py": "answers of the API server, cut where they are nested too deeply",
    "slinky_operator/reconcile/spec.py": "the type of that client",
    "slinky_operator/runtime/health.py": "serves pages; no request has a body that is read",
    "slinky_operator/settings.py": "the name of this host",
    "slinky_operator/slurm/connection/clients.py": "answers of slurmrestd, through one Intake for all Clusters",
    "slinky_operator/slurm/connection/replicas.py": "passes requests on to one of several slurmrestds",
    "slinky_operator/slurm/fencing.py": "passes requests on, while this process leads",
    "slurm_client/client.py": "answers of slurmrestd, through an Intake",
    "slurm_client/connection/http.py": "makes the client of a session",
    "slurm_client/connection/intake.py": "the Intake",
    "slurm_client/connection/session.py": "answers of slurmrestd, through an Intake",
    "slurm_client/connection/transport.py": "answers of slurmrestd, through an Intake",
    "slurm_client/sync/client.py": "answers of slurmrestd, through an Intake",
    "slurm_exporter/page/server.py": "serves pages; no request has a body that is read",
}
"""What bounds what a module reads from a network."""


@cache
def modules() -> Mapping[str, ast.Module]:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    named = {path.relative_to(ROOT).as_posix(): path for path in paths}
    return {
        name: ast.parse(path.read_text(encoding="utf-8"))
        for name, path in named.items()
        if not name.startswith(NOT_OURS)
    }


def starts_threads(tree: ast.AST) -> bool:
    names = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in ast.walk(tree)}
    imported = {alias.name for one in ast.walk(tree) if isinstance(one, ast.ImportFrom) for alias in one.names}
    return bool((names | imported) & STARTS_A_THREAD)


def reads_network(tree: ast.AST) -> bool:
    for one in ast.walk(tree):
        if isinstance(one, ast.Import) and any(alias.name.split(".")[0] in NETWORK for alias in one.names):
            # Parsing of URLs and names of statuses read nothing.
            if any(alias.name not in {"urllib.parse", "http"} for alias in one.names):
                return True
        elif isinstance(one, ast.ImportFrom) and (one.module or "").split(".")[0] in NETWORK and one.level == 0:
            if one.module not in {"urllib.parse", "http"}:
                return True
        elif isinstance(one, ast.Attribute) and one.attr in {"open_connection", "start_server", "create_connection"}:
            return True
    return False


@pytest.mark.parametrize(
    ("uses", "known"), [(starts_threads, THREADS), (reads_network, CONNECTIONS)], ids=["threads", "connections"]
)
def test_each_is_named_with_what_bounds_it(uses: object, known: Mapping[str, str]) -> None:
    assert callable(uses)
    found = {name for name, tree in modules().items() if uses(tree)}
    assert sorted(found - known.keys()) == []
    assert all(known.values())


@pytest.mark.parametrize(
    "text",
    [
        "import asyncio\nawait asyncio.to_thread(f)",
        "from asyncio import to_thread",
        "import threading as t\nt.Thread(target=f)",
        "from concurrent.futures import ThreadPoolExecutor",
        "loop.run_in_executor(None, f)",
    ],
)
def test_a_new_thread_is_found(text: str) -> None:
    assert starts_threads(ast.parse(text))
    assert not starts_threads(ast.parse("thread = 1"))


@pytest.mark.parametrize(
    "text",
    ["import httpx", "def f():\n    from aiohttp import web", "import http.client", "asyncio.open_connection('a', 1)"],
)
def test_a_new_connection_is_found(text: str) -> None:
    assert reads_network(ast.parse(text))
    assert not reads_network(ast.parse("from http import HTTPStatus\nfrom urllib.parse import urlsplit\nimport re"))
