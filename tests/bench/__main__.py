"""Runs benches, and writes what they have measured: ``make bench``, ``make bench ALL=1 OUT=build/bench.json``.

A quick run has the figures that grow with nodes, NodeSets, Clusters, SlurmJobs and the jobs of a day, at their smaller
sizes; it takes some 12 minutes on an idle machine with two cores. All of tests/bench takes hours. What is measured is
left to the benches, the table to `figures`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent
QUICK = ("whole", "slurmjob/test_scale.py", "site/test_day.py::test_day")


def main() -> int:
    """Run, and return pytest's exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    _ = parser.add_argument("--all", action="store_true", help="every bench and every size")
    _ = parser.add_argument("--out", default="build/bench.json", help="the file for the figures")
    _ = parser.add_argument("benches", nargs="*", help="files or folders below tests/bench; the quick ones by default")
    given = parser.parse_args()
    os.environ["BENCH_OUT"] = str(Path(given.out).absolute())
    if given.all:
        os.environ["BENCH_ALL"] = "1"
    wanted = given.benches or (["."] if given.all else QUICK)
    flags = ["--capture=no", f"--override-ini=testpaths={BENCH}", "-p", "no:cacheprovider"]
    return int(pytest.main([*flags, *(str(BENCH / one) for one in wanted)]))


if __name__ == "__main__":
    sys.exit(main())
