"""Mutants that replace nodes for the health of their Kubernetes Nodes wrongly, or too often."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.health import Health, Replace
from slinky_operator.nodeset.drain import drain_causes
from slinky_operator.nodeset.health import choice, replacement
from slinky_operator.nodeset.health.choice import HealthChoice
from slinky_operator.nodeset.health.replacement import ReplacementChoice
from slinky_operator.nodeset.health.rules import Verdict
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes.drains import Cause


def drains_of_others_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Who has drained a node is not looked up again before its pod is deleted."""
    patch.setattr(replacement, "why_kept", pod_state.why_kept)


def jobs_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Nor is what runs there."""
    patch.setattr(replacement, "why_kept", lambda *_: None)


def _choosing(patch: pytest.MonkeyPatch, change: Any) -> None:
    real = replacement.choose

    def choose(snapshot: Any, live: Any, health: HealthChoice, states: Any, causes: Any, now: Any) -> ReplacementChoice:
        found: ReplacementChoice = change(snapshot, real(snapshot, live, health, states, causes, now))
        return found

    patch.setattr(replacement, "choose", choose)


def begun_before_it_is_counted(patch: pytest.MonkeyPatch) -> None:
    """A try is made in the pass that counts it."""

    def change(snapshot: Any, found: ReplacementChoice) -> ReplacementChoice:
        uids = {one.pod_uid for one in found.records}
        return replace(found, pods=tuple(pod for pod in snapshot.pods if pod.uid in uids and not pod.deleting))

    _choosing(patch, change)


def tries_not_counted(patch: pytest.MonkeyPatch) -> None:
    """Each try is the first."""

    def change(_: Any, found: ReplacementChoice) -> ReplacementChoice:
        return replace(found, records=tuple(one.model_copy(update={"tries": 1}) for one in found.records))

    _choosing(patch, change)


def _spec(patch: pytest.MonkeyPatch, **given: Any) -> None:
    real: Any = Health.replaces.fget  # type: ignore[attr-defined]

    def replaces(self: Health) -> Replace | None:
        found: Replace | None = real(self)
        return found.model_copy(update=given) if found is not None else None

    patch.setattr(Health, "replaces", property(replaces))


def no_pause(patch: pytest.MonkeyPatch) -> None:
    """The next try begins as soon as the last one was in vain."""
    _spec(patch, backoff_seconds=0)


def no_end(patch: pytest.MonkeyPatch) -> None:
    """Tries go on for ever."""
    _spec(patch, max_tries=100)


def all_at_once(patch: pytest.MonkeyPatch) -> None:
    """All that are drained are replaced together."""
    _spec(patch, max_concurrent=100)


def absent_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """The budget has room for another node as soon as the pod of one is deleted."""
    patch.setattr(replacement, "absent", lambda *_: frozenset())


def well_ones_too(patch: pytest.MonkeyPatch) -> None:
    """What is drained is replaced, whether its Node is bad still or not."""
    real = choice.choose

    def choose(*given: Any) -> HealthChoice:
        found = real(*given)
        return replace(found, bad={**dict.fromkeys(found.drained, Verdict()), **found.bad})

    patch.setattr(choice, "choose", choose)


def boots_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A machine that starts again and again is well after each start."""
    patch.setattr(choice, "QUIET", timedelta(0))


def any_boot(patch: pytest.MonkeyPatch) -> None:
    """A machine that has started before its node was drained counts as one that has since."""
    patch.setattr(choice, "_is_older_than_boot", lambda _, host: host.booted_at is not None)


def requests_overlooked(patch: pytest.MonkeyPatch) -> None:
    """What NVSentinel asks for means nothing to Slurm."""
    patch.setattr(Snapshot, "drain_request_of", lambda *_: None)


def requests_outlived(patch: pytest.MonkeyPatch) -> None:
    """A node that was drained for a request stays so."""
    real = drain_causes.cordons

    def cordons(snapshot: Snapshot, member: Member) -> frozenset[Cause]:
        stays = Cause.DRAIN_REQUEST in member.drained_for
        return real(snapshot, member) | ({Cause.DRAIN_REQUEST} if stays else frozenset())

    patch.setattr(drain_causes, "cordons", cordons)
