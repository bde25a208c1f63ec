"""How fast output of a job comes through: from the server, and from a mounted file. Prints, asserts nothing.

A hundred mebibytes, server and follower as processes of their own; the whole life of the follower counts, its start
included. `cat` of the same file is the reference of the same run, and what runs on the machine meanwhile counts. Run it
as root: ``pytest tests/bench/pod_programs/joblogs --capture=no --override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from slinky_operator.pod_programs.joblogs.follower.job_file import JobState, Place
from tests.support import job_logs
from tests.support.job_logs import Followed

MIB = 1024 * 1024
SIZE = 100
LATENCIES = 20


def test_throughput() -> None:
    rows: list[tuple[str, float]] = []
    with job_logs.node() as node:
        path = node.write("big.out", os.urandom(MIB) * SIZE, mode=0o644)
        began = time.perf_counter()
        with (node.root / "copy").open("wb") as copy:
            subprocess.run(["cat", path], stdout=copy, check=True)
        rows.append(("cat", time.perf_counter() - began))
        for name, place in (("server", node.place("big.out")), ("mounted file", Place(file=str(path)))):
            folder = node.root / name
            folder.mkdir()
            began = time.perf_counter()
            follower = Followed(folder, {"stdout": place}, JobState.ENDED).start()
            follower.ends_with(0)
            rows.append((name, time.perf_counter() - began))
        seen = latencies(node.root, node)
        status = Path(f"/proc/{node.process.pid}/status").read_text()
    print(f"\n{'source':14} {'seconds':>8} {'MiB/s':>8}")
    for name, seconds in rows:
        print(f"{name:14} {seconds:8.2f} {SIZE / seconds:8.0f}")
    print(
        f"a line is printed after {1000 * sorted(seen)[len(seen) // 2]:.0f} ms (median), {1000 * max(seen):.0f} at most"
    )
    print("server,", next(line for line in status.splitlines() if line.startswith("VmHWM")))


def latencies(root: Path, node: job_logs.Node) -> list[float]:
    """Seconds from the end of a write until the follower has printed it."""
    folder = root / "latency"
    folder.mkdir()
    path = node.write("lines.out", b"")
    follower = Followed(folder, {"stdout": node.place("lines.out")}).start()
    found, whole = [], b""
    for number in range(LATENCIES):
        line = b"%d\n" % number
        whole += line
        with path.open("ab") as opened:
            opened.write(line)
        began = time.perf_counter()
        follower.prints(whole)
        found.append(time.perf_counter() - began)
    follower.stop()
    return found[1:]
