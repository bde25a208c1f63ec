"""Which daemons a change of slurm.conf concerns: who must restart for it, and which slurmds could end on it.

Keys that `reconfigure` does not apply are few. Since 23.11 each daemon starts a successor with the new files on
reconfigure and passes its sockets on, so that everything is read as at a start, except for listening sockets and the
authentication method (scontrol(1), `reconfigure`; slurm.conf(5), "Changes to TCP listening settings will require a
daemon restart").

Measured with slurmctld of 24.11 and 26.05 while a batch job and an srun ran:

- `CommunicationParameters=NoCtldInAddrAny` removed: listens on one address until it is restarted;
- `SlurmctldPort` changed: listens on the old port;
- applied by `reconfigure`: all others, and AuthAltParameters with another key of auth/jwt, or another content of the
  same file. What a change does to jobs is in `rules`.

slurmctld alone acts on partitions and NodeSets. A slurmd only reads their lines, and fails on them only where it does
not know a key. So a change of such lines by keys that the running configuration already has reaches no slurmd.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from slinky_operator.slurm.conf.syntax.directives import TextProblem, logical_lines, parse_lines
from slinky_operator.slurm.conf.syntax.parsed import Parsed
from slinky_operator.slurm.tokens import key_set

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


def restart_keys(conf: Parsed) -> Mapping[str, str]:
    """Values of these keys in a slurm.conf, by name; those that it does not have, or that say nothing, are left out.

    Two files for which this differs need a restart of slurmctld.
    """
    values = ((key.name, key.part(",".join(conf.keys.get(key.name.lower(), ())))) for key in RESTART_KEYS)
    return {name: value for name, value in values if value}


_SLURM_CONF: Final = "slurm.conf"
_NOT_SLURMDS: Final = frozenset({_SLURM_CONF, key_set.FILE})
"""Files that are compared by what is in them, or that slurmctld gives to nobody."""

_SLURMCTLDS: Final = frozenset({"partitionname", "nodeset"})


def beyond_slurmds(running: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether two configurations differ in nothing that a slurmd could end on."""
    if {name: text for name, text in running.items() if name not in _NOT_SLURMDS} != {
        name: text for name, text in wanted.items() if name not in _NOT_SLURMDS
    }:
        return False
    before, after = _read(running.get(_SLURM_CONF, "")), _read(wanted.get(_SLURM_CONF, ""))
    return before is not None and after is not None and before[0] == after[0] and after[1] <= before[1]


def _read(text: str) -> tuple[Counter[str], set[tuple[str, str]]] | None:
    """Lines that a slurmd acts on, and the keys of the others by kind of line; `None` if one cannot be read."""
    lines: Counter[str] = Counter()
    keys: set[tuple[str, str]] = set()
    for _, line in logical_lines(text):
        words = parse_lines(line)
        if isinstance(words, TextProblem):
            return None
        if words and words[0].folded in _SLURMCTLDS:
            keys |= {(words[0].folded, word.folded) for word in words}
        elif words:
            lines[" ".join(map(str, words))] += 1
    return lines, keys
