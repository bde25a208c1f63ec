"""Followers as real processes of ordinary users, with real servers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slinky_operator.pod_programs.joblogs.follower.job_file import JobState, Place
from tests.support import job_logs
from tests.support.job_logs import ALICE, Followed, Follower, Node, wait_for

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with job_logs.node() as made:
        yield made


class Desk:
    """Followed jobs of one test."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node, self._folder = node, folder
        self._started: list[Follower] = []

    def follow(self, followed: Followed, stream: str = "stdout", patience: float = 60) -> Follower:
        self._started.append(followed.start(stream, patience=patience))
        return self._started[-1]

    def job(self, state: JobState = JobState.RUNNING, **streams: Place) -> Followed:
        return Followed(self._folder, streams, state)

    def stop(self) -> None:
        for one in self._started:
            one.stop()


@pytest.fixture
def desk(node: Node) -> Iterator[Desk]:
    folder = node.root / f"pod-{time.monotonic_ns()}"
    folder.mkdir()
    folder.chmod(0o755)
    made = Desk(node, folder)
    yield made
    made.stop()


@pytest.mark.parametrize(("code", "number", "status"), [(0, 0, 0), (3, 0, 3), (0, 9, 137)])
def test_output_is_live_and_the_follower_ends_as_the_job_did(desk: Desk, code: int, number: int, status: int) -> None:
    path = desk.node.write(f"live-{status}.out", b"one\n")
    job = desk.job(stdout=desk.node.place(path.name))
    follower = desk.follow(job)
    follower.prints(b"one\n")
    with path.open("ab") as opened:
        opened.write(b"two\n")
        opened.flush()
        follower.prints(b"one\ntwo\n")
        assert follower.process.poll() is None
        opened.write(b"last\n")
    job.end(code, number)
    follower.ends_with(status)
    assert follower.printed == b"one\ntwo\nlast\n"
    assert follower.notes == ""


def test_streams_are_apart(desk: Desk) -> None:
    desk.node.write("both.out", b"out")
    desk.node.write("both.err", b"err")
    job = desk.job(stdout=desk.node.place("both.out"), stderr=desk.node.place("both.err"))
    followers = [desk.follow(job, stream) for stream in ("stdout", "stderr")]
    job.end()
    for follower in followers:
        follower.ends_with(0)
    assert [follower.printed for follower in followers] == [b"out", b"err"]


def test_a_hundred_mebibytes_come_through_unchanged(desk: Desk) -> None:
    content = os.urandom(MIB) * 100
    desk.node.write("big.out", content)
    job = desk.job(state=JobState.ENDED, stdout=desk.node.place("big.out"))
    follower = desk.follow(job)
    follower.ends_with(0)
    assert follower.printed == content


def test_a_job_that_waits_prints_nothing(desk: Desk) -> None:
    job = desk.job(JobState.PENDING)
    follower = desk.follow(job)
    job.now(state=JobState.RUNNING, streams={"stdout": desk.node.place("begun.out")})
    # Its file comes later.
    desk.node.write("begun.out", b"begun")
    follower.prints(b"begun")
    job.end()
    follower.ends_with(0)
    assert follower.notes == ""


def test_a_job_without_output_ends_too(desk: Desk) -> None:
    job = desk.job(JobState.PENDING)
    follower = desk.follow(job)
    job.end(1)
    follower.ends_with(1)
    job = desk.job(stdout=desk.node.place("never.out"))
    follower = desk.follow(job, patience=0.5)
    job.end(2)
    follower.ends_with(2)
    assert "cannot be read: no output" in follower.notes


def test_another_node_is_followed(desk: Desk) -> None:
    desk.node.write("first.out", b"first")
    job = desk.job(stdout=desk.node.place("first.out"))
    follower = desk.follow(job)
    follower.prints(b"first")
    with job_logs.node() as other:
        other.write("first.out", b"second")
        job.now(state=JobState.PENDING, attempt=1, streams={})
        job.now(state=JobState.RUNNING, attempt=1, node="compute-1", streams={"stdout": other.place("first.out")})
        follower.prints(b"firstsecond")
        job.end()
        follower.ends_with(0)
    assert follower.notes.count("\n") == 1
    assert "started the job again (restart 1)" in follower.notes


