"""Which changes of a configuration no slurmd can end on, whatever its image.

slurmctld alone acts on partitions and NodeSets. A slurmd only reads their lines, and fails on them only where it does
not know a key. So a change of such lines by keys that the running configuration already has reaches no slurmd.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from slinky_operator.slurm.conf.syntax.directives import TextProblem, logical_lines, parse_lines
from slinky_operator.slurm.tokens import key_set

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
