"""The server as a real process with real users: who gets what, and who does not."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slinky_operator.pod_programs.joblogs import protocol, tokens
from slinky_operator.pod_programs.joblogs.server.listener import MAX_PER_PEER
from slinky_operator.pod_programs.joblogs.tokens import Grant
from tests.support import job_logs
from tests.support.job_logs import ALICE, BOB, LAB, Node, wait_for


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with job_logs.node() as made:
        yield made


def test_a_user_reads_what_his_job_wrote(node: Node) -> None:
    node.write("a.out", b"hello\n")
    token = node.token("a.out")
    assert node.get(token) == (200, b"hello\n")
    assert node.get(token, offset=2) == (200, b"llo\n")
    assert node.get(token, offset=6) == (204, b"")


def test_the_folder_keeps_users_apart(node: Node) -> None:
    assert oct(node.output.stat().st_mode & 0o7777) == "0o1733"


def test_what_talks_to_callers_is_nobody_and_cannot_read_the_key(node: Node) -> None:
    own = Path(f"/proc/{node.process.pid}/status").read_text()
    assert re.search(r"(?m)^CapEff:\t0*c0$", own), "the server has more than SETUID and SETGID"
    children = Path(f"/proc/{node.process.pid}/task/{node.process.pid}/children").read_text().split()
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{children[0]}/status").read_text().splitlines() if ":\t" in line
    )
    assert set(status["Uid"].split()) == set(status["Gid"].split()) == {"65534"}
    assert status["Groups"].split() == ["65534"]
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert oct((node.root / "key").stat().st_mode & 0o777) == "0o400"


def test_how_much_room_there_is_needs_no_token(node: Node) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=job_logs.PATIENCE)
    connection.request("GET", protocol.VOLUMES_PATH)
    told = json.loads(connection.getresponse().read())["volumes"]
    connection.close()
    # Nothing of files and users.
    assert told.keys() == {"job-output"}
    assert told["job-output"].keys() <= {"size", "free", "inodes", "inodesFree", "age", "waits"}


def test_a_file_that_is_not_there_may_come(node: Node) -> None:
    token = node.token("late.out")
    status, line = node.get(token)
    assert (status, line.count(b"\n")) == (404, 1)
    node.write("late.out", b"x")
    assert node.get(token) == (200, b"x")


def test_a_token_of_another_job_opens_that_job_only(node: Node) -> None:
    node.write("own.out", b"own")
    node.write("others.out", b"secret", uid=BOB)
    status, line = node.get(node.token("others.out", uid=ALICE))
    assert status == 403
    assert line.count(b"\n") == 1
    assert b"secret" not in line
    # A file of somebody else's that everybody may read is not the job's either.
    node.write("open.out", b"secret", uid=BOB, mode=0o644)
    assert node.get(node.token("open.out", uid=ALICE))[0] == 403


def test_groups_open_folders(node: Node) -> None:
    folder = node.output / "lab"
    folder.mkdir(mode=0o710)
    os.chown(folder, 0, LAB)
    folder.chmod(0o710)
    node.write("lab/a.out", b"lab")
    assert node.get(node.token("lab/a.out", gids=(ALICE, LAB))) == (200, b"lab")
    assert node.get(node.token("lab/a.out", gids=(ALICE,)))[0] == 403


@pytest.mark.parametrize(
    "path", ["../key", "a/../../key", "/etc/passwd", "/etc/shadow", "./own.out", "a//b", "/proc/self/environ"]
)
def test_no_path_leads_out_of_the_folder(node: Node, path: str) -> None:
    assert node.get(node.token(path))[0] == 403


def test_a_prefix_of_the_folder_is_another_folder(node: Node) -> None:
    beside = node.root / "job-output-beside"
    beside.mkdir()
    (beside / "a").write_bytes(b"x")
    os.chown(beside / "a", ALICE, ALICE)
    assert node.get(node.token(f"{beside}/a"))[0] == 403


def test_wrong_and_expired_tokens(node: Node) -> None:
    node.write("t.out", b"x")
    good = node.token("t.out")
    status, line = node.get(node.token("t.out", lasts=-1))
    assert (status, line) == (403, b"the token has expired\n")
    grant = Grant("7", ALICE, (ALICE,), str(node.output / "t.out"), int(time.time()) + 60)
    forged = tokens.sign(grant, b"x" * 64)
    payload, signature = good.split(".")
    for wrong in (forged, "x", "x.y", f"{payload}x.{signature}", f"{forged.split('.')[0]}.{signature}", "a" * 16000):
        assert node.get(wrong) == (403, b"the token is not valid here\n")
    assert node.get("a" * 17000)[0] == 403
    # Nothing of a token is logged.
    assert signature not in node.log()


def test_links_are_not_followed(node: Node) -> None:
    secret = node.root / "private"
    secret.write_bytes(b"secret")
    os.chown(secret, ALICE, ALICE)
    secret.chmod(0o600)
    # A link that another user has put in the place of the output.
    (node.output / "stolen.out").symlink_to(secret)
    os.lchown(node.output / "stolen.out", BOB, BOB)
    # Also one of the user's own, and one on the way.
    (node.output / "own-link.out").symlink_to(secret)
    os.lchown(node.output / "own-link.out", ALICE, ALICE)
    (node.output / "folder").symlink_to(node.root)
    for name in ("stolen.out", "own-link.out", "folder/private"):
        status, line = node.get(node.token(name))
        assert (status, b"symbolic link" in line) == (403, True)


def test_a_link_that_comes_and_goes_never_shows_what_is_behind_it(node: Node) -> None:
    secret = node.root / "private2"
    secret.write_bytes(b"secret")
    os.chown(secret, ALICE, ALICE)
    place, stop = node.output / "race.out", threading.Event()

    def attack() -> None:
        while not stop.is_set():
            (node.output / ".link").symlink_to(secret)
            (node.output / ".link").rename(place)
            node.write(".file", b"output")
            (node.output / ".file").rename(place)

    attacker = threading.Thread(target=attack, daemon=True)
    attacker.start()
    try:
        seen = [node.get(node.token("race.out")) for _ in range(100)]
    finally:
        stop.set()
        attacker.join()
    assert {body for status, body in seen if status == 200} <= {b"output", b""}
    assert {status for status, _ in seen} <= {200, 204, 403, 404}


def test_only_regular_files(node: Node) -> None:
    os.mkfifo(node.output / "pipe", 0o600)
    (node.output / "directory").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(node.output / "socket"))
        for name in ("pipe", "directory", "socket"):
            os.chown(node.output / name, ALICE, ALICE)
            assert node.get(node.token(name))[0] == 403


def test_waiting_ends_with_the_first_bytes(node: Node) -> None:
    path = node.write("slow.out", b"")
    token, found = node.token("slow.out"), list[tuple[int, bytes]]()
    asking = threading.Thread(target=lambda: found.append(node.get(token, wait=20)), daemon=True)
    asking.start()
    with path.open("ab") as opened:
        opened.write(b"now")
    asking.join(job_logs.PATIENCE)
    assert found == [(200, b"now")]
    assert node.get(token, offset=3, wait=0.1) == (204, b"")


def test_a_truncated_file_is_told(node: Node) -> None:
    node.write("cut.out", b"12345")
    token = node.token("cut.out")
    assert node.get(token, offset=5)[0] == 204
    node.write("cut.out", b"1")
    assert node.get(token, offset=5) == (416, b"the file has 1 bytes\n")


def test_one_answer_has_a_limit(node: Node) -> None:
    path = node.write("huge.out", b"")
    os.truncate(path, protocol.MAX_CHUNK * 3)
    status, body = node.get(node.token("huge.out"), offset=5)
    assert (status, len(body)) == (200, protocol.MAX_CHUNK)


def test_nonsense_is_refused_and_the_server_goes_on(node: Node) -> None:
    for sent in (b"GET / HTTP/1.1\r\n\r\n", b"\0\xff\r\n\r\n", b"POST /output HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", node.port), timeout=job_logs.PATIENCE) as connection:
            connection.sendall(sent)
            assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")
    with socket.create_connection(("127.0.0.1", node.port), timeout=job_logs.PATIENCE) as connection:
        # A head without an end: the server closes, at the latest once it is too long.
        try:
            connection.sendall(b"GET /" + b"x" * (protocol.MAX_HEAD + 10))
            assert connection.recv(4096) == b""
        except ConnectionError:
            assert node.process.poll() is None
    node.write("after.out", b"x")
    assert node.get(node.token("after.out")) == (200, b"x")


def test_one_peer_gets_so_many_connections(node: Node) -> None:
    node.write("many.out", b"x")
    held = [socket.create_connection(("127.0.0.1", node.port)) for _ in range(MAX_PER_PEER)]
    try:
        wait_for(lambda: _is_turned_away(node))
    finally:
        for one in held:
            one.close()
    # Others are let in, and this one too once it has let go.
    wait_for(lambda: not _is_turned_away(node))
    assert node.get(node.token("many.out")) == (200, b"x")


def _is_turned_away(node: Node) -> bool:
    with socket.create_connection(("127.0.0.1", node.port), timeout=job_logs.PATIENCE) as connection:
        try:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            return connection.recv(4096).startswith(b"HTTP/1.1 503 ")
        except ConnectionError:
            return True


def test_a_changed_key_counts_at_once(node: Node) -> None:
    node.write("key.out", b"x")
    old = node.token("key.out")
    new = b"n" * 64
    try:
        (node.root / "key").write_bytes(new)
        assert node.get(old)[0] == 403
        grant = Grant("7", ALICE, (ALICE,), str(node.output / "key.out"), int(time.time()) + 60)
        assert node.get(tokens.sign(grant, new)) == (200, b"x")
        (node.root / "key").write_bytes(b"short")
        assert node.get(old)[0] == 503
    finally:
        (node.root / "key").write_bytes(job_logs.KEY)
    assert node.get(old) == (200, b"x")


def test_old_files_go_unless_somebody_has_them_open() -> None:
    with job_logs.node("--keep", "3600") as kept:
        # The first look is at the start: a second server looks at what the first one has.
        old = [kept.write(name, b"x") for name in ("old.out", "open.out")]
        young = kept.write("young.out", b"x")
        for path in old:
            os.utime(path, (0, 0))
        os.utime(kept.output, (0, 0))
        with old[1].open("ab"):
            command = [sys.executable, "-m", "slinky_operator.joblogs", "serve", "--key", str(kept.root / "key")]
            with subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--port", "0", "--own-folder", str(kept.output), "--keep", "3600"],
                stderr=subprocess.DEVNULL,
                env=job_logs.environment(),
            ) as second:
                wait_for(lambda: not old[0].exists())
                # Both were looked at together: users' files in one go.
                second.terminate()
        assert old[1].exists()
        assert young.exists()


def test_nothing_is_deleted_where_others_may_have_it_open(tmp_path: Path) -> None:
    """Who has a file open is known of this machine alone. What the server does not know is taken for shared."""
    folder, key = tmp_path / "shared", tmp_path / "key"
    folder.mkdir()
    key.write_bytes(bytes(64))
    serve = [sys.executable, "-m", "slinky_operator.joblogs", "serve", "--key", str(key), "--host", "127.0.0.1"]
    script = f"mount -t ramfs none {folder} && touch -d @0 {folder}/old.out && chown 65534 {folder}/old.out && exec "
    words = shlex.join([*serve, "--port", "0", "--own-folder", str(folder), "--keep", "3600"])
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script + words],
        stderr=subprocess.PIPE,
        text=True,
        env=job_logs.environment(),
    ) as server:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "however old" in line)
        assert f"{folder} is on ramfs" in line
        next(line for line in server.stderr if "listens on port" in line)
        assert Path(f"/proc/{server.pid}/root{folder}/old.out").exists()
        server.terminate()
