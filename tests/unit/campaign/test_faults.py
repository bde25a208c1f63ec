"""What a fault does is what was drawn for it, and it ends whatever happens meanwhile."""

from __future__ import annotations

import signal
import subprocess
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
from tests.campaign.faults.processes import JOB_LOGS, PROCESSES, hit, is_meant, state
from tests.campaign.site.disks import CLAIMS, Disks
from tests.support.api_proxy import NONE, Treatment, Trouble


@dataclass
class Beside:
    """A place that notes what is done to it."""

    cluster: Cluster = field(default_factory=lambda: Cluster("nosuch"))
    done: list[Any] = field(default_factory=list)
    treated: dict[str, int] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)
    """Free room at each look; none after the last."""

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
        return self.left.pop(0) if self.left else 0

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
def test_room_that_comes_back_while_a_disk_is_filled_is_taken_too(name: str) -> None:
    place = Beside(left=[4096])
    assert FULL_DISKS[name].play(cast("Place", place), drawn(name), lambda _: None).startswith("5 MiB of ")
    fill, again, _ = place.done
    assert fill == again


@pytest.mark.parametrize("name", FULL_DISKS)
def test_a_disk_that_has_room_left_was_not_full(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.campaign.faults.claims.TAKEN", 0.0)
    place = Beside(left=[4096] * 9)
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


def test_the_volume_of_each_claim_is_bound_to_it_beforehand() -> None:
    found = {one["metadata"]["name"]: one["spec"] for one in Disks("x").objects("campaign", "slurm")}
    assert {one["claimRef"]["name"] for one in found.values()} == {"state-slurm-controller-0", "data-slurm-database-0"}
    assert len({one["hostPath"]["path"] for one in found.values()}) == len(found)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("node-2 is lost after 3 s, with node-2, a-0, b-1, slurmctld", ("node-2", "a-0", "b-1", "slurmctld")),
        ("its Node stays (no answer in 15 s); node-1 is lost after 3 s, with node-1", ("node-1",)),
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
