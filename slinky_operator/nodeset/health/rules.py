"""What the rules of a NodeSet say of one Kubernetes Node, by its conditions.

A Node is bad if a condition has had the status of its rule for `forSeconds`, and well if none has for `clearSeconds`.
Between the two nothing changes: no drain begins, and none ends. A condition with the status Unknown proves nothing
either; one that the Node has no more is as good as one that does not match.

Times are those of the conditions (`lastTransitionTime`), so that neither a restart of the operator nor a late event
starts a wait again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from slinky_api.v1alpha1.nodeset.health import KNOWN_CONDITIONS, NodeConditionRule
from slinky_operator.nodeset.model import kubernetes_nodes
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode, NodeCondition

UNKNOWN: Final = "Unknown"

EVER: Final = datetime.min.replace(tzinfo=UTC)
"""Stands for a time that is not known."""


@dataclass(frozen=True, slots=True)
class Match:
    """A condition that has matched its rule for long enough."""

    type: str
    since: datetime | None
    """Since when it matches; None if that is not known."""
    words: str
    """What it says, on one line; at most `kubernetes_nodes.LONGEST_REASON` characters."""
    is_check: bool = False
    """Whether a check on the node says so, and not a condition of its Kubernetes Node."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rules say of a Node."""

    matches: tuple[Match, ...] = ()
    """Why it is bad, the oldest first; none if it is not bad."""
    is_well: bool = False
    """Whether a drain for its health ends."""
    bad_in: float | None = None
    """Seconds until it is bad if nothing changes; None if it will not be, or a condition has matched already."""
    well_in: float | None = None
    """Seconds until it is well if nothing changes; None if it is, or will not be."""

    @property
    def since(self) -> datetime | None:
        """Since when it is bad, by the oldest match; None if it is not bad, or that is not known."""
        return self.matches[0].since if self.matches else None

    @property
    def words(self) -> str:
        """All matches on one line."""
        return kubernetes_nodes.one_line("; ".join(one.words for one in self.matches))


def judge(host: KubernetesNode, rules: Mapping[str, NodeConditionRule], clear_seconds: int, now: datetime) -> Verdict:
    """Judge a Node.

    Parameters
    ----------
    host
        The Node.
    rules
        The rules, by type of the condition.
    clear_seconds
        Seconds for which no condition may have matched.
    now
        The time; timezone-aware.
    """
    matches: list[Match] = []
    bad_in: list[float] = []
    well_in: list[float] = []
    is_clear = True
    for condition in host.conditions:
        rule = rules.get(condition.type)
        if rule is None:
            continue
        age = _age(condition, now)
        if condition.status == rule.status:
            is_clear = False
            if age is None or age >= rule.for_seconds:
                matches.append(_match(condition, rule))
            else:
                bad_in.append(rule.for_seconds - age)
        elif condition.status == UNKNOWN:
            is_clear = False
        elif age is not None and age < clear_seconds:
            well_in.append(clear_seconds - age)
    matches.sort(key=lambda one: (one.since or EVER, one.type))
    return Verdict(
        tuple(matches),
        is_well=is_clear and not well_in,
        bad_in=None if matches else min(bad_in, default=None),
        well_in=max(well_in, default=None) if is_clear else None,
    )


def types_read(health: Mapping[str, Any]) -> frozenset[str]:
    """Types of conditions that `spec.health` has rules for; of an object as it is stored."""
    rules = health.get("nodeConditions") or ()
    given = {str(one.get("type")) for one in rules if isinstance(one, Mapping)}
    return frozenset(given.union(KNOWN_CONDITIONS if health.get("defaults") else ()))


def _age(condition: NodeCondition, now: datetime) -> float | None:
    """Seconds for which a condition has had its status; None if since ever, for all that is known."""
    since = condition.since
    return max(0.0, (now - since).total_seconds()) if since is not None else None


def _match(condition: NodeCondition, rule: NodeConditionRule) -> Match:
    told = condition.message or condition.reason
    words = rule.reason or (f"{condition.type}: {told}" if told else condition.type)
    return Match(condition.type, condition.since, kubernetes_nodes.one_line(words))
