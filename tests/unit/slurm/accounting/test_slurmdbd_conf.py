"""slurmdbd.conf: what users may add to it, and what a password may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.slurm.accounting.slurmdbd_conf import Storage, extra_problem, password_in, render
from slinky_operator.slurm.conf.syntax.directives import parse_lines

STORAGE = Storage("db.here.svc", 3306, "slurm_acct_db", "slurm", "secret")


def test_own_keys_and_the_users_are_there_once() -> None:
    text = render("slurm-accounting-0", STORAGE, "PurgeJobAfter=12months # a year\nDebugLevel = debug\n")
    lines = text.splitlines()
    assert len(lines) == len({line.split("=")[0] for line in lines})
    wanted = {"DbdHost=slurm-accounting-0", "StoragePass=secret", "PurgeJobAfter=12months", "DebugLevel=debug"}
    assert wanted <= set(lines)


def test_an_account_without_a_password_has_no_line_of_it() -> None:
    assert "StoragePass" not in render("pod", Storage("db", 1, "d", "u"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("StoragePass=mine", "StoragePass is written by the operator"),
        ("storagehost=there", "storagehost is written by the operator"),
        ("DebugLevel=info\nDebugLevel=debug", "DebugLevel is given twice"),
        ("Include /etc/passwd", "must be words Key=Value"),
        ("PurgeJobAfter=1month \\\nStorageHost=x", "StorageHost is written by the operator"),
        ("DebugLevel=info StorageHost=x", "StorageHost is written by the operator"),
        ("ArchiveJobs=yes", "ArchiveJobs needs ArchiveDir"),
        ("ArchiveDir=/x\x0bStorageHost=y", "control characters"),
    ],
)
def test_what_is_the_operators_cannot_be_given(text: str, words: str) -> None:
    problem = extra_problem(text)
    assert problem is not None
    assert words in problem


def test_purging_and_archiving_are_the_users() -> None:
    assert extra_problem("ArchiveJobs=yes\nArchiveDir=/archive\nPurgeJobAfter=6months\nTrackWCKey=yes") is None


@pytest.mark.parametrize("value", [b"", b"a b", b'a"b', b"a#b", b"a\\", b"a\nb", b"a'b", b"\xff", b"x" * 257])
def test_a_password_that_the_file_cannot_hold_is_none(value: bytes) -> None:
    assert password_in(value) is None


def test_a_line_end_is_not_part_of_a_password() -> None:
    assert password_in(b"secret\n") == password_in(b"secret\r\n") == password_in(b"secret") == "secret"


@given(st.binary(max_size=40))
def test_no_password_adds_a_key(value: bytes) -> None:
    password = password_in(value)
    if password is None:
        return
    words = parse_lines(render("pod", Storage("db", 1, "d", "u", password)))
    assert isinstance(words, tuple)
    found = {word.key: word.value for word in words}
    assert len(words) == len(found) == 14
    assert found["StoragePass"] == password
