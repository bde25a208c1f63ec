"""Events about a Cluster: which changes of conditions are reported. Pure.

An Event is emitted when status or reason of a condition change, so that neither a pass nor a restart of the operator
repeats one. That something starts, connects or is applied is no Event. One reason is reported once, however many
conditions have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from slinky_api.conditions import ClusterCondition, Reason
from slinky_api.v1alpha1.cluster.status import ClusterStatus
from slinky_api.v1alpha1.common import Condition
from slinky_operator.cluster.actions import EmitEvent
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import ON_ITS_WAY
from slinky_operator.kube.events import EventType

_SILENT: Final = frozenset(
    {
        Reason.ACCOUNTS_PENDING,
        Reason.CONFIG_PENDING,
        Reason.CONNECTING,
        Reason.DAEMONS_STARTING,
        Reason.DELETING,
        Reason.RESERVATION_PENDING,
    }
)
"""What ends within seconds without action, or is reported elsewhere."""

_TOLD_ELSEWHERE: Final = frozenset({Reason.CONFIG_REFUSED, Reason.CONFIG_UNTRIED, Reason.NODES_WITHOUT_ADDRESS})
"""Reasons of `Degraded` that are reported on NodeSets, or in Events of their own."""

UNREPORTED: Final[Mapping[ClusterCondition, str]] = {
    ClusterCondition.API_REACHABLE: "Ready has its reason and is reported",
    ClusterCondition.TOKEN_VALID: "Ready has its reason and is reported",
    ClusterCondition.CONTROLLER_UP: "Ready has its reason and is reported",
    ClusterCondition.PROGRESSING: "it needs nobody, and what it ends in is reported",
    ClusterCondition.IN_MAINTENANCE: "begin and end of each window have Events of their own",
}
"""Conditions without Events, and why; all others are reported."""


def of_conditions(snapshot: Snapshot, wanted: ClusterStatus) -> list[EmitEvent]:
    """Report conditions that change."""
    before = {one.type: one for one in snapshot.cluster.status.conditions}
    new = {one.type: one for one in wanted.conditions}
    told: list[EmitEvent] = []
    said: set[str] = set()
    for kind in ClusterCondition:
        one, old = new.get(kind), before.get(kind)
        if one is None or kind in UNREPORTED or one.reason in _SILENT:
            continue
        if one.reason != Reason.AS_EXPECTED and (one.reason in said or _is_told(kind, one)):
            continue
        said.add(one.reason)
        if old is None or (old.status, old.reason) != (one.status, one.reason):
            told += _event(snapshot, kind, one, old)
    return told


def _is_told(kind: ClusterCondition, one: Condition) -> bool:
    if kind is ClusterCondition.NODES_OUT_OF_SERVICE:
        # A drain by an administrator is no news to them.
        return one.status != "True" or one.reason == Reason.FOREIGN_DRAIN
    return kind is ClusterCondition.DEGRADED and one.reason in _TOLD_ELSEWHERE


def _event(snapshot: Snapshot, kind: ClusterCondition, one: Condition, old: Condition | None) -> Iterable[EmitEvent]:
    good = one.reason == Reason.AS_EXPECTED
    if good and kind in {ClusterCondition.DEGRADED, ClusterCondition.NODES_OUT_OF_SERVICE}:
        # The end of what was wrong shows in the other two, or was reported with its beginning.
        return
    if good and kind is ClusterCondition.CONFIG_APPLIED and old is not None and old.status == one.status:
        return
    if kind is ClusterCondition.ACCOUNTS_APPLIED and one.status != "False":
        # Changes have Events of their own, and AccountingReady says why slurmdbd is away.
        return
    normal = good or one.reason in ON_ITS_WAY
    words = one.message or f"{one.type} is {one.status}"
    severity = EventType.NORMAL if normal else EventType.WARNING
    yield EmitEvent(snapshot.raw, severity, kind if good else one.reason, words, with_status=True)
