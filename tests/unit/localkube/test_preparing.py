"""What suites need is built while the checks before them run, and is ready when they start."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Collection, Sequence

import pytest

from hack.check import Tally, run_check
from hack.images import build as images
from hack.installing import demo
from hack.localkube.errors import BuildFailed
from hack.localkube.programs import build, debian
from hack.testing.preparing import NICENESS, PROMETHEUS, Build, Preparation, image_sets, programs

ORDER = ["unit", "integration", "e2e"]


class Noted:
    """Builds that note what was built, and wait to be let go where that is asked for."""

    def __init__(self) -> None:
        self.built: list[str] = []
        self.may_end = threading.Event()

    def one(self, name: str) -> Build:
        return lambda: self.built.append(name)

    def held(self, name: str) -> Build:
        def build() -> None:
            assert self.may_end.wait(120)
            self.built.append(name)

        return build


def test_a_suite_waits_for_what_it_and_those_before_it_need() -> None:
    noted = Noted()
    lanes = [[("unit", noted.one("program"))], [("integration", noted.one("image")), ("e2e", noted.held("operator"))]]
    with Preparation(lanes, ORDER) as preparation:
        preparation.wait_for("integration")
        assert sorted(noted.built) == ["image", "program"]
        noted.may_end.set()
        preparation.wait_for("e2e")
        assert "operator" in noted.built


def test_lanes_do_not_wait_for_each_other() -> None:
    noted = Noted()
    with Preparation([[("unit", noted.held("program"))], [("integration", noted.may_end.set)]], ORDER) as preparation:
        preparation.wait_for("unit")
    assert noted.built == ["program"]


def test_what_cannot_be_built_is_told_to_the_suite_that_needs_it() -> None:
    def fails() -> None:
        raise BuildFailed("helm", "no network")

    with Preparation([[("unit", lambda: None), ("e2e", fails)]], ORDER) as preparation:
        preparation.wait_for("integration")
        with pytest.raises(BuildFailed, match="no network"):
            preparation.wait_for("e2e")


def test_a_suite_for_which_there_is_no_room_fails_with_words(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "cache")

    with Preparation([[("unit", fails)]], ORDER) as preparation:
        assert run_check("unit", Tally(), preparation) == 1
    assert "No space left on device: 'cache'" in capsys.readouterr().err


def test_nothing_is_begun_after_the_end() -> None:
    noted = Noted()
    begun, cancelled = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        # What has begun is waited for; by then the second can no longer begin.
        assert cancelled.wait(120)
        noted.built.append("first")

    with Preparation([[("unit", first), ("e2e", noted.one("second"))]], ORDER) as preparation:
        assert begun.wait(120)
        (_, second) = preparation._builds[1]
        second.add_done_callback(lambda future: cancelled.set())
    assert noted.built == ["first"]


def test_at_the_end_no_lane_begins_anything_while_another_is_waited_for() -> None:
    noted = Noted()
    begun, cancelled = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        assert cancelled.wait(120)
        noted.may_end.set()

    lanes = [[("unit", noted.held("long"))], [("unit", first), ("e2e", noted.one("second"))]]
    with Preparation(lanes, ORDER) as preparation:
        assert begun.wait(120)
        (_, _, (_, second)) = preparation._builds
        second.add_done_callback(lambda future: cancelled.set())
    assert noted.built == ["long"]


def test_builds_give_way_to_tests() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    found: list[int] = []
    with Preparation([[("unit", lambda: found.append(os.getpriority(os.PRIO_PROCESS, 0)))]], ORDER) as preparation:
        preparation.wait_for("unit")
    assert found == [max(before, NICENESS)]
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


@pytest.mark.parametrize(
    ("suites", "counts"), [([], (0, 0)), (["unit"], (1, 0)), (["integration"], (1, 2)), (["unit", "e2e"], (2, 4))]
)
def test_only_what_the_suites_need_is_built(suites: list[str], counts: tuple[int, int]) -> None:
    assert (len(programs(suites)), len(image_sets(suites))) == counts


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What has been built, with nothing built in truth."""
    ready: set[str] = set()

    def add_programs(*programs: build.Program) -> None:
        ready.update(program.name for program in programs)

    def add_images(names: Sequence[str], progress: Callable[[str], None]) -> None:
        ready.update(names)

    def add_packages(wanted: Collection[str] = ()) -> None:
        ready.update({"packages", *(PROMETHEUS.keys() & wanted)})

    monkeypatch.setattr(build, "ensure", add_programs)
    monkeypatch.setattr(images, "ensure", add_images)
    monkeypatch.setattr(debian, "ensure", add_packages)
    return ready


def test_each_suite_finds_what_it_needs(ready: set[str]) -> None:
    needed = {
        "unit": {"helm", "kubernetes"},
        "integration": {"slurm-24.11", "slurm-26.05", "slurmd-oci-24.11", "slurmd-oci-26.05", "mariadb"},
        "e2e": {"local-path-provisioner", "busybox", "operator", "identity", "packages", *PROMETHEUS},
    }
    with Preparation([programs(ORDER), image_sets(ORDER)], ORDER) as preparation:
        for suite in ORDER:
            preparation.wait_for(suite)
            assert needed[suite] <= ready
    assert ready == set.union(*needed.values())


@pytest.mark.parametrize("operated", [True, False])
def test_each_stage_of_the_demo_finds_what_it_needs(ready: set[str], operated: bool) -> None:
    needed = {
        "Kubernetes": {"helm", "kubernetes", "local-path-provisioner", "busybox", "packages"},
        "Slurm": {"slurm-26.05"},
        "operator": {"operator", *demo.SAMPLES_NEED} if operated else set(),
    }
    with Preparation(demo.lanes(operated=operated), demo.STAGES) as preparation:
        for stage in demo.STAGES:
            preparation.wait_for(stage)
            assert needed[stage] <= ready
    assert ready == set.union(*needed.values())
