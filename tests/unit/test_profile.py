"""Where the time of a check goes: programs by CPU time, and the slowest files and tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hack.testing import profile
from hack.testing.profile import CpuProfile

TICKS = os.sysconf("SC_CLK_TCK")

REPORT = """\
<testsuites><testsuite>
<testcase classname="tests.a" name="test_one" time="2.5"/>
<testcase classname="tests.b" name="test_two[x]" time="4.0"/>
<testcase classname="tests.a" name="test_three" time="3.0"/>
</testsuite></testsuites>
"""


class Machine:
    """The processes of a machine, as the kernel shows them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processors(busy=0, idle=0)

    def processors(self, busy: int, idle: int) -> None:
        ticks = [str(seconds * TICKS) for seconds in (busy, 0, 0, idle, 0, 0, 0)]
        (self.folder / "stat").write_text(f"cpu  {' '.join(ticks)} 0 0 0\ncpu0 0\n")

    def process(self, number: int, seconds: int, *argv: str, start: int = 5, name: str = "") -> None:
        place = self.folder / str(number)
        place.mkdir(exist_ok=True)
        shown = name or Path(argv[0]).name
        # User and system time are the 14th and 15th field, the start is the 22nd.
        fields = ["0"] * 10 + [str(seconds * TICKS), "0"] + ["0"] * 6 + [str(start)]
        (place / "stat").write_text(f"{number} ({shown}) S {' '.join(fields)} 0\n")
        (place / "cmdline").write_bytes(b"".join(one.encode() + b"\0" for one in argv))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_only_what_is_used_between_begin_and_end_counts(machine: Machine) -> None:
    machine.process(7, 100, "/bin/etcd")
    found = CpuProfile(machine.folder)
    found.begin()
    machine.process(7, 103, "/bin/etcd")
    # It began meanwhile, so all of its time counts.
    machine.process(8, 4, "/bin/etcd")
    machine.processors(busy=10, idle=30)
    found.look()
    # Another process has the number now.
    machine.process(8, 2, "/bin/kubelet", start=99)
    machine.processors(busy=15, idle=35)
    found.look()
    assert list(found.lines()) == [
        "CPU: 15 s, processors busy for 30 % of the time",
        "      7.0 s  etcd",
        f"      6.0 s  {profile.SHORT_LIVED}",
        "      2.0 s  kubelet",
    ]


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (("python3", "-m", "slinky_operator", "--replicas"), "python -m slinky_operator"),
        (("python3", "-u", "/bin/agent.py", "x"), "python agent.py"),
        (("python3", "-u", "-c", "import sys;exec(eval(sys.stdin.readline()))"), "pytest worker"),
        (("python3", "-c", "first\nsecond"), "python -c"),
        (("kube-apiserver", "-m", "x"), "kube-apiserver"),
    ],
)
def test_programs_are_named_so_that_a_reader_knows_them(machine: Machine, argv: tuple[str, ...], shown: str) -> None:
    machine.process(7, 1, *argv)
    found = profile.process_seconds(machine.folder / "7")
    assert found is not None
    assert found[2] == shown


def test_a_program_whose_name_has_parentheses_is_read(machine: Machine) -> None:
    machine.process(7, 3, "sd", name="(sd-pam) x")
    assert profile.process_seconds(machine.folder / "7") == (5, 3.0, "(sd-pam) x")


def test_what_a_real_process_uses_is_seen() -> None:
    burn = "import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end: pass\ninput()"
    with profile.profiled() as found:
        process = subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE)
        while (used := profile.process_seconds(Path(f"/proc/{process.pid}"))) is None or used[1] < 0.5:
            assert process.poll() is None
    process.communicate(b"\n")
    assert found.seconds["python -c"] >= 0.5


def test_the_slowest_files_and_tests_come_first(tmp_path: Path) -> None:
    report = tmp_path / "e2e.xml"
    report.write_text(REPORT)
    assert list(profile.slowest([report])) == [
        "slowest files, with what they set up",
        "      5.5 s  e2e: tests.a",
        "      4.0 s  e2e: tests.b",
        "slowest tests, with what they set up",
        "      4.0 s  e2e: tests.b::test_two[x]",
        "      3.0 s  e2e: tests.a::test_three",
        "      2.5 s  e2e: tests.a::test_one",
    ]
