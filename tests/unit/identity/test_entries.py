"""Lines of passwd and group: what is written for the daemons, and what is refused with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.identity import entries
from slinky_operator.slurm import naming

ALICE = "alice:x:1000:1000:Alice:/home/alice:/bin/bash"


def test_lines_are_written_again_without_passwords_comments_and_line_ends_of_windows() -> None:
    found = entries.read(f"# people\r\n\r\n{ALICE}\r\n", "lab:$6$secret:2100: alice, bob,\n")
    assert found.problems == ()
    assert found.texts == {
        "passwd": "alice:*:1000:1000:Alice:/home/alice:/bin/bash\n",
        "group": "lab:*:2100:alice,bob\n",
    }


def test_nothing_is_two_empty_files() -> None:
    assert entries.read("", "").texts == {"passwd": "", "group": ""}


def test_a_primary_group_may_be_users() -> None:
    assert entries.read("a:x:1000:100::/home/a:", "").problems == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("alice:x:1000", "has 3 fields separated by ':', not 7"),
        ("a:x:0:1000::/home/a:/bin/sh", "uid 0 is not from 1000 to 2147483647"),
        ("a:x:999:1000::/home/a:/bin/sh", "uid 999 is not from"),
        ("a:x:4294967295:1000::/home/a:/bin/sh", "uid 4294967295 is not from"),
        ("a:x:-1:1000::/home/a:/bin/sh", "uid '-1' is not a number"),
        ("a:x:١٠٠٠:1000::/home/a:/bin/sh", "is not a number"),
        (f"a:x:{naming.SLURM_UID}:1000::/home/a:/bin/sh", f"uid {naming.SLURM_UID} belongs to a daemon"),
        (f"a:x:1000:{naming.NOBODY}::/home/a:/bin/sh", f"gid {naming.NOBODY} belongs to a daemon"),
        ("a:x:1000:0::/home/a:/bin/sh", "gid 0 is not from"),
        ("root:x:1000:1000::/home/a:/bin/sh", "user root is in the images already"),
        ("slurm:x:1000:1000::/home/a:/bin/sh", "user slurm is in the images already"),
        (":x:1000:1000::/home/a:/bin/sh", "'' is not a user name"),
        ("1a:x:1000:1000::/home/a:/bin/sh", "'1a' is not a user name"),
        ("a b:x:1000:1000::/home/a:/bin/sh", "'a b' is not a user name"),
        ("a:x:1000:1000::home/a:/bin/sh", "a: its home folder must be an absolute path"),
        ("a:x:1000:1000::/home/a:/bin/sh -c x", "a: its shell must be an absolute path"),
        (f"a:x:1000:1000:{'c' * 257}:/home/a:/bin/sh", "a: its comment has 257 characters"),
        ("a:x:1000:1000:x\x1bc:/home/a:/bin/sh", "has a control character"),
        ("a:x:1000:1000:\u2028:/home/a:/bin/sh", "has a control character"),
        (f"a:x:1000:1000:{'c' * 20_000}:/home/a:/bin/sh", "characters, and may have 16384"),
    ],
)
def test_a_bad_user_is_refused_by_its_line(line: str, words: str) -> None:
    (problem,) = entries.read(f"\n{line}\n", "").problems
    assert problem.startswith("passwd line 2: ")
    assert words in problem


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("lab:x:0:", "gid 0 is not from"),
        ("lab:x:100:", "gid 100 is not from"),
        ("sudo:x:2000:", "group sudo is in the images already"),
        ("lab:x:2000:alice,b c", "lab: member 'b c' is not a user name"),
        ("lab:x:2000", "has 3 fields separated by ':', not 4"),
    ],
)
def test_a_bad_group_is_refused_by_its_line(line: str, words: str) -> None:
    (problem,) = entries.read("", line).problems
    assert problem.startswith("group line 1: ")
    assert words in problem


def test_names_and_numbers_are_unique_and_groups_may_be_named_like_users() -> None:
    found = entries.read(
        f"{ALICE}\nalice:x:1001:1::/a:\nbob:x:1000:1000::/home/bob:\nbob:x:01000:1000::/b:", "alice:x:1000:\n"
    )
    assert found.problems == (
        "passwd line 2: gid 1 is not from 1000 to 2147483647",
        "passwd line 3: 1000 is in line 1 already",
        "passwd line 4: bob is in line 3 already",
    )


def test_a_long_list_of_problems_is_cut() -> None:
    found = entries.read("x\n" * 1000, "")
    assert len(found.problems) == entries.MOST_PROBLEMS + 1
    assert found.problems[-1] == "and 995 more lines"


@given(st.lists(st.text(alphabet=st.sampled_from("abz019:/,*#\n\r\t x-_\x00\u2028é"), max_size=60), max_size=8))
def test_whatever_is_read_every_line_written_has_its_fields_and_ids_of_people(lines: list[str]) -> None:
    found = entries.read("\n".join(lines), "\n".join(lines))
    for name, fields in (("passwd", 7), ("group", 4)):
        for line in found.texts[name].splitlines():
            parts = line.split(":")
            assert len(parts) == fields
            assert int(parts[2]) >= entries.LOWEST_ID
            assert line.isprintable()
