"""Sites side by side play each round once, and are left as one would be."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hack.localkube.cluster import Cluster
from hack.localkube.kubectl import wait_for
from tests.campaign.faults import machines
from tests.campaign.sites import names, shared, side_by_side


def test_the_first_site_has_the_name_that_was_asked_for_and_each_another() -> None:
    assert names("campaign", 1) == ["campaign"]
    assert names("x", 3) == ["x", "x-2", "x-3"]


def test_what_one_has_taken_no_other_gets() -> None:
    taken = multiprocessing.Value("i", 0)
    one, other = (shared([*range(5)], taken) for _ in range(2))
    assert [next(one), next(other), next(other), *one] == [0, 1, 2, 3, 4]
    assert [*other] == []


def _note(folder: Path, site: str, seeds: Iterator[int]) -> int:
    for seed in seeds:
        (folder / f"{seed}-{site}").touch()
        # Until the other has one, too.
        wait_for("the other", lambda: len({one.name[-1] for one in folder.iterdir()}) == 2, 120)
    return 2


def test_each_site_plays_and_every_round_once(tmp_path: Path) -> None:
    assert side_by_side(["a", "b"], [*range(6)], partial(_note, tmp_path)) == 4
    played = [one.name.split("-") for one in tmp_path.iterdir()]
    assert sorted(int(seed) for seed, _ in played) == [*range(6)]
    assert {site for _, site in played} == {"a", "b"}


def _fail(site: str, seeds: Iterator[int]) -> int:
    raise OSError(site)


def test_a_site_that_fails_is_no_success(capfd: pytest.CaptureFixture[str]) -> None:
    assert side_by_side(["a", "b"], [1], _fail) == 2


ENDED = """
import signal, sys, time
from pathlib import Path
from tests.campaign.sites import side_by_side

def play(site, seeds):
    try:
        Path(sys.argv[1], site).touch()
        time.sleep(600)
    finally:
        Path(sys.argv[1], site).unlink()
    return 0

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
side_by_side(["a", "b"], [1], play)
"""


def test_whoever_ends_it_ends_every_site_with_what_it_has_to_take_down(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ENDED, str(tmp_path)]) as process:
        wait_for("both sites", lambda: len([*tmp_path.iterdir()]) == 2, 120)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(("site", "found"), [("x", True), ("x-2", False)])
def test_a_service_is_not_that_of_a_site_whose_name_begins_alike(site: str, found: bool) -> None:
    folder = Cluster(site).paths.machine("control-plane")
    command = ["kube-apiserver", "-c", "read _", f"--file={folder}/pki"]
    with subprocess.Popen(command, executable="/bin/sh", stdin=subprocess.PIPE) as process:
        argv = Path(f"/proc/{process.pid}/cmdline")
        wait_for("its command line", lambda: argv.read_bytes().startswith(b"kube-apiserver"), 120)
        assert (process.pid in machines.of_service(Cluster("x"), "kube-apiserver")) is found
        process.kill()
