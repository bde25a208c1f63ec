"""What the agent reports of volumes: one that hangs delays no caller, and is looked at once."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from slinky_operator.pod_programs.agent.resolver import Resolver
from slinky_operator.pod_programs.agent.server import answer
from slinky_operator.pod_programs.agent.volumes import FRESH, Room, Volumes, room

ROOM: Room = {"size": 100, "free": 40, "inodes": 10, "inodesFree": 4}


class Disk:
    """Looks that end when the test says so."""

    def __init__(self) -> None:
        self.looks = 0
        self.begun, self.go_on, self.ended = threading.Semaphore(0), threading.Semaphore(0), threading.Semaphore(0)
        self.error: OSError | None = None

    def look(self, _: Path) -> Room:
        self.looks += 1
        self.begun.release()
        self.go_on.acquire()
        self.ended.release()
        if self.error is not None:
            raise self.error
        return ROOM


def settled(volumes: Volumes) -> dict[str, dict[str, object]]:
    """The answer once no look is in progress."""
    while True:
        found = volumes.told()
        if not any("waits" in one for one in found.values()):
            return found
        time.sleep(0.001)


def test_a_volume_is_looked_at_when_it_is_asked_for_and_not_more_often(tmp_path: Path) -> None:
    disk, now = Disk(), [0.0]
    volumes = Volumes({"state": tmp_path}, disk.look, lambda: now[0])
    assert disk.looks == 0
    assert volumes.told() == {"state": {"waits": 0.0}}
    disk.go_on.release()
    assert settled(volumes) == {"state": {**ROOM, "age": 0.0}}
    now[0] = FRESH / 2
    assert volumes.told() == {"state": {**ROOM, "age": FRESH / 2}}
    now[0] = FRESH
    assert volumes.told() == {"state": {**ROOM, "age": FRESH, "waits": 0.0}}
    disk.go_on.release()
    settled(volumes)
    assert disk.looks == 2


def test_a_volume_that_hangs_is_not_looked_at_again_and_delays_nobody(tmp_path: Path) -> None:
    disk, now = Disk(), [0.0]
    volumes = Volumes({"hangs": tmp_path, "goes": tmp_path}, disk.look, lambda: now[0])
    for at in (0.0, 10.0, 600.0):
        now[0] = at
        assert volumes.told() == {name: {"waits": at} for name in ("hangs", "goes")}
    for _ in range(2):
        assert disk.begun.acquire(timeout=60)
    assert disk.looks == 2
    disk.go_on.release(2)
    assert settled(volumes)["hangs"]["free"] == 40


def test_who_asks_seldom_may_wait_for_the_look(tmp_path: Path) -> None:
    disk, now = Disk(), [0.0]
    volumes = Volumes({"state": tmp_path}, disk.look, lambda: now[0])
    disk.go_on.release(2)
    assert volumes.told(60.0) == {"state": {**ROOM, "age": 0.0}}
    now[0] = 1000.0
    assert volumes.told(60.0) == {"state": {**ROOM, "age": 0.0}}
    # And for no longer than it wants to.
    now[0] = 2000.0
    assert volumes.told(0.01) == {"state": {**ROOM, "age": 1000.0, "waits": 0.0}}
    disk.go_on.release()
    settled(volumes)


def test_a_look_that_cannot_begin_is_an_error_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    volumes = Volumes({"state": tmp_path}, lambda _: ROOM, lambda: now[0])

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        assert volumes.told() == {"state": {"error": "can't start new thread", "age": 0.0}}
    now[0] = FRESH
    assert volumes.told(60.0) == {"state": {**ROOM, "age": 0.0}}


def test_an_error_is_told(tmp_path: Path) -> None:
    disk = Disk()
    disk.error = OSError("stale file handle")
    disk.go_on.release()
    volumes = Volumes({"state": tmp_path}, disk.look)
    volumes.told()
    assert settled(volumes)["state"]["error"] == "stale file handle"


def test_a_real_file_system(tmp_path: Path) -> None:
    found = room(tmp_path)
    assert 0 <= found["free"] <= found["size"]
    assert found["inodesFree"] <= found["inodes"]
    volumes = Volumes({"state": tmp_path})
    settled(volumes)
    told = answer(b"GET /volumes HTTP/1.1\r\n\r\n", tmp_path, Resolver(), None, volumes).split(b"\r\n\r\n", 1)[1]
    assert json.loads(told)["volumes"]["state"]["size"] == found["size"]
    assert answer(b"GET /volumes HTTP/1.1\r\n\r\n", tmp_path, Resolver()).startswith(b"HTTP/1.1 404")
