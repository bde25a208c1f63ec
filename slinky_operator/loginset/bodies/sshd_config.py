"""Composes sshd_config, and finds the user's line in what sshd says about it. Pure.

sshd takes the first value that it finds for a keyword. So what the operator depends on comes first, then the user's
lines, then defaults, and at the end the user's Match blocks, which would swallow everything after them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from slinky_operator.reconcile.text import cut

PORT: Final = 2222
"""Where sshd listens in its pod: below 1024 it would need another capability."""

HOST_KEY_FOLDER: Final = "/etc/slurm-login/host-keys"
KEYS_OF_USERS: Final = "/run/slurm-login/keys"
PID_FILE: Final = "/run/sshd.pid"

ASK_SSSD: Final = ("AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys %u", "AuthorizedKeysCommandUser nobody")
"""Lines by which sshd asks SSSD for a user's keys. Where SSSD has no service `ssh`, or the image no such program, sshd
says so in its log, and looks into its files."""

LONGEST: Final = 1000
"""Maximum characters of sshd's words in a condition."""

_MATCH: Final = re.compile(r"\s*Match[\s=\"]", re.IGNORECASE)
_SUBSYSTEM: Final = re.compile(r"\s*Subsystem[\s=]+\"?sftp\b", re.IGNORECASE | re.MULTILINE)
_PLACE: Final = re.compile(r"^\S*sshd_config(?:\.new)?: line (\d+): ?|^\S*sshd_config(?:\.new)? line (\d+): ?")
_SUM: Final = re.compile(r": terminating, \d+ bad configuration options")


@dataclass(frozen=True, slots=True)
class SshdConfig:
    """The text, and where the user's lines are in it."""

    text: str
    lines: Mapping[int, int] = field(default_factory=dict)
    """Number of the line in the user's text, by number of the line in `text`; both from 1."""


def compose(extra: str, *, host_keys: Sequence[str], root: bool, sssd: bool = False) -> SshdConfig:
    """Compose the text.

    Parameters
    ----------
    extra
        The user's lines.
    host_keys
        Names of the files with host keys.
    root
        Whether root has authorized keys.
    sssd
        Whether users come from SSSD, which may have their keys too.
    """
    users = extra.splitlines()
    first = next((number for number, line in enumerate(users) if _MATCH.match(line)), len(users))
    fixed = [
        "# Written by slurm-operator from the LoginSet; changes made here do not last.",
        f"Port {PORT}",
        f"PidFile {PID_FILE}",
        *(f"HostKey {HOST_KEY_FOLDER}/{name}" for name in host_keys),
    ]
    defaults = [
        f"PermitRootLogin {'prohibit-password' if root else 'no'}",
        f"AuthorizedKeysFile {KEYS_OF_USERS}/%u .ssh/authorized_keys",
        *(ASK_SSSD if sssd else ()),
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "UsePAM yes",
        "X11Forwarding no",
        "PrintMotd no",
        "AcceptEnv LANG LC_*",
        "ClientAliveInterval 60",
        *([] if _SUBSYSTEM.search(extra) else ["Subsystem sftp internal-sftp"]),
    ]
    text = [*fixed, *users[:first], *defaults, *users[first:]]
    places = {len(fixed) + number: number for number in range(1, first + 1)}
    places |= {len(fixed) + len(defaults) + number: number for number in range(first + 1, len(users) + 1)}
    return SshdConfig("\n".join(text) + "\n", places)


def explained(words: str, config: SshdConfig, extra: str) -> str:
    """What sshd says about the configuration, with the user's own lines; at most `LONGEST` characters."""
    users = extra.splitlines()
    said = []
    for line in words.splitlines():
        if not line.strip() or _SUM.search(line):
            continue
        found = _PLACE.match(line)
        number = config.lines.get(int(found[1] or found[2])) if found else None
        if found is None or number is None:
            said.append(line.strip())
            continue
        said.append(f"line {number} ({cut(users[number - 1], 80)}): {line[found.end() :].strip()}")
    return cut("; ".join(dict.fromkeys(said)), LONGEST)
