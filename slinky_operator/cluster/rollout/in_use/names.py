"""What jobs name without having it: nodes they require or exclude, features of their constraints, licenses. Pure.

slurmctld reads these names again at every reconfigure. What follows from that is decided in `static_nodes` and
`licenses`; a text that cannot be read counts as one that names everything.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Final

from slurm_client.notation import hostlist

MOST_NAMES: Final = 20_000
"""Names that are expanded for one decision: a job whose list comes later counts as naming every node."""

LONGEST: Final = 4096
"""Characters of a constraint or a request for licenses that are read; Slurm accepts 1024 of a request."""

_SYNTAX: Final = re.compile(r"[\s\[\](){}&|,;*!]+")
"""What separates features, and licenses, in what a job asks for."""

_LICENSE: Final = re.compile(r"(?P<name>[^:=@]+)(?:@[^:=]*)?(?:[:=](?P<count>[0-9]{1,9}))?")


class Hostlists:
    """Lists of nodes that jobs name, each read once."""

    def __init__(self) -> None:
        self._left = MOST_NAMES
        self._read: dict[str, frozenset[str] | None] = {}

    def name_any(self, text: str, nodes: AbstractSet[str]) -> bool:
        """Whether a list names one of these nodes, or cannot be read."""
        if not text or not nodes:
            return False
        if text not in self._read:
            self._read[text] = self._expanded(text)
        names = self._read[text]
        return names is None or not names.isdisjoint(nodes)

    def _expanded(self, text: str) -> frozenset[str] | None:
        self._left -= hostlist.size(text)
        if self._left < 0:
            return None
        found = hostlist.expand(text)
        return None if any(mark in name for name in found for mark in "[],") else frozenset(found)


def features_in(constraint: str) -> frozenset[str] | None:
    """Features that a constraint names; `None` if it cannot be read."""
    if len(constraint) > LONGEST:
        return None
    return frozenset(word for word in _SYNTAX.split(constraint) if word)


def licenses_in(request: str) -> dict[str, int] | None:
    """Licenses of a request, each with the largest count that it names; `None` if it cannot be read.

    Alternatives (`a|b`) count as named. A count that is left out is one.
    """
    if len(request) > LONGEST:
        return None
    found: dict[str, int] = {}
    for word in filter(None, _SYNTAX.split(request)):
        match = _LICENSE.fullmatch(word)
        if match is None:
            return None
        found[match["name"]] = max(found.get(match["name"], 0), int(match["count"] or 1))
    return found
