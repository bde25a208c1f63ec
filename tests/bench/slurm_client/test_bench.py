"""
Tables about the client: a list of 5,000 nodes, an idle watch, a thousand drains, imports; compared with others.

Nothing is asserted about time: the tables are for reading, and ratios within one run say more than seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
PROJECT = HERE.parents[2]
SPEC = PROJECT / "hack" / "client" / "wire" / "specs" / "v0.0.45.json"
NODES = JOBS = 5000
MANY_JOBS = 20_000
RECORDS = 10_000

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A fake slurmrestd with many nodes, in a process of its own, writing JSON as the real one does."""
    command = [sys.executable, "-m", "slurm_client.testing", "--nodes", str(NODES), "--pretty"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        probe("body", address)  # it writes each node once, on the first request
        yield address
        server.terminate()


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What openapi-python-client makes of the same specification with its own templates."""
    folder = tmp_path_factory.mktemp("stock")
    generator = Path(sys.executable).with_name("openapi-python-client")
    options = ["--meta", "none", "--output-path", str(folder / "stock")]
    environment = os.environ | {"PATH": f"{generator.parent}:{os.environ['PATH']}"}
    subprocess.run(
        [generator, "generate", "--path", str(SPEC), *options], check=True, capture_output=True, env=environment
    )
    return folder


@pytest.fixture(scope="module")
def peer_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that has the PyPI package slurmrestapi."""
    folder = tmp_path_factory.mktemp("peer")
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "slurmrestapi==25.11.4.0"], check=True)
    return python


