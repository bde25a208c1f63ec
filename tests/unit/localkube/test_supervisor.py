"""A machine accepts requests as soon as it seems to."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from hack.localkube.supervisor import listen


def test_a_control_socket_has_no_name_before_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "control.sock"
    named_before: list[bool] = []
    really = socket.socket.listen

    def watched(self: socket.socket) -> None:
        named_before.append(path.exists())
        really(self)

    monkeypatch.setattr(socket.socket, "listen", watched)
    with listen(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    assert named_before == [False]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_one_that_a_killed_machine_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    for _ in range(2):
        with listen(path), socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["control.sock"]
