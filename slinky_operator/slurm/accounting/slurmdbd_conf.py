"""slurmdbd.conf: the operator's keys and the user's `extraConf`, each key once.

A key by which slurmdbd finds its database, trusts others and is found is the operator's, and refused in `extraConf`; so
is a line that is more than words `Key=Value` (`directives`). Everything else is the user's: `PurgeJobAfter` and the
other keys of purging and archiving, `TrackWCKey`, `DebugLevel`, `StorageParameters` ... A key that slurmdbd does not
know would end it: a disposable slurmdbd reads the file before a running one does (`trial_conf`).

The file holds the password of the database, so it is kept in a Secret and never logged. slurmdbd reads only a file of
mode 0600 that belongs to SlurmUser (slurmdbd.conf(5)); its pod sees to that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.syntax.directives import Directive, TextProblem, parse_lines

SLURMDBD_CONF: Final = "slurmdbd.conf"

RUN_FOLDER: Final = "/run/slurmdbd"
"""Where slurmdbd keeps its pid file."""

PASSWORD_RULE: Final = "1 to 256 printable ASCII characters without blanks, quotes, '#' and backslashes"  # noqa: S105
"""What a password must be to be read by slurmdbd as it is written."""

_PASSWORD: Final = re.compile(r"[!$-&(-\[\]-_a-~]{1,256}", re.ASCII)

_OWN: Final = frozenset(
    key.lower()
    for key in (
        "AuthAltParameters",
        "AuthAltTypes",
        "AuthInfo",
        "AuthType",
        "DbdAddr",
        "DbdHost",
        "DbdPort",
        "LogFile",
        "PidFile",
        "SlurmUser",
        "StorageHost",
        "StorageLoc",
        "StoragePass",
        "StoragePassScript",
        "StoragePort",
        "StorageType",
        "StorageUser",
    )
)
"""Keys of the operator."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The database, as slurmdbd is to reach it."""

    host: str
    port: int
    name: str
    user: str
    password: str = field(default="", repr=False)
    """Empty for an account without one."""


def password_in(value: bytes) -> str | None:
    """Read a password as a Secret holds it, without a line end; `None` if slurmdbd.conf cannot hold it."""
    text = value.decode("ascii", errors="replace").removesuffix("\n").removesuffix("\r")
    return text if _PASSWORD.fullmatch(text) else None


@lru_cache(maxsize=4)
def extra_problem(text: str) -> str | None:
    """Why `extraConf` cannot be used; `None` if it can.

    A pass asks several times, and the text may be long: the last answers are remembered.
    """
    words = parse_lines(text)
    if isinstance(words, TextProblem):
        return words.reason
    seen: set[str] = set()
    for word in words:
        if word.folded in _OWN:
            return f"{word.key} is written by the operator"
        if word.operator:
            return f"{word.key}{word.operator}= is not understood here; use ="
        if word.folded in seen:
            return f"{word.key} is given twice"
        seen.add(word.folded)
    return _archive_problem(words)


def _archive_problem(words: tuple[Directive, ...]) -> str | None:
    """Why archives would be lost: what is archived is purged from the database, and the pod's own files end with it."""
    given = {word.folded for word in words}
    for word in words:
        is_on = word.folded.startswith("archive") and word.value.lower() in {"yes", "true", "1"}
        if is_on and given.isdisjoint({"archivedir", "archivescript"}):
            return (
                f"{word.key} needs ArchiveDir, a folder on a volume of your own (spec.accounting.template): archives in"
                " the pod would be lost with it"
            )
    return None


def render(pod: str, storage: Storage, extra: str = "", key_set: str = "") -> str:
    """Write slurmdbd.conf.

    Parameters
    ----------
    pod
        Name of slurmdbd's pod, which is its host name: slurmdbd runs on no other (`DbdHost`).
    storage
        The database.
    extra
        The user's lines, without `extra_problem`.
    key_set
        Path of the file with public keys of tokens; empty without one.
    """
    own = {
        "AuthType": "auth/slurm",
        "AuthInfo": "use_client_ids",
        "AuthAltTypes": "auth/jwt",
        "AuthAltParameters": f"jwt_key={naming.KEY_FOLDER}/{naming.JWT_KEY}{f',jwks={key_set}' if key_set else ''}",
        "DbdHost": pod,
        "DbdPort": str(naming.SLURMDBD_PORT),
        "SlurmUser": "slurm",
        "PidFile": f"{RUN_FOLDER}/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": storage.host,
        "StoragePort": str(storage.port),
        "StorageLoc": storage.name,
        "StorageUser": storage.user,
    }
    if storage.password:
        own["StoragePass"] = storage.password
    words = parse_lines(extra)
    assert not isinstance(words, TextProblem)  # noqa: S101 - checked by the caller
    lines = [*(Directive(key, value) for key, value in own.items()), *sorted(words, key=lambda word: word.folded)]
    return "".join(f"{line}\n" for line in lines)