def probe(*arguments: str, python: str = sys.executable) -> dict[str, Any]:
    """Run a measurement in a fresh process."""
    result = subprocess.run(
        [python, str(HERE / "probe.py"), *arguments],
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(result.stdout)
    return found


IMPORT = """
import sys, time
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
before, wall, cpu = peak(), time.perf_counter(), time.process_time()
__import__(sys.argv[1])
print(time.perf_counter() - wall, time.process_time() - cpu, peak() - before)
"""


def imported(module: str, python: str) -> dict[str, float]:
    """Import a module in a fresh process that has imported nothing else."""
    shown = subprocess.run(
        [python, "-W", "ignore", "-c", IMPORT, module], cwd=PROJECT, stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    return dict(zip(("wall", "cpu", "mib"), (float(word) for word in shown.split()), strict=True))


def table(title: str, rows: list[tuple[str, ...]]) -> None:
    """Print rows below their first one."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print(f"\n\n{title}\n")
    for row in rows:
        cells = [
            cell.ljust(width) if not index else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "   ".join(cells))


def listed(what: str, runs: dict[str, dict[str, Any]]) -> None:
    """Print what it costs to list objects, each way beside ours."""
    ours = runs["slurm_client"]
    rows: list[tuple[str, ...]] = [
        ("", "seconds", "to ours", "longest stall ms", "of it own CPU ms", "peak MiB", "held MiB")
    ]
    rows += [
        (
            name,
            f"{run['seconds']:.3f}",
            f"{run['seconds'] / ours['seconds']:.2f}x",
            f"{run['stall'] * 1000:.1f}",
            f"{run['own'] * 1000:.1f}",
            f"{run['mib']:.0f}",
            f"{run['held']:.0f}" if "held" in run else "",
        )
        for name, run in runs.items()
    ]
    table(f"{what} listed (best of 3; stall of an event loop beside it; memory above the start)", rows)


def test_listing_many_nodes(url: str, stock: Path, peer_python: str) -> None:
    runs = {
        "slurm_client": probe("ours", url),
        "httpx, body thrown away": probe("body", url),
        "httpx + json.loads": probe("loads", url),
        "httpx + json.loads in a thread": probe("threaded", url),
        "generated by openapi-python-client": probe("generated", url, str(stock)),
        "slurmrestapi 25.11 (PyPI)": probe("peer", url, python=peer_python),
    }
    listed(f"{NODES} nodes", runs)
    ours = runs["slurm_client"]
    assert ours["objects"] == NODES
    assert runs["generated by openapi-python-client"]["objects"] == NODES
    assert runs["slurmrestapi 25.11 (PyPI)"]["objects"] == NODES


def test_listing_many_jobs(url_of_many_jobs: str, stock: Path) -> None:
    url = url_of_many_jobs
    runs = {
        "slurm_client": probe("ours", url, "jobs"),
        "slurm_client, details=True": probe("ours", url, "jobs", "details"),
        "slurm_client, keep_raw=True": probe("ours", url, "jobs", "raw"),
        "httpx, body kept as it is": probe("body", url, "jobs"),
        "httpx + json.loads": probe("loads", url, "jobs"),
        "httpx + json.loads in a thread": probe("threaded", url, "jobs"),
        "generated by openapi-python-client": probe("generated", url, str(stock), "jobs"),
    }
    size = runs["httpx, body kept as it is"]["objects"] / 2**20
    listed(f"{MANY_JOBS} jobs ({size:.0f} MiB)", runs)
    assert {run["objects"] for name, run in runs.items() if "body" not in name} == {MANY_JOBS}


def test_an_idle_watch(url: str) -> None:
    run = probe("idle", url, "20")
    rows: list[tuple[str, ...]] = [
        ("", "a minute"),
        ("requests", f"{run['requests']:.0f}"),
        ("bytes of bodies", f"{run['bytes']:.0f}"),
        ("CPU seconds", f"{run['cpu']:.2f}"),
    ]
    table(f"Idle watch of {NODES} nodes (20 s, extrapolated; a full list every 5 minutes not included)", rows)
    assert run["objects"] == NODES


@contextlib.contextmanager
def served(what: str, count: int) -> Iterator[str]:
    """A server of long answers, in a process of its own."""
    command = [sys.executable, str(HERE / "served.py"), what, str(count)]
    environment = os.environ | {"PYTHONPATH": str(PROJECT)}
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


@pytest.fixture(scope="module")
def url_of_many_jobs() -> Iterator[str]:
    """A server with as many jobs as a big cluster has."""
    with served("jobs", MANY_JOBS) as url:
        yield url


def test_turns_of_a_watch_of_many_jobs() -> None:
    rows: list[tuple[str, ...]] = [("", "longest turn, ms of CPU", "of it garbage collection", "all of it, s of CPU")]

    def row(name: str, runs: list[dict[str, float]]) -> None:
        own = max(run["own"] for run in runs)
        garbage = max(run["garbage"] for run in runs)
        cpu = statistics.median(run["cpu"] for run in runs)
        rows.append((name, f"{own * 1000:.0f}", f"{garbage * 1000:.0f}", f"{cpu:.2f}"))

    for what, change in (("changing_jobs", "1 of 100 changed"), ("rewritten_jobs", "all rewritten, none changed")):
        with served(what, MANY_JOBS) as url:
            run = probe("watched", url, "4")
        assert run["objects"] == MANY_JOBS
        assert run["changed"] == (MANY_JOBS // 100 if what == "changing_jobs" else 0)
        if len(rows) == 1:
            row("first list", [run["first"]])
        row(f"a poll, {change}", run["polls"])
    table(f"A watch of {MANY_JOBS} jobs (the worst and the median of 4 polls)", rows)


def test_reading_long_history() -> None:
    with served("history", RECORDS) as url:
        runs = {"slurm_client": probe("history", url), "httpx + json.loads": probe("history_loads", url)}
    rows: list[tuple[str, ...]] = [
        ("", "seconds", "longest turn, ms of CPU", "longest garbage collection, ms", "objects it looks at", "held MiB")
    ]
    rows += [
        (
            name,
            f"{run['seconds']:.2f}",
            f"{run['own'] * 1000:.0f}",
            f"{run['garbage'] * 1000:.0f}",
            str(run["tracked"]),
            f"{run['held']:.0f}",
        )
        for name, run in runs.items()
    ]
    table(f"{RECORDS} ended jobs with two steps each, out of slurmdbd (best of 3)", rows)
    assert {run["objects"] for run in runs.values()} == {RECORDS}


@pytest.fixture(scope="module")
def url_of_jobs() -> Iterator[str]:
    """A fake slurmrestd with many jobs, in a process of its own."""
    command = [sys.executable, "-m", "slurm_client.testing", "--nodes", "1000", "--jobs", str(JOBS), "--pretty"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


def test_a_watch_of_jobs_of_which_few_change(url_of_jobs: str) -> None:
    run = probe("jobs_polled", url_of_jobs, str(JOBS // 100))
    rows: list[tuple[str, ...]] = [("", "CPU seconds", "to json.loads")]
    rows += [
        (name, f"{run[key]:.3f}", f"{run[key] / run['loads']:.2f}x")
        for name, key in (
            ("json.loads of the body, nothing else", "loads"),
            ("jobs(), nothing known", "all"),
            ("a poll of the watch", "poll"),
        )
    ]
    table(
        f"{JOBS} jobs, {run['bytes'] / 2**20:.0f} MiB, {run['events']} of them changed "
        "(best of 3; the last two receive the body as well)",
        rows,
    )
    assert run["objects"] == JOBS
    assert run["events"] == JOBS // 100


def test_draining_a_thousand_nodes(url: str) -> None:
    runs = {how: probe("drain", url, how) for how in ("bulk", "singly")}
    rows: list[tuple[str, ...]] = [("", "calls", "seconds", "to bulk")]
    rows += [
        (how, str(run["calls"]), f"{run['seconds']:.3f}", f"{run['seconds'] / runs['bulk']['seconds']:.1f}x")
        for how, run in runs.items()
    ]
    table("1000 nodes drained", rows)
    assert runs["bulk"]["calls"] == 1


def test_imports(peer_python: str, stock: Path) -> None:
    def median(module: str, python: str = sys.executable) -> dict[str, float]:
        runs = [imported(module, python) for _ in range(5)]
        return {key: statistics.median(run[key] for run in runs) for key in runs[0]}

    runs = {
        "asyncio alone": median("asyncio"),
        "slurm_client": median("slurm_client"),
        "slurm_client.models": median("slurm_client.models"),
        "slurm_client.client (all of it)": median("slurm_client.client"),
        "slurm_client.testing": median("slurm_client.testing"),
        "slurmrestapi": median("slurmrestapi", peer_python),
    }
    ours = runs["slurm_client.client (all of it)"]
    rows: list[tuple[str, ...]] = [("", "seconds", "CPU seconds", "CPU to ours", "MiB")]
    rows += [
        (name, f"{run['wall']:.3f}", f"{run['cpu']:.3f}", f"{run['cpu'] / ours['cpu']:.1f}x", f"{run['mib']:.0f}")
        for name, run in runs.items()
    ]
    table("Imports in a fresh process (median of 5)", rows)


def test_size_of_generated_code(stock: Path) -> None:
    def size(folder: Path) -> tuple[int, int]:
        files = list(folder.rglob("*.py"))
        return len(files), sum(path.read_text().count("\n") for path in files)

    parsers = sorted((PROJECT / "slurm_client" / "wire").glob("v0_0_*"))
    ours, theirs = size(parsers[-1]), size(stock)
    all_ours = [size(folder) for folder in parsers]
    rows: list[tuple[str, ...]] = [
        ("", "files", "lines"),
        ("v0.0.45, our templates", str(ours[0]), str(ours[1])),
        ("v0.0.45, stock templates", str(theirs[0]), str(theirs[1])),
        (f"all {len(parsers)} parsers, ours", str(sum(n for n, _ in all_ours)), str(sum(n for _, n in all_ours))),
    ]
    table("Generated code", rows)
