"""Keys of slurm.conf that `reconfigure` does not apply: slurmctld has to be restarted for them.

They are few. Since 23.11 each daemon starts a successor with the new files on reconfigure and passes its sockets on, so
that everything is read as at a start, except for listening sockets and the authentication method
(scontrol(1), `reconfigure`; slurm.conf(5), "Changes to TCP listening settings will require a daemon restart").

Measured with slurmctld of 24.11 and 26.05 while a batch job and an srun ran:

- `CommunicationParameters=NoCtldInAddrAny` removed: listens on one address until it is restarted;
- `SlurmctldPort` changed: listens on the old port;
- applied by `reconfigure`: all others, and AuthAltParameters with another key of auth/jwt, or another content of the
  same file. What a change does to jobs is in `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from slinky_operator.slurm.conf.syntax.parsed import parse

LISTENING: Final = frozenset({"noinaddrany", "noctldinaddrany", "enableipv6", "disableipv4"})
"""Items of `CommunicationParameters` that say where daemons listen; all others are taken over."""


@dataclass(frozen=True, slots=True)
class RestartKey:
    """A key, and whom it concerns."""

    name: str
    slurmd: bool
    """Whether slurmd has to be restarted too, which the operator leaves to the user: its jobs depend on it."""

    part: Callable[[str], str] = lambda value: value
    """What of the value matters."""


def _listening(value: str) -> str:
    return ",".join(sorted(item for item in value.lower().split(",") if item in LISTENING))


RESTART_KEYS: Final = (
    RestartKey("AuthType", slurmd=True),
    RestartKey("CommunicationParameters", slurmd=True, part=_listening),
    RestartKey("SlurmctldPort", slurmd=True),
    RestartKey("SlurmdPort", slurmd=True),
)
"""In order of name. Of these only CommunicationParameters is the user's to give."""


def restart_keys(text: str) -> Mapping[str, str]:
    """Values of these keys in a slurm.conf, by name; those that it does not have, or that say nothing, are left out.

    Two files for which this differs need a restart of slurmctld.
    """
    found = parse(text)
    values = ((key.name, key.part(",".join(found.keys.get(key.name.lower(), ())))) for key in RESTART_KEYS)
    return {name: value for name, value in values if value}
