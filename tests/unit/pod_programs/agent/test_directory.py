"""Which domains SSSD cannot reach: as its container notes it, and as the agent reads that."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hack.localkube.paths import PROJECT
from slinky_operator.pod_programs.agent.resolver import Resolver
from slinky_operator.pod_programs.agent.server import answer, offline

PATIENCE = 240


class Container:
    """The listener of SSSD's container, with folders of its own."""

    def __init__(self, folder: Path) -> None:
        self.file, self.journal = folder / "offline", folder / "run" / "systemd" / "journal" / "socket"
        (folder / "run").mkdir()
        script = (PROJECT / "containers" / "sssd" / "directory.pl").read_text()
        for place, own in (("/var/lib/sss/pipes", folder), ("/run/systemd", folder / "run" / "systemd")):
            assert place in script
            script = script.replace(place, str(own))
        (folder / "directory.pl").write_text(script)
        started = subprocess.run(["perl", folder / "directory.pl"], stdout=subprocess.PIPE, text=True, check=True)
        self.listener = int(started.stdout)

    def tell(self, message: str, domain: str = "site") -> None:
        """Write what SSSD writes to the journal."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.connect(str(self.journal))
            told.send(f"CODE_LINE=106\nMESSAGE={message}\nSSSD_DOMAIN={domain}\nPRIORITY=6\n".encode())

    def shows(self, *domains: str) -> None:
        wait_for(lambda: tuple(offline(self.file)) == domains)


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    made = Container(tmp_path)
    yield made
    os.kill(made.listener, signal.SIGTERM)


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_domain_is_offline_from_what_sssd_says_until_it_says_otherwise(container: Container) -> None:
    # It listens from the start, so that nothing that SSSD says is lost.
    assert offline(container.file) == {}
    container.tell("Backend is offline")
    container.shows("site")
    since = offline(container.file)["site"]
    assert abs(since - time.time()) < 3600
    container.tell("Backend is offline", "other.example")
    container.shows("other.example", "site")
    container.tell("Backend is offline")
    container.tell("Backend is online", "other.example")
    container.shows("site")
    assert offline(container.file) == {"site": since}
    container.tell("Backend is online")
    container.shows()


def test_what_is_no_such_message_changes_nothing(container: Container) -> None:
    container.tell("Starting up")
    container.tell("Backend is offline, they say")
    container.tell("Backend is offline", "a b")
    container.tell("Backend is offline", "last")
    container.shows("last")


def test_others_may_read_the_file(container: Container) -> None:
    assert container.file.stat().st_mode & 0o777 == 0o644


def asked(file: Path | None) -> tuple[str, object]:
    head, _, body = answer(b"GET /directory HTTP/1.1\r\n\r\n", Path("/nowhere"), Resolver(), file).partition(
        b"\r\n\r\n"
    )
    return head.split()[1].decode(), json.loads(body)


def test_the_agent_tells_what_the_file_has(tmp_path: Path) -> None:
    file = tmp_path / "offline"
    file.write_text("1767225600 site\n")
    assert asked(file) == ("200", {"offline": {"site": 1_767_225_600}})


def test_without_the_file_it_is_not_known(tmp_path: Path) -> None:
    assert asked(tmp_path / "offline")[0] == "503"
    # Without SSSD there is no such question.
    assert asked(None)[0] == "404"


def test_lines_that_mean_nothing_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "offline"
    file.write_bytes(b"x\nno time\n12\n\xff 1\n" + b"7 ok\n")
    assert offline(file) == {"ok": 7}
