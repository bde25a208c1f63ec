"""
What a start of the operator costs before it connects to anything, in CPU time of a process of its own.

Nothing is asserted about time: the table is for reading. Packages that are installed for developers alone, and that
libraries import where they find them, are hidden, as in the image.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median

ROUNDS = 7

PROGRAM = """
import os, sys, time
sys.modules["click"] = None
sys.stderr = open(os.devnull, "w")
begun = time.process_time()
from slinky_operator import cli
cli.main(["--log-level=LOUD"])
print(time.process_time() - begun, len(sys.modules))
"""
"""A start that ends at its settings."""


def started() -> tuple[float, int]:
    """Return seconds of CPU and the number of modules."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    seconds, modules = done.stdout.split()
    return float(seconds), int(modules)


def test_start() -> None:
    _ = started()
    rounds = [started() for _ in range(ROUNDS)]
    times = [seconds for seconds, _ in rounds]
    print("\n\n| | |\n|---|---:|")
    print(f"| until settings are read, s of CPU: best | {min(times):.2f} |")
    print(f"| the same, median | {median(times):.2f} |")
    print(f"| modules imported | {rounds[0][1]:,} |")
