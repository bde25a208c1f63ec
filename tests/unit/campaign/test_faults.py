"""What a fault does is what was drawn for it, and it ends whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from hack.localkube.cluster import Cluster
from tests.campaign.faults.answers import ANSWERS, SHARES
from tests.campaign.faults.claims import FULL_DISKS
from tests.campaign.faults.kind import MetNothing, Place
from tests.campaign.faults.machines import lost_with
from tests.campaign.faults.network import UNREACHABLE
from tests.campaign.faults.processes import JOB_LOGS, PROCESSES, hit, is_meant, state
from tests.campaign.site.disks import CLAIMS, Disks
from tests.support.api_proxy import NONE, Treatment, Trouble


@dataclass
class Beside:
    """A place that notes what is done to it."""

    cluster: Cluster = field(default_factory=lambda: Cluster("nosuch"))
    done: list[Any] = field(default_factory=list)
    treated: dict[str, int] = field(default_factory=dict)
    left: int = 0

    @property
    def proxy(self) -> Beside:
        return self

    @property
    def disks(self) -> Beside:
        return self

    @property
    def counts(self) -> dict[str, int]:
        return {Treatment.PASS.value: 5, **self.treated}

    def begin(self, trouble: Trouble) -> None:
        self.done.append(trouble)

    def free_room(self, disk: str) -> int:
        return self.left

    def fill(self, disk: str) -> str:
        self.done.append(f"fill {disk}")
        return "5 MiB"

    def free(self, disk: str) -> None:
        self.done.append(f"free {disk}")


def drawn(name: str) -> dict[str, Any]:
    return {**ANSWERS, **FULL_DISKS}[name].draw(Random(1))  # noqa: S311 the same each time


def stop(seconds: float) -> None:
    raise KeyboardInterrupt


def play(name: str) -> list[Any]:
    place = Beside()
    with pytest.raises(KeyboardInterrupt):
        {**ANSWERS, **FULL_DISKS}[name].play(cast("Place", place), drawn(name), stop)
    return place.done


@pytest.mark.parametrize("name", ANSWERS)
def test_the_api_server_is_well_again_after_each_trouble(name: str) -> None:
    trouble, after = play(name)
    assert after == NONE
    assert trouble != NONE
    assert trouble.share in SHARES


def test_troubles_are_of_every_kind() -> None:
    found = [play(name)[0] for name in ANSWERS]
    assert sorted(one.code for one in found if one.code) == [409, 429, 500]
    assert sum(one.delay > 0 for one in found) == sum(one.unanswered for one in found) == 1
    assert sum(one.drops for one in found) == 1


@pytest.mark.parametrize("name", FULL_DISKS)
def test_a_disk_is_filled_and_freed(name: str) -> None:
    filled, freed = play(name)
    assert filled.split() == ["fill", freed.split()[1]]
    assert freed.split()[1] in CLAIMS


def test_a_fault_of_answers_says_what_has_met_it_and_fails_where_nothing_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.campaign.faults.answers.MEETS", 0.0)
    fault, values = ANSWERS["API server says 409"], drawn("API server says 409")
    place = Beside(treated={Treatment.REFUSE.value: 3})
    assert fault.play(cast("Place", place), values, lambda _: None).endswith("requests, 3 refused")
    idle = Beside()
    with pytest.raises(MetNothing, match="no request met it"):
        fault.play(cast("Place", idle), values, lambda _: None)
    assert idle.done[-1] == NONE


@pytest.mark.parametrize("name", FULL_DISKS)
def test_a_disk_that_has_room_left_was_not_full(name: str) -> None:
    place = Beside(left=4096)
    with pytest.raises(MetNothing, match="4096 bytes are free"):
        FULL_DISKS[name].play(cast("Place", place), drawn(name), lambda _: None)
    assert place.done[-1].startswith("free ")


def test_a_disk_that_somebody_else_fills_meanwhile_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Disks, "folder", tmp_path)
    monkeypatch.setattr("tests.campaign.site.disks.room", lambda _: {"free": 100})
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "ballast").symlink_to("/dev/full")
    assert Disks("x").fill("state") == "0 MiB and less"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def test_a_signal_has_hit_when_the_process_is_stopped_or_has_ended(sleeper: subprocess.Popen[bytes]) -> None:
    hit([sleeper.pid], signal.SIGSTOP)
    assert state(sleeper.pid) == "T"
    hit([sleeper.pid], signal.SIGKILL)
    assert state(sleeper.pid) == ""


def test_a_signal_that_changes_nothing_met_nothing(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.campaign.faults.processes.OBEYED", 0.2)
    with pytest.raises(MetNothing, match="SIGCHLD changed nothing"):
        hit([sleeper.pid], signal.SIGCHLD)


def test_a_program_that_is_not_there_was_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.campaign.faults.processes.THERE", 0.2)
    fault = PROCESSES["slurmctld killed"]
    with pytest.raises(MetNothing, match="no process of slurmctld is there"):
        fault.play(cast("Place", Beside()), {"which": 0})


@pytest.fixture
def neighbours() -> Iterator[tuple[int, int]]:
    """Two processes in networks of their own, with a cable between them."""
    argv = ["unshare", "--net", "sh", "-ec", "ip link set lo up; echo up; exec sleep 600"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as one, subprocess.Popen(argv, stdout=subprocess.PIPE) as other:
        for process in (one, other):
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
        inside(one.pid, "sh", "-ec", f"ip link add x type veth peer name x netns {other.pid}")
        for number, process in enumerate((one, other), start=1):
            inside(process.pid, "sh", "-ec", f"ip addr add 192.0.2.{number}/24 dev x; ip link set x up")
        yield one.pid, other.pid
        one.kill()
        other.kill()


def inside(pid: int, *argv: str) -> str:
    command = ["nsenter", f"--target={pid}", "--net", "--", *argv]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def send(pid: int, address: str) -> None:
    program = f"import socket, time; [socket.socket(2, 2).sendto(b'x', ('{address}', 9)) for _ in range(3)]"
    inside(pid, sys.executable, "-c", program)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes networks")
@pytest.mark.parametrize("is_met", [True, False])
def test_packets_for_an_unreachable_daemon_are_dropped_and_counted_until_it_ends(
    monkeypatch: pytest.MonkeyPatch, neighbours: tuple[int, int], is_met: bool
) -> None:
    daemon, other = neighbours
    monkeypatch.setattr("tests.campaign.faults.network.DROPS", 30.0 if is_met else 1.0)
    # Of this place: its pods are found by cgroups.
    monkeypatch.setattr("tests.campaign.faults.network.processes", lambda *_: [daemon])
    fault, values = UNREACHABLE["slurmctld unreachable"], {"which": 0}
    seen = list[str]()
    # Packets that stay in the pod are none of the network.
    sender = threading.Timer(0.3, send, (other if is_met else daemon, "192.0.2.1"))
    sender.start()
    if is_met:
        said = fault.play(cast("Place", Beside()), values, lambda _: seen.append(inside(daemon, "iptables", "-S")))
        assert said.startswith(f"packets for slurmctld [{daemon}], which lives, are dropped: ")
        assert "--comment campaign -j DROP" in seen[0]
    else:
        with pytest.raises(MetNothing, match="gets no packets"):
            fault.play(cast("Place", Beside()), values, lambda _: None)
    assert "campaign" not in inside(daemon, "iptables", "-S")
    sender.join()


def test_the_volume_of_each_claim_is_bound_to_it_beforehand() -> None:
    found = {one["metadata"]["name"]: one["spec"] for one in Disks("x").objects("campaign", "slurm")}
    assert {one["claimRef"]["name"] for one in found.values()} == {"state-slurm-controller-0", "data-slurm-database-0"}
    assert len({one["hostPath"]["path"] for one in found.values()}) == len(found)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("node-2 is lost, with node-2, a-0, b-1, slurmctld", ("node-2", "a-0", "b-1", "slurmctld")),
        ("its Node stays (no answer in 15 s); node-1 is lost, with node-1", ("node-1",)),
        ("no process of slurmd is there", ()),
    ],
)
def test_what_is_lost_with_a_node_is_read_from_what_was_said(said: str, expected: tuple[str, ...]) -> None:
    assert lost_with(said) == expected


@pytest.mark.parametrize(
    ("command", "name", "argv", "is_name", "expected"),
    [
        ("slurmctld", "slurmctld", ["slurmctld", "-D"], True, True),
        # It was reconfigured.
        ("slurmctld", "exe", ["/usr/sbin/slurmctld", "-D"], True, True),
        ("slurm-operator", "slurm-operator", ["/usr/bin/python3", "/bin/slurm-operator"], True, True),
        ("slurmd", "slurmdbd", ["slurmdbd", "-D"], True, False),
        ("slurmd", "sh", ["/bin/sh", "-c", "slurmd -D"], True, False),
        ("slinky_operator.agent", "python3", ["python3", "-m", "slinky_operator.agent"], False, True),
        (JOB_LOGS, "python", ["python", "-m", "slinky_operator.joblogs", "serve", "--port", "6881"], False, True),
        (JOB_LOGS, "python", ["python", "-m", "slinky_operator.joblogs", "follow"], False, False),
        ("slurmd", "kthread", [""], True, False),
    ],
)
def test_a_process_is_known_by_its_name_or_its_command_line(
    command: str, name: str, argv: list[str], is_name: bool, expected: bool
) -> None:
    assert is_meant(command, name, argv, is_name=is_name) is expected
