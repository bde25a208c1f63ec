"""
What it costs to import the client and what each extra adds, in CPU time of a process of its own.

Nothing is asserted about time: the table is for reading. The best of many is the time that the work itself takes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROUNDS = 7

STATEMENTS = (
    ("", "the package", "import slurm_client"),
    ("", "models", "from slurm_client import models"),
    ("", "the client", "from slurm_client import SlurmClient"),
    ("", "the blocking client", "from slurm_client import SyncSlurmClient"),
    ("", "a client that is made, with httpx", "from slurm_client import SlurmClient; SlurmClient('http://a', 'b')"),
    (
        "jwt",
        "the first signed token",
        "import asyncio; from slurm_client import MintedToken; asyncio.run(MintedToken(b'k' * 32).token())",
    ),
    ("cli", "the command line", "import slurm_client.cli.app"),
    ("testing", "the plugin, in pytest", "import slurm_client.testing.plugin"),
    ("testing", "the fake", "from slurm_client.testing import FakeSlurmrestd"),
    ("", "for comparison: httpx", "import httpx"),
    ("", "for comparison: asyncio", "import asyncio"),
)
"""Extra that is needed, what is imported, and how."""

_MEASURE = """
import sys
{before}
from time import process_time
known = len(sys.modules)
begun = process_time()
{statement}
print((process_time() - begun) * 1000, len(sys.modules) - known)
"""


def measure(statement: str, before: str = "") -> tuple[float, int]:
    """Return milliseconds and the number of modules."""
    code = _MEASURE.format(statement=statement, before=before)
    rounds = []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r})\n{code}"],
            check=True,
            capture_output=True,
            text=True,
        )
        milliseconds, modules = done.stdout.split()
        rounds.append((float(milliseconds), int(modules)))
    return min(rounds)


def test_imports() -> None:
    print("\n\n| extra | what is imported | ms | modules |\n|---|---|---:|---:|")
    for extra, what, statement in STATEMENTS:
        milliseconds, modules = measure(statement, "import pytest" if "in pytest" in what else "")
        shown = f"{what}: `{statement.rpartition('; ')[2]}`"
        print(f"| {extra or 'none'} | {shown} | {milliseconds:.0f} | {modules} |")
