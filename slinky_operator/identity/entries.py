"""Lines of passwd and group, checked and written again. Pure; the format is that of passwd(5) and group(5).

The daemons resolve names with libnss-extrausers, which reads files beside those of the image and ignores ids of the
system (below 500). What it would silently ignore, or what would change who the users of the images are, is refused
here, with its line: ids below 1000, those of the users that daemons run as, their names, and two lines with one name or
one number.

Every line is written again from its parts. Passwords are left out: nobody logs in with one, and many may read a
ConfigMap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from slinky_operator.slurm import naming

PASSWD: Final = "passwd"  # noqa: S105 - a file
GROUP: Final = "group"

LOWEST_ID: Final = 1000
"""Ids below belong to the users and groups of the images."""

HIGHEST_ID: Final = 2**31 - 1
"""Beyond it some file systems and tools take an id for a negative number."""

LONGEST_LINE: Final = 16_384
"""Characters of a line: a group of about a thousand members."""

MOST_PROBLEMS: Final = 5
"""Lines that are reported at a time."""

_OF_IMAGES: Final = frozenset({naming.SLURM_UID, naming.NOBODY, naming.NOBODY + 1})
_USERS: Final = 100
"""Number of the group `users`, which Debian has in every image, and libnss-extrausers allows."""

_NAMES_OF_IMAGES: Final = frozenset(
    [
        "root",
        "daemon",
        "bin",
        "sys",
        "sync",
        "games",
        "man",
        "lp",
        "mail",
        "news",
        "uucp",
        "proxy",
        "www-data",
        "backup",
        "list",
        "irc",
        "nobody",
        "nogroup",
        "slurm",
        "sssd",
        "munge",
        "messagebus",
        "sshd",
        "adm",
        "tty",
        "disk",
        "kmem",
        "dialout",
        "fax",
        "voice",
        "cdrom",
        "floppy",
        "tape",
        "sudo",
        "audio",
        "dip",
        "operator",
        "src",
        "shadow",
        "utmp",
        "video",
        "sasl",
        "plugdev",
        "staff",
        "users",
        "input",
        "sgx",
        "kvm",
        "render",
        "crontab",
        "_ssh",
        "_apt",
        "systemd-network",
        "systemd-timesync",
    ]
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]{0,31}", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,10}", re.ASCII)
_PATH: Final = re.compile(r"/[A-Za-z0-9_./@+-]{0,255}", re.ASCII)
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NO_PASSWORD: Final = "*"  # noqa: S105
_LONGEST_COMMENT: Final = 256


@dataclass(frozen=True, slots=True)
class Files:
    """Both files as daemons read them, or why they cannot."""

    texts: Mapping[str, str]
    """By the names `passwd` and `group`."""

    problems: tuple[str, ...] = ()
    """What is wrong, with file and line; with any, the files are not to be used."""


class _BadLine(ValueError):
    """What is wrong with a line."""


@dataclass(slots=True)
class _Reader:
    """One file: lines that are good so far, and what is wrong with others."""

    name: str
    fields: int
    write: Callable[[Sequence[str]], str]
    good: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    """Line of each name and number."""

    def read(self, text: str) -> None:
        for number, line in _lines(text):
            try:
                self._add(number, line)
            except _BadLine as error:
                self.problems.append(f"{self.name} line {number}: {error}")

    def _add(self, number: int, line: str) -> None:
        if len(line) > LONGEST_LINE:
            raise _BadLine(f"has {len(line)} characters, and may have {LONGEST_LINE}")
        if _CONTROL.search(line) is not None:
            raise _BadLine("has a control character")
        parts = line.split(":")
        if len(parts) != self.fields:
            raise _BadLine(f"has {len(parts)} fields separated by ':', not {self.fields}")
        written = self.write(parts)
        for key in (parts[0], f":{int(parts[2])}"):
            first = self.seen.setdefault(key, number)
            if first != number:
                raise _BadLine(f"{key.removeprefix(':')} is in line {first} already")
        self.good.append(written)


@lru_cache(maxsize=16)
def read(passwd: str, group: str) -> Files:
    """Check both files and write them again; the last results are kept, since every pass asks for the same.

    Parameters
    ----------
    passwd, group
        As the user wrote them; empty lines, and lines that begin with '#', are left out.
    """
    users, groups = _Reader(PASSWD, 7, _user), _Reader(GROUP, 4, _group)
    users.read(passwd)
    groups.read(group)
    found = [*users.problems, *groups.problems]
    more = len(found) - MOST_PROBLEMS
    shown = (*found[:MOST_PROBLEMS], *((f"and {more} more lines",) if more > 0 else ()))
    return Files({one.name: "".join(f"{line}\n" for line in one.good) for one in (users, groups)}, shown)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers. Only a newline ends a line, as for the C library; Windows' line ends are forgiven."""
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.removesuffix("\r")
        if stripped.strip(" \t") and not stripped.startswith("#"):
            yield number, stripped


def _user(parts: Sequence[str]) -> str:
    name, _, uid, gid, comment, home, shell = parts
    _check_name(name, "user")
    _check_number(uid, "uid")
    _check_number(gid, "gid", also=(_USERS,))
    if len(comment) > _LONGEST_COMMENT:
        raise _BadLine(f"{name}: its comment has {len(comment)} characters, and may have {_LONGEST_COMMENT}")
    for what, path in (("home folder", home), ("shell", shell or "/")):
        if _PATH.fullmatch(path) is None:
            raise _BadLine(f"{name}: its {what} must be an absolute path of letters, digits and _ . / @ + -")
    return ":".join((name, _NO_PASSWORD, str(int(uid)), str(int(gid)), comment, home, shell))


def _group(parts: Sequence[str]) -> str:
    name, _, gid, members = parts
    _check_name(name, "group")
    _check_number(gid, "gid")
    listed = [one.strip() for one in members.split(",") if one.strip()]
    for one in listed:
        if _NAME.fullmatch(one) is None:
            raise _BadLine(f"{name}: member {one[:40]!r} is not a user name")
    return ":".join((name, _NO_PASSWORD, str(int(gid)), ",".join(listed)))


def _check_name(name: str, kind: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise _BadLine(
            f"{name[:40]!r} is not a {kind} name: up to 32 letters, digits and _ . @ -, beginning with a letter or '_'"
        )
    if name in _NAMES_OF_IMAGES:
        raise _BadLine(f"{kind} {name} is in the images already")


def _check_number(text: str, what: str, also: Sequence[int] = ()) -> None:
    if _NUMBER.fullmatch(text) is None:
        raise _BadLine(f"{what} {text[:40]!r} is not a number")
    number = int(text)
    if number in also:
        return
    if number in _OF_IMAGES:
        raise _BadLine(f"{what} {number} belongs to a daemon")
    if not LOWEST_ID <= number <= HIGHEST_ID:
        raise _BadLine(f"{what} {number} is not from {LOWEST_ID} to {HIGHEST_ID}")
