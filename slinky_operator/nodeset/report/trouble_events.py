"""Which troubles are reported in Events: each when it begins, and when it affects further pods; never once per pass.

What has been reported is remembered by the process only. After a start of the operator it is read from the stored
condition: what has been there since before the start is not reported again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from slinky_api.conditions import NodeSetCondition, find
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.report.troubles import EVENTFUL, Trouble
from slinky_operator.reconcile.text import LONGEST_LIST

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
"""A word that may be the name of a pod or a node."""


def due(memory: Memory, stored: NodeSetStatus, troubles: Sequence[Trouble]) -> list[Trouble]:
    """The troubles an Event is due for; they are then recorded as reported.

    Parameters
    ----------
    memory
        What is remembered of the NodeSet.
    stored
        Its status before this pass.
    troubles
        What this pass has found.
    """
    before = memory.announced if memory.announced is not None else _told_before(stored, troubles)
    memory.announced = {trouble.reason: trouble.names for trouble in troubles}
    return [
        trouble
        for trouble in troubles
        if trouble.reason in EVENTFUL and (trouble.reason not in before or not trouble.names <= before[trouble.reason])
    ]


def _told_before(stored: NodeSetStatus, troubles: Sequence[Trouble]) -> Mapping[str, frozenset[str]]:
    degraded = find(stored.conditions, NodeSetCondition.DEGRADED)
    if degraded is None or degraded.status != "True" or not troubles or degraded.reason != troubles[0].reason:
        return {}
    named = frozenset(_NAME.findall(degraded.message))
    # Of many, only the first are named.
    return {
        trouble.reason: trouble.names if len(trouble.names) > LONGEST_LIST else trouble.names & named
        for trouble in troubles
    }
