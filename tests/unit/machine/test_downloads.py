"""Failed downloads are retried; other failures are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.images.errors import NetworkFailed, StepFailed
from hack.images.tools.run import Runner
from hack.machine.downloads import PAUSES, complaint, persist


class Program:
    """Gives one result after the other."""

    def __init__(self, *results: tuple[int, str]) -> None:
        self.results = list(results)

    def __call__(self) -> tuple[int, str]:
        return self.results.pop(0)


@pytest.mark.parametrize(
    "output",
    [
        "E: Failed to fetch http://mirror/slurmd_26.05.5-1_amd64.deb  404  Not Found [IP: 192.0.2.1 80]",
        "Err:3 http://mirror sid InRelease\n  503  Service Unavailable",
        "E: Unable to locate package slurmd",
        "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 4 (apt-get)",
        'go: k8s.io/api@v0.34.4: Get "https://proxy/k8s.io/api": dial tcp: lookup proxy: i/o timeout',
        "go: github.com/x/y@v1.0.0: reading https://proxy/y.zip: 502 Bad Gateway",
        "ERROR: Could not find a version that satisfies x\nERROR: No matching distribution found for x",
    ],
)
def test_a_download_that_failed_is_tried_again(output: str) -> None:
    slept: list[float] = []
    said: list[str] = []
    program = Program((100, f"Reading package lists...\n{output}\n"), (0, "done"))
    assert persist("packages", program, said.append, sleep=slept.append) == (0, "done")
    assert slept == [PAUSES[0]]
    assert "packages" in said[0]
    assert str(complaint(output)) in said[0]


def test_what_failed_for_another_reason_is_not_tried_again() -> None:
    program = Program((2, "main.go:3: undefined: x"))
    assert persist("build", program, _unheard, sleep=_not_slept) == (2, "main.go:3: undefined: x")


def test_warnings_of_a_download_that_went_well_in_the_end_mean_nothing() -> None:
    program = Program((0, "W: Failed to fetch http://mirror/x, trying another"))
    assert persist("packages", program, _unheard, sleep=_not_slept)[0] == 0


def test_it_is_given_up_after_the_last_pause() -> None:
    slept: list[float] = []
    program = Program(*[(100, f"E: Failed to fetch {n}") for n in range(len(PAUSES) + 1)])
    assert persist("packages", program, lambda _: None, sleep=slept.append) == (
        100,
        f"E: Failed to fetch {len(PAUSES)}",
    )
    assert slept == list(PAUSES)


def test_a_step_of_an_image_that_could_not_download_is_run_again(tmp_path: Path) -> None:
    said: list[str] = []
    runner = Runner(tmp_path / "log", said.append, pauses=[0.0])
    second = f"test -e {tmp_path}/mark && exit; touch {tmp_path}/mark; echo E: Failed to fetch x; exit 100"
    runner.run("build image", ["sh", "-c", second])
    assert len(said) == 1
    with pytest.raises(NetworkFailed, match="a download failed, is the network there"):
        runner.run("build image", ["sh", "-c", "echo E: Failed to fetch x; exit 100"])
    with pytest.raises(StepFailed, match="no such user"):
        runner.run("build image", ["sh", "-c", "echo no such user; exit 1"])
    assert len(said) == 2


def _unheard(line: str) -> None:
    raise AssertionError(line)


def _not_slept(seconds: float) -> None:
    raise AssertionError(seconds)
