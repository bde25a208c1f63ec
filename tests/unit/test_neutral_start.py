"""Tests, and what they start, do not differ by who starts them."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from hack.machine.neutral_start import FIXED, NEAR, OPEN_FILES, environment
from tests.support import hostile_start

SENSITIVE = (
    "tests/unit/slurm/pod_templates/test_confinement.py",
    "tests/unit/slurm/pod_templates/test_first_process.py",
    "tests/unit/sylabs/translation/test_scripts.py",
    "tests/unit/pod_programs/joblogs/server/test_retention.py",
    "tests/unit/pod_programs/joblogs/copies/test_trees.py",
    "tests/unit/pod_programs/agent/test_directory.py",
    "tests/unit/images/test_cache.py",
    "tests/unit/localkube/test_supervisor.py",
    "tests/unit/slurm_client/cli/test_commands.py",
    "tests/unit/slurm_client/cli/test_text.py",
)
"""Signals, modes of files, processes that are waited for, times that are shown, servers on loopback."""

SHOWN = """
import json, os, resource, signal, subprocess, sys, time
from hack.machine import neutral_start
neutral_start.begin()
ours = signal.getsignal(signal.SIGHUP) not in (signal.SIG_DFL, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGHUP)
look = "import os, resource; print(open('/proc/self/status').read()); print(os.umask(0), os.fstat(0).st_rdev)"
hang_up = "import os, signal; os.kill(os.getpid(), signal.SIGHUP)"
heir = "from hack.machine import neutral_start; neutral_start.begin(); " + hang_up
status = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
# The C library keeps two signals to itself: who starts this may have them ignored, and nobody can change that.
settable = sum(1 << one - 1 for one in signal.valid_signals())
fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
print(json.dumps({
    "goes on": ours,
    "ignored": int(fields["SigIgn"], 16) & settable & ~(1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1),
    "blocked": int(fields["SigBlk"], 16),
    "umask": int(status.split()[-2]),
    "stdin": int(status.split()[-1]) == os.stat(os.devnull).st_rdev,
    "failure": subprocess.run(["false"]).returncode,
    "heir": subprocess.run([sys.executable, "-c", heir]).returncode,
    "other": subprocess.run([sys.executable, "-c", hang_up]).returncode,
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    "zone": time.tzname[0],
    "encoding": open(os.devnull).encoding.lower(),
    "left": sorted(name for name in sys.argv[1:] if name in os.environ),
}))
"""
"""What a program sees after a neutral start, and a program that it starts."""


@pytest.mark.parametrize("words", ["C", "tr_TR"])
def test_what_is_inherited_is_undone_for_a_program_and_for_what_it_starts(words: str) -> None:
    command = ["env", f"PYTHONPATH={FIXED['PYTHONPATH']}", sys.executable, "-c", SHOWN]
    gone = hostile_start.VARIABLES.keys() - FIXED.keys() - {"http_proxy", "HTTPS_PROXY"}
    done = hostile_start.run([*command, *gone], {"LC_ALL": words})
    assert json.loads(done.stdout) == {
        "goes on": True,
        "ignored": 0,
        "blocked": 0,
        "umask": 0o022,
        "stdin": True,
        "failure": 1,
        "heir": 0,
        "other": -signal.SIGHUP,
        "files": OPEN_FILES,
        "zone": "UTC",
        "encoding": "utf-8",
        "left": [],
    }


def test_what_a_person_chooses_for_all_stays() -> None:
    chosen = {"PATH": "/bin", "HOME": "/home/a", "TMPDIR": "/big", "XDG_CACHE_HOME": "/c", "PIP_CERT": "/ca", "CI": "1"}
    assert environment(chosen) == chosen | FIXED


def test_no_proxy_stands_before_what_is_near() -> None:
    found = environment({"https_proxy": "http://proxy", "NO_PROXY": "a.site,localhost"})
    assert found["https_proxy"] == "http://proxy"
    assert found["no_proxy"] == found["NO_PROXY"] == ",".join(("a.site", *NEAR))
    # A second time, as in a process of pytest that `hack.check` has started, nothing changes.
    assert environment(found) == found


def test_sensitive_tests_pass_however_pytest_is_started() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses=2", "-p", "no:cacheprovider", *SENSITIVE]
    # These tests wait for programs, with patience, but not for ever: they get their share of a busy machine.
    done = hostile_start.run(command, {"LC_ALL": "C"}, nice=0)
    assert done.returncode == 0, done.stdout
