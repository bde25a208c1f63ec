"""No code of ours runs in a thread that nobody has thought about.

A call in the default executor of asyncio, a pool or a thread of its own needs a purpose and a reason why it ends, and
must not be begun twice for the same object: `slinky_operator.runtime.threads` sees to that in the operator. Whoever
needs a thread elsewhere adds it here, with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("slinky_operator", "slurm_client", "slurm_exporter", "api/slinky_api")

EXECUTORS = frozenset(
    {
        "to_thread",
        "run_in_executor",
        "run_sync",
        "set_default_executor",
        "ThreadPoolExecutor",
        "ProcessPoolExecutor",
        "Thread",
        "Timer",
        "start_new_thread",
    }
)

OWNERS = {
    "slinky_operator/runtime/threads.py": "the pools of the operator, each with a purpose and a bound",
    "slinky_operator/runtime/loop_lag.py": "one for the process, which watches the event loop and must not be in it",
    "slinky_operator/agent/resolver.py": "the agent's own process; a fixed number that look up names",
    "slinky_operator/agent/volumes.py": "the agent's own process; one at a time for each volume, since a look may hang",
    "slinky_operator/joblogs/command.py": "the log server's own process; one that ends with its pod's other container",
    "slinky_operator/joblogs/server.py": "the log server's own process; one for each connection, which are limited",
    "slurm_client/tokens.py": "one for each token file, in which one read runs at a time",
    "slurm_client/sync/base.py": "the event loop of the blocking client, one for each client",
    "slurm_client/testing/threaded.py": "the event loop of the fake slurmrestd in tests of users",
    "slurm_exporter/exporter.py": "one, in which one family of a page is written at a time; budgets bound it",
}


def uses(source: str) -> Iterator[str]:
    """Names in a module by which code gets into another thread."""
    for node in ast.walk(ast.parse(source)):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else [name]
        yield from EXECUTORS.intersection(names)


def modules() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def test_each_module_that_uses_threads_has_said_why() -> None:
    found = {name: sorted(set(uses(source))) for name, source in modules()}
    unknown = {name: used for name, used in found.items() if used and name not in OWNERS}
    assert not unknown, "run it in a pool of slinky_operator/runtime/threads.py, or add the module with its reason"
    assert {name for name in OWNERS if not found.get(name)} == set(), "these use no threads any more"


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasync def one():\n    await asyncio.to_thread(print)",
        "from asyncio import to_thread as elsewhere",
        "loop.run_in_executor(None, print)",
        "import concurrent.futures as f\nf.ThreadPoolExecutor()",
        "import anyio\nanyio.to_thread.run_sync(print)",
        "import threading\nthreading.Thread(target=print)",
    ],
)
def test_each_way_into_a_thread_is_found(source: str) -> None:
    assert list(uses(source))
