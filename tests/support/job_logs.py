"""The two roles of job output as real processes: the server as root, followers as other users. Needs root."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hack.localkube.paths import PROJECT
from slinky_operator.pod_programs.joblogs import protocol, tokens
from slinky_operator.pod_programs.joblogs.copies import orders, permits
from slinky_operator.pod_programs.joblogs.copies.events import Limits
from slinky_operator.pod_programs.joblogs.copies.permits import Permit
from slinky_operator.pod_programs.joblogs.follower import job_file
from slinky_operator.pod_programs.joblogs.follower.job_file import Job, JobState, Place
from slinky_operator.pod_programs.joblogs.tokens import Grant

KEY = bytes(range(64))
PATIENCE = 120.0
ALICE, BOB, LAB, FOLLOWER = 20001, 20002, 20100, 20999

AS_IN_A_POD = ("setpriv", "--bounding-set=-all,+setuid,+setgid", "--inh-caps=-all", "--no-new-privs", "--")
"""Root with the two capabilities that the server's container has."""

# An interpreter below root's home cannot be read by others: everything is imported before the user is changed.
_AS_USER = """\
import encodings.idna, encodings.latin_1, os, sys
import slinky_operator.pod_programs.joblogs.command as command
uid = int(sys.argv[1])
command._parser().parse_args(sys.argv[2:])
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
sys.exit(command.main(sys.argv[2:]))
"""


def wait_for(condition: Callable[[], bool], what: Callable[[], str] = lambda: "") -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, what()
        time.sleep(0.02)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'api'}", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Node:
    """A node's folder, and the server that serves it."""

    root: Path
    url: str
    port: int
    process: subprocess.Popen[bytes]

    @property
    def output(self) -> Path:
        return self.root / "job-output"

    def log(self) -> str:
        return (self.root / "server.log").read_text()

    def write(self, name: str, content: bytes, uid: int = ALICE, mode: int = 0o600) -> Path:
        """Write a file as a job of a user does."""
        path = self.output / name
        path.write_bytes(content)
        os.chown(path, uid, uid)
        path.chmod(mode)
        return path

    def token(self, name: str, uid: int = ALICE, *, gids: tuple[int, ...] = (), lasts: float = 600) -> str:
        path = name if name.startswith("/") else f"{self.output}/{name}"
        return tokens.sign(Grant("7", uid, gids or (uid,), path, int(time.time() + lasts)), KEY)

    def get(self, token: str, offset: int = 0, wait: float = 0) -> tuple[int, bytes]:
        """Ask once: status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        path = f"{protocol.PATH}?offset={offset}&wait={wait}"
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def place(self, name: str, uid: int = ALICE) -> Place:
        return Place(self.url, self.token(name, uid))

    def copied(self, name: str, uid: int = ALICE, *, writes: bool = False, size: int = 10**9) -> orders.Place:
        """A file or folder of the node, for a pod that copies."""
        path = name if name.startswith("/") else f"{self.output}/{name}"
        expires = int(time.time() + 600)
        permit = Permit("7", uid, (uid,), path, expires, writes=writes, mark="m", max_bytes=size, max_entries=1000)
        token = permits.sign(permit, KEY)
        return orders.Place(url=self.url, token=token, proof_key=permits.proof_key(token, KEY))


@contextmanager
def node(*more: str, first: str = "") -> Iterator[Node]:
    """Run a server for a folder of its own, which all users can reach, after some statements if need be."""
    root = Path(tempfile.mkdtemp(prefix="job-logs-"))
    root.chmod(0o755)
    (root / "job-output").mkdir()
    key = root / "key"
    key.write_bytes(KEY)
    key.chmod(0o400)
    arguments = ["serve", "--key", str(key), "--host", "127.0.0.1", "--port", "0", "--own-folder", f"{root}/job-output"]
    program = ["-m", "slinky_operator.joblogs"]
    if first:
        program = [
            "-c",
            f"{first}\nimport sys\nfrom slinky_operator.pod_programs.joblogs.command import main\nmain(sys.argv[1:])",
        ]
    with (root / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*AS_IN_A_POD, sys.executable, *program, *arguments, *more],
            stderr=log,
            env=environment(),
        )
    try:
        wait_for(lambda: "listens on port" in (root / "server.log").read_text() or process.poll() is not None)
        found = re.search(r"listens on port (\d+)", (root / "server.log").read_text())
        assert found is not None, (root / "server.log").read_text()
        yield Node(root, f"http://127.0.0.1:{found[1]}", int(found[1]), process)
    finally:
        process.terminate()
        process.wait(PATIENCE)
        shutil.rmtree(root)


def copy(folder: Path, source: orders.Place, target: orders.Place, uid: int = ALICE) -> tuple[int, orders.Report]:
    """Let a process of a user make a copy, without trying again for long; its exit code and report."""
    wanted = orders.Copy("results[0]", source, target, "m", Limits(10**9, 1000))
    (folder / "orders").write_text(orders.text([wanted]))
    said = folder / "said"
    said.write_text("")
    said.chmod(0o666)
    arguments = ["copy", "--orders", str(folder / "orders"), "--report", str(said), "--attempts", "2"]
    done = subprocess.run(
        [sys.executable, "-c", _AS_USER, str(uid), *arguments], env=environment(), timeout=PATIENCE, check=False
    )
    found = orders.reports(said.read_text(), 1)
    assert found is not None, done
    return done.returncode, found[0]


class Followed:
    """A job's file, and followers of it."""

    def __init__(self, folder: Path, streams: Mapping[str, Place], state: JobState = JobState.RUNNING) -> None:
        self.folder = folder
        self.job = Job("7", state, streams=streams)
        self._put()

    def now(self, **changes: object) -> None:
        """Change the file of the followers in one step, as the kubelet does."""
        self.job = replace(self.job, **changes)  # type: ignore[arg-type]
        self._put()

    def end(self, exit_code: int = 0, signal: int = 0) -> None:
        self.now(state=JobState.ENDED, exit_code=exit_code, signal=signal)

    def _put(self) -> None:
        new = self.folder / ".new"
        new.write_text(job_file.text(self.job))
        new.chmod(0o644)
        new.rename(self.folder / job_file.NAME)

    def start(self, stream: str = "stdout", uid: int = FOLLOWER, patience: float = 60) -> Follower:
        return Follower(self.folder, stream, uid, patience)


class Follower:
    """A follower as a process of an ordinary user."""

    def __init__(self, folder: Path, stream: str, uid: int, patience: float) -> None:
        self._out, self._notes = folder / f"{stream}.printed", folder / f"{stream}.notes"
        arguments = ["follow", "--job", str(folder / job_file.NAME), "--stream", stream, "--patience", str(patience)]
        with self._out.open("wb") as out, self._notes.open("wb") as notes:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _AS_USER, str(uid), *arguments], stdout=out, stderr=notes, env=environment()
            )

    @property
    def printed(self) -> bytes:
        return self._out.read_bytes()

    @property
    def notes(self) -> str:
        return self._notes.read_text()

    def prints(self, content: bytes) -> None:
        wait_for(
            lambda: self.printed == content,
            lambda: f"not {content[:80]!r} but {self.printed[:80]!r}, exit {self.process.poll()}: {self.notes}",
        )

    def ends_with(self, code: int) -> None:
        assert self.process.wait(PATIENCE) == code, self.notes

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
