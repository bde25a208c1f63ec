"""Mutants that load files too early, too often, or take for live what slurmctld does not run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.cluster.daemons import shared_objects
from slinky_operator.cluster.rollout import plan
from slinky_operator.cluster.rollout.config import addresses, loading, membership, settling, writing
from slinky_operator.cluster.rollout.config.candidate import Candidate, Step
from slinky_operator.cluster.rollout.config.loading import Loading, Stage
from slinky_operator.cluster.rollout.config.stored import StoredConfig


def loads_before_the_kubelet(patch: pytest.MonkeyPatch) -> None:
    """slurmctld is reconfigured before its kubelet has mounted the files."""
    patch.setattr(loading, "_mount", lambda *_: None)


def an_old_answer_of_the_agent_counts(patch: pytest.MonkeyPatch) -> None:
    """What was mounted before the pod was touched is taken for mounted since."""
    real = loading._mount

    def mount(snapshot: Any, *rest: Any) -> Loading | None:
        rollout = snapshot.memory.rollout
        rollout = replace(rollout, touched=(rollout.touched[0], float("-inf")))
        memory = replace(snapshot.memory, rollout=rollout)
        return real(replace(snapshot, memory=memory), *rest)

    patch.setattr(loading, "_mount", mount)


def reconfigures_again(patch: pytest.MonkeyPatch) -> None:
    """A reconfigure whose outcome is not known yet is sent once more."""
    patch.setattr(loading, "_last", lambda *_: None)


def refused_text_is_live(patch: pytest.MonkeyPatch) -> None:
    """What slurmctld refuses counts as loaded."""
    real = loading.loading

    def look(*args: Any) -> Loading:
        found = real(*args)
        return replace(found, stage=Stage.LOADED) if found.stage is Stage.REFUSED else found

    patch.setattr(loading, "loading", look)


def unproven_text_is_live(patch: pytest.MonkeyPatch) -> None:
    """What is mounted counts as loaded."""
    patch.setattr(loading, "_load", lambda *_: Loading(Stage.LOADED))


def refused_text_stays(patch: pytest.MonkeyPatch) -> None:
    """The last good text is put back without a mark which one was refused."""
    patch.setattr(shared_objects, "marked_refused", lambda body, *_: body)


def refused_text_is_tried_at_once(patch: pytest.MonkeyPatch) -> None:
    """A text that slurmctld has refused is tried again and again."""
    patch.setattr(writing, "TRY_REFUSED", timedelta(0))


def one_end_is_a_refusal(patch: pytest.MonkeyPatch) -> None:
    """A slurmctld that has ended once, for whatever cause, has refused its files."""
    patch.setattr(loading, "_waits_to_restart", lambda _: True)


def texts_of_others_are_ours(patch: pytest.MonkeyPatch) -> None:
    """What somebody has written into the ConfigMap counts as the operator's own."""
    patch.setattr(shared_objects, "intact", lambda config_map: config_map)


def names_of_no_node_are_live(patch: pytest.MonkeyPatch) -> None:
    """Nodes without an address are written as the spec says."""
    real = addresses.addresses
    patch.setattr(addresses, "addresses", lambda *given, **more: replace(real(*given, **more), future=frozenset()))


def released_before_it_is_out(patch: pytest.MonkeyPatch) -> None:
    """A NodeSet that goes is released although the live configuration contains it."""
    real = membership.leaving
    patch.setattr(membership, "leaving", lambda snapshot, rendered: real(snapshot, replace(rendered, node_sets=())))


def good_before_it_is_proven(patch: pytest.MonkeyPatch) -> None:
    """A text is kept as the last good one as soon as it is written."""
    real = settling.settle

    def early(one: Candidate) -> Step:
        return real(replace(one, load=Loading(Stage.LOADED)))

    patch.setattr(plan, "settle", early)


def nothing_ever_ran(patch: pytest.MonkeyPatch) -> None:
    """Every text is written as for a Cluster whose slurmctld has never run."""
    patch.setattr(StoredConfig, "never_ran", lambda *_: True)
