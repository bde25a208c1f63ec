"""What a fault does is what was drawn for it, and it ends whatever happens meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

import pytest

from hack.localkube.cluster import Cluster
from tests.campaign.faults.answers import ANSWERS, SHARES
from tests.campaign.faults.claims import FULL_DISKS
from tests.campaign.faults.kind import Place
from tests.campaign.faults.machines import lost_with
from tests.campaign.faults.processes import is_meant
from tests.campaign.site.disks import CLAIMS, Disks
from tests.support.api_proxy import NONE, Trouble


@dataclass
class Beside:
    """A place that notes what is done to it."""

    cluster: Cluster = field(default_factory=lambda: Cluster("nosuch"))
    done: list[Any] = field(default_factory=list)

    @property
    def proxy(self) -> Beside:
        return self

    @property
    def disks(self) -> Beside:
        return self

    def begin(self, trouble: Trouble) -> None:
        self.done.append(trouble)

    def fill(self, disk: str) -> str:
        self.done.append(f"fill {disk}")
        return "5 MiB"

    def free(self, disk: str) -> None:
        self.done.append(f"free {disk}")


def play(name: str, seed: int = 1) -> list[Any]:
    place = Beside()
    fault = {**ANSWERS, **FULL_DISKS}[name]
    with (
        pytest.raises(KeyboardInterrupt),
        fault.during(cast("Place", place), fault.draw(Random(seed))),  # noqa: S311 the same each time
    ):
        raise KeyboardInterrupt
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
        ("slurmd", "kthread", [""], True, False),
    ],
)
def test_a_process_is_known_by_its_name_or_its_command_line(
    command: str, name: str, argv: list[str], is_name: bool, expected: bool
) -> None:
    assert is_meant(command, name, argv, is_name=is_name) is expected
