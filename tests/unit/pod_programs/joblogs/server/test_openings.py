"""A caller, or a user, whose files never open keeps out nobody else."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

import pytest

from slinky_operator.pod_programs.joblogs import tokens
from slinky_operator.pod_programs.joblogs.server import opening
from slinky_operator.pod_programs.joblogs.server.opening import NotOpened, Opener
from slinky_operator.pod_programs.joblogs.server.openings import AT_A_TIME, PER_CALLER, PER_USER, TooMany, Turns, Users
from tests.unit.pod_programs.joblogs.server.test_opening import Side, token

LATER = time.monotonic() + 3600


def test_a_caller_with_its_share_waits_and_another_one_does_not() -> None:
    turns = Turns()
    with ExitStack() as hanging:
        for _ in range(PER_CALLER):
            hanging.enter_context(turns.turn("a", LATER))
        with pytest.raises(TooMany), turns.turn("a", 0.0):
            pass
        with turns.turn("b", 0.0):
            pass
    with turns.turn("a", 0.0):
        pass


def test_a_free_turn_goes_to_the_caller_that_has_fewest() -> None:
    turns = Turns(most=4, per_caller=3)
    came: list[str] = []

    def wait(caller: str) -> None:
        with turns.turn(caller, LATER):
            came.append(caller)

    with ExitStack() as others:
        others.enter_context(turns.turn("a", LATER))
        others.enter_context(turns.turn("a", LATER))
        others.enter_context(turns.turn("c", LATER))
        with turns.turn("c", LATER):
            threads = [threading.Thread(target=wait, args=(caller,)) for caller in ("a", "b")]
            for number, thread in enumerate(threads, 1):
                thread.start()
                while len(turns._waiting) < number:
                    time.sleep(0.001)
        for thread in threads:
            thread.join()
    assert came == ["b", "a"]
    assert not turns._open


def test_turns_of_all_have_a_bound() -> None:
    turns = Turns()
    with ExitStack() as held:
        for number in range(AT_A_TIME):
            held.enter_context(turns.turn(f"a-{number % 4}", LATER))
        with pytest.raises(TooMany), turns.turn("b", 0.0):
            pass


class Sleepers:
    """Processes that do not end by themselves."""

    def __init__(self) -> None:
        self.ends: list[int] = []

    def start(self) -> int:
        ours, theirs = os.pipe()
        process = os.fork()
        if not process:
            os.close(theirs)
            os.read(ours, 1)
            os._exit(0)
        os.close(ours)
        self.ends.append(theirs)
        return process

    def end(self) -> None:
        for one in self.ends:
            os.close(one)
        self.ends = []


@pytest.fixture
def sleepers() -> Iterator[Sleepers]:
    made = Sleepers()
    yield made
    made.end()


def test_processes_of_a_user_count_until_they_have_ended(sleepers: Sleepers) -> None:
    users = Users()
    processes = [sleepers.start() for _ in range(PER_USER)]
    for one in processes:
        assert users.may_open(1000)
        users.begun(one, 1000)
    assert not users.may_open(1000)
    assert users.may_open(1001)
    sleepers.end()
    for one in processes:
        os.waitpid(one, 0)
    assert users.may_open(1000)
    assert not users._running


def test_a_user_whose_files_hang_gets_no_further_process_and_is_asked_to_come_again(
    tmp_path: Path, sleepers: Sleepers, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = Side(tmp_path)
    uid = tokens.verify(token().decode(), side.key.read_bytes(), now=time.time()).uid
    processes = [sleepers.start() for _ in range(PER_USER)]
    for one in processes:
        side.opening.users.begun(one, uid)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process for a user with too many"))
    side.opening.open(side.reply, token())
    assert side.said().startswith(b"429 the file system has yet to answer for other files of uid 20001")
    side.opening.users.close()
    side.close()
    sleepers.end()
    for one in processes:
        os.waitpid(one, 0)


def answering(far: socket.socket, answers: list[bytes], descriptor: int) -> None:
    """The other process, which gives these answers and then a file."""
    while True:
        asked, given, _, _ = socket.recv_fds(far, 65_536, 2)
        if not asked:
            return
        with socket.socket(fileno=given[0]) as reply:
            if answers:
                reply.send(answers.pop(0))
            else:
                socket.send_fds(reply, [b"200"], [descriptor])


def test_a_file_is_asked_for_again_while_its_user_has_too_many() -> None:
    channel, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    answers = [b"429 the file system has yet to answer"] * 2
    with Path(os.devnull).open("rb") as file, channel:
        thread = threading.Thread(target=answering, args=(far, answers, file.fileno()))
        thread.start()
        opener = Opener(channel)
        found = opener.open("token", "a")
        assert os.fstat(found) == os.fstat(file.fileno())
        os.close(found)
        answers.append(b"403 no")
        with pytest.raises(NotOpened) as refused:
            opener.open("token", "a")
        assert refused.value.status is HTTPStatus.FORBIDDEN
        channel.shutdown(socket.SHUT_RDWR)
        thread.join()
    far.close()


def test_a_caller_is_told_when_no_turn_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "OPEN_SECONDS", 0)
    channel, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with channel, far, ExitStack() as hanging:
        opener = Opener(channel)
        for _ in range(PER_CALLER):
            hanging.enter_context(opener._turns.turn("a", LATER))
        with pytest.raises(NotOpened, match="for this address") as refused:
            opener.open("token", "a")
        assert refused.value.status is HTTPStatus.SERVICE_UNAVAILABLE
        assert select.select([far], [], [], 0)[0] == []