def test_the_rest_of_the_first_run_is_not_lost(desk: Desk) -> None:
    path = desk.node.write("rest.out", b"begun")
    job = desk.job(stdout=desk.node.place("rest.out"))
    follower = desk.follow(job)
    # It knows of the first run only once it has looked.
    follower.prints(b"begun")
    rest = b"x" * (40 * MIB)
    with job_logs.node() as other:
        other.write("rest.out", b"again")
        with path.open("ab") as file:
            _ = file.write(rest)
        job.now(attempt=1, node="compute-1", streams={"stdout": other.place("rest.out")})
        follower.prints(b"begun" + rest + b"again")
        job.end()
        follower.ends_with(0)


def test_a_truncated_file_is_shown_again(desk: Desk) -> None:
    path = desk.node.write("again.out", b"long text")
    job = desk.job(stdout=desk.node.place("again.out"))
    follower = desk.follow(job)
    follower.prints(b"long text")
    path.write_bytes(b"short")
    follower.prints(b"long textshort")
    # So is one that was put in its place.
    path.unlink()
    desk.node.write("again.out", b"another file")
    follower.prints(b"long textshortanother file")
    job.end()
    follower.ends_with(0)
    assert follower.notes.count("truncated or replaced") == 2


def test_a_server_that_goes_and_comes_loses_nothing(desk: Desk) -> None:
    with job_logs.node() as first:
        first.write("a.out", b"one")
        job = desk.job(stdout=first.place("a.out"))
        follower = desk.follow(job)
        follower.prints(b"one")
    wait_for(lambda: "http://127.0.0.1" in follower.notes)
    assert follower.process.poll() is None
    with job_logs.node() as second:
        second.write("a.out", b"two")
        job.now(streams={"stdout": second.place("a.out")})
        follower.prints(b"onetwo")
        job.end()
        follower.ends_with(0)


def test_an_expired_token_is_followed_by_another(desk: Desk) -> None:
    desk.node.write("token.out", b"x")
    job = desk.job(stdout=Place(desk.node.url, desk.node.token("token.out", lasts=-1)))
    follower = desk.follow(job)
    wait_for(lambda: "403 the token has expired" in follower.notes)
    assert follower.printed == b""
    job.now(streams={"stdout": desk.node.place("token.out")})
    follower.prints(b"x")
    job.end()
    follower.ends_with(0)
    assert follower.notes.count("\n") == 1


def test_a_mounted_file_needs_no_server(desk: Desk) -> None:
    path = desk.node.write("mounted.out", b"one\n", mode=0o644)
    path.parent.chmod(0o1733)
    job = desk.job(stdout=Place(file=str(path)))
    follower = desk.follow(job)
    follower.prints(b"one\n")
    with path.open("ab") as opened:
        opened.write(b"two\n")
    follower.prints(b"one\ntwo\n")
    os.truncate(path, 0)
    wait_for(lambda: "truncated" in follower.notes)
    path.write_bytes(b"three")
    job.end(4)
    follower.ends_with(4)
    assert follower.printed.endswith(b"three")


def test_a_mounted_link_is_not_followed(desk: Desk) -> None:
    desk.node.write("target.out", b"secret", mode=0o644)
    (desk.node.output / "link.out").symlink_to(desk.node.output / "target.out")
    job = desk.job(stdout=Place(file=str(desk.node.output / "link.out")))
    follower = desk.follow(job, patience=0.2)
    wait_for(lambda: "link.out" in follower.notes)
    job.end()
    follower.ends_with(0)
    assert follower.printed == b""


def test_it_stops_when_it_is_told(desk: Desk) -> None:
    desk.node.write("stop.out", b"x")
    follower = desk.follow(desk.job(stdout=desk.node.place("stop.out")))
    follower.prints(b"x")
    follower.process.send_signal(signal.SIGTERM)
    follower.ends_with(143)


def test_it_needs_no_more_than_its_own_user(desk: Desk) -> None:
    desk.node.write("user.out", b"x", uid=ALICE)
    follower = desk.follow(desk.job(stdout=desk.node.place("user.out")))
    follower.prints(b"x")
    status = Path(f"/proc/{follower.process.pid}/status").read_text()
    assert f"Uid:\t{job_logs.FOLLOWER}\t" in status
    assert "CapEff:\t0000000000000000" in status
