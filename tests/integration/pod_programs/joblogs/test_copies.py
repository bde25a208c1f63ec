"""Copies with real processes: the server as root, what a pod runs as the user of the job. Needs root."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from slinky_operator.pod_programs.joblogs import protocol
from slinky_operator.pod_programs.joblogs.copies import orders, shares
from tests.support import job_logs
from tests.support.job_logs import ALICE, BOB, Node, copy, wait_for

CONTENT = bytes(range(256)) * 8192


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with job_logs.node() as made:
        yield made


@pytest.fixture
def volume() -> Iterator[Path]:
    """A folder that belongs to alice, as a volume does in her pod."""
    path = Path(tempfile.mkdtemp(prefix="volume-"))
    path.chmod(0o755)
    (path / "in").mkdir()
    os.chown(path / "in", ALICE, ALICE)
    yield path
    shutil.rmtree(path)


def there(volume: Path, path: str) -> orders.Place:
    return orders.Place(folder=str(volume / "in"), path=path)


def folder_of(node: Node, name: str, uid: int = ALICE, mode: int = 0o700) -> Path:
    path = node.output / name
    path.mkdir()
    os.chown(path, uid, uid)
    path.chmod(mode)
    return path


def owned(path: Path, content: bytes, uid: int = ALICE) -> Path:
    path.write_bytes(content)
    os.chown(path, uid, uid)
    path.chmod(0o600)
    return path


def test_results_of_a_user_arrive_in_his_volume(node: Node, volume: Path) -> None:
    results = folder_of(node, "results")
    owned(results / "small", b"one")
    owned(results / "large", CONTENT).chmod(0o700)
    (results / "link").symlink_to("/etc/passwd")
    code, report = copy(volume, node.copied("results"), there(volume, "hello/results"))
    assert (code, report.files, report.size, report.left_out) == (0, 2, len(CONTENT) + 3, 1)
    arrived = volume / "in" / "hello" / "results"
    assert (arrived / "large").read_bytes() == CONTENT
    assert {one.name for one in arrived.iterdir()} == {"small", "large"}
    assert (arrived / "small").stat().st_uid == ALICE
    # Those who may mount the volume may read them, although only alice may read the job's own.
    assert [stat.S_IMODE(one.stat().st_mode) for one in (arrived, arrived / "small", arrived / "large")] == [
        0o755,
        0o644,
        0o755,
    ]
    assert [one.name for one in (volume / "in" / "hello").iterdir()] == ["results"]
    # Made once more, it is the same.
    assert copy(volume, node.copied("results"), there(volume, "hello/results"))[0] == 0


def test_files_arrive_on_the_node_as_those_of_the_user(node: Node, volume: Path) -> None:
    (volume / "in" / "data").mkdir()
    (volume / "in" / "data" / "large").write_bytes(CONTENT)
    code, report = copy(volume, there(volume, "data"), node.copied("given/data", writes=True))
    assert (code, report.files) == (0, 1)
    arrived = node.output / "given" / "data" / "large"
    assert arrived.read_bytes() == CONTENT
    assert (arrived.stat().st_uid, stat.S_IMODE(arrived.stat().st_mode)) == (ALICE, 0o600)
    assert stat.S_IMODE((node.output / "given").stat().st_mode) == 0o700
    assert [one.name for one in (node.output / "given").iterdir()] == ["data"]


@pytest.mark.parametrize("writes", [False, True])
def test_what_belongs_to_others_is_neither_read_nor_written(node: Node, volume: Path, *, writes: bool) -> None:
    others = folder_of(node, f"others-{writes}", BOB, 0o777)
    owned(others / "secret", b"secret", BOB)
    own = owned(volume / "in" / "own", b"own")
    for path in (f"others-{writes}", f"others-{writes}/secret"):
        if writes:
            code, report = copy(volume, there(volume, "own"), node.copied(f"{path}/new", writes=True))
        else:
            code, report = copy(volume, node.copied(path), there(volume, "stolen"))
        assert (code, report.is_final) == (1, True)
        assert "belongs to another user" in report.why or "Permission denied" in report.why or "no folder" in report.why
    assert [one.name for one in others.iterdir()] == ["secret"]
    assert [one.name for one in (volume / "in").iterdir()] == [own.name]


@pytest.mark.parametrize("path", ["/etc/passwd", "../key", "link/passwd", "a/../../key"])
@pytest.mark.parametrize("writes", [False, True])
def test_nothing_leads_out_of_the_folder(node: Node, volume: Path, path: str, *, writes: bool) -> None:
    link = node.output / "link"
    if not link.is_symlink():
        link.symlink_to("/etc")
    owned(volume / "in" / "own", b"own")
    if writes:
        code, report = copy(volume, there(volume, "own"), node.copied(path, writes=True))
    else:
        code, report = copy(volume, node.copied(path), there(volume, "stolen"))
    assert (code, report.is_final) == (1, True), report.why
    assert [one.name for one in (volume / "in").iterdir()] == ["own"]


def test_a_token_to_read_does_not_write(node: Node, volume: Path) -> None:
    owned(volume / "in" / "own", b"own")
    results = owned(node.output / "kept", b"kept")
    code, report = copy(volume, there(volume, "own"), node.copied("kept"))
    assert code == 1
    assert report.why
    assert results.read_bytes() == b"kept"


def test_a_token_for_output_copies_nothing(node: Node, volume: Path) -> None:
    owned(node.output / "a.out", b"a")
    place = orders.Place(url=node.url, token=node.token("a.out"))
    code, report = copy(volume, place, there(volume, "a"))
    assert (code, report.why, report.is_final) == (1, "the token is not valid here", True)


@pytest.mark.parametrize("relays", [False, True])
@pytest.mark.parametrize("writes", [False, True])
def test_who_is_not_the_server_gets_nothing_and_is_not_believed(
    node: Node, volume: Path, *, relays: bool, writes: bool
) -> None:
    owned(node.output / f"real-{relays}", b"real")
    owned(volume / "in" / "own", b"secret of alice")
    place = node.copied(f"new-{relays}" if writes else f"real-{relays}", writes=writes)
    got: list[bytes] = []

    def pretend(connection: socket.socket) -> None:
        """Be a job that listens where the server should; it may ask the server of another node."""
        with connection:
            asked_for = connection.recv(65536)
            if not relays:
                connection.sendall(protocol.turned("0" * 64))
            else:
                with socket.create_connection(("127.0.0.1", node.port), job_logs.PATIENCE) as real:
                    real.sendall(asked_for)
                    connection.sendall(real.recv(65536))
            try:
                got.append(connection.recv(65536))
            except ConnectionResetError:
                got.append(b"")

    with socket.create_server(("127.0.0.2", 0)) as listener:

        def serve() -> None:
            for _ in range(2):
                pretend(listener.accept()[0])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        false = replace(place, url=f"http://127.0.0.2:{listener.getsockname()[1]}")
        ends = (there(volume, "own"), false) if writes else (false, there(volume, "stolen"))
        code, report = copy(volume, *ends)
        thread.join(job_logs.PATIENCE)
    assert (code, report.why, report.is_final) == (1, "what answers there is not the job log server", False)
    assert got == [b"", b""]
    assert [one.name for one in (volume / "in").iterdir()] == ["own"]


def test_what_is_too_much_is_refused_by_the_server_too(node: Node, volume: Path) -> None:
    owned(node.output / "much", CONTENT)
    owned(volume / "in" / "much", CONTENT)
    for source, target in (
        (node.copied("much", size=1000), there(volume, "copy")),
        (there(volume, "much"), node.copied("new", writes=True, size=1000)),
    ):
        code, report = copy(volume, source, target)
        assert (code, report.is_final) == (1, True)
        assert "more than 1000 bytes" in report.why
    assert not (volume / "in" / "copy").exists()
    assert not (node.output / "new").exists()


def test_what_is_missing_is_told(node: Node, volume: Path) -> None:
    code, report = copy(volume, node.copied("nothing"), there(volume, "a"))
    assert (code, report.is_final) == (1, True)
    assert "there is no nothing" in report.why


def asked(node: Node, token: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", node.port), job_logs.PATIENCE)
    connection.sendall(protocol.copy_request("node", token, "0" * 32))
    return connection


def test_one_user_does_not_keep_others_waiting(node: Node, volume: Path) -> None:
    owned(node.output / "of-alice", CONTENT * 8)
    owned(node.output / "of-bob", b"bob", BOB)
    token = node.copied("of-alice").token
    stalled = [asked(node, token) for _ in range(shares.MAX_PER_USER)]
    try:
        for one in stalled:
            assert one.recv(12) == b"HTTP/1.1 101"
        with asked(node, token) as third:
            assert third.recv(12) == b"HTTP/1.1 503"
        os.chown(volume / "in", BOB, BOB)
        assert copy(volume, node.copied("of-bob", BOB), there(volume, "bob"), BOB)[0] == 0
    finally:
        for one in stalled:
            one.close()

    def is_free() -> bool:
        with asked(node, token) as another:
            return another.recv(12) == b"HTTP/1.1 101"

    wait_for(is_free)


def test_a_user_without_a_copy_is_not_kept_out_by_users_with_several(volume: Path) -> None:
    first = "from slinky_operator.pod_programs.joblogs.copies import shares\nshares.SAFE_SECONDS = 0.0"
    with job_logs.node(first=first) as node, ExitStack() as stack:
        for number in range(shares.MAX_COPIES // shares.MAX_PER_USER):
            uid = ALICE + 1000 + number
            owned(node.output / f"of-{uid}", CONTENT * 8, uid)
            for _ in range(shares.MAX_PER_USER):
                stalled = stack.enter_context(asked(node, node.copied(f"of-{uid}", uid).token))
                assert stalled.recv(12) == b"HTTP/1.1 101"
        owned(node.output / "of-alice", b"alice")
        assert copy(volume, node.copied("of-alice"), there(volume, "alice"))[0] == 0
        assert f"gives its place to one of uid {ALICE}" in node.log()


def test_a_caller_who_goes_leaves_nothing(node: Node) -> None:
    connection = asked(node, node.copied("broken", writes=True).token)
    assert connection.recv(12) == b"HTTP/1.1 101"
    wait_for((node.output / ".m.part").exists)
    connection.close()
    wait_for(lambda: not (node.output / ".m.part").exists())
    assert not (node.output / "broken").exists()


def test_output_is_served_while_files_are_copied(node: Node) -> None:
    owned(node.output / "slow", CONTENT * 8)
    node.write("seen.out", b"seen")
    with asked(node, node.copied("slow").token) as connection:
        assert connection.recv(12) == b"HTTP/1.1 101"
        said: list[tuple[int, bytes]] = []
        thread = threading.Thread(target=lambda: said.append(node.get(node.token("seen.out"))))
        thread.start()
        thread.join(job_logs.PATIENCE)
        assert said == [(200, b"seen")]
