"""Mutants that take away what jobs use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_operator.cluster.rollout.config import manual_changes, writing
from slinky_operator.cluster.rollout.in_use import answer, licenses, removals, static_nodes
from slinky_operator.cluster.rollout.in_use.parameters import KeptKeys
from slinky_operator.cluster.rollout.in_use.removals import Kept, Use
from slinky_operator.cluster.rollout.slurm_questions import UseQuestion


def partitions_go_at_once(patch: pytest.MonkeyPatch) -> None:
    """A partition goes without being closed first."""
    patch.setattr(removals, "_partitions", lambda *_, **__: ([], False))


def silence_is_nobody(patch: pytest.MonkeyPatch) -> None:
    """No answer of Slurm means that no job is there."""
    real = removals.keep

    def keep(running: Any, wanted: Any, use: Use | None, *rest: Any, **more: Any) -> Kept:
        return real(running, wanted, use if use is not None and not use.why else Use(0.0, ""), *rest, **more)

    patch.setattr(removals, "keep", keep)


def old_answers_count(patch: pytest.MonkeyPatch) -> None:
    """What Slurm said of an earlier configuration counts for this one."""
    patch.setattr(answer, "use", lambda snapshot, _: snapshot.memory.answers.of(UseQuestion))


def no_second_question(patch: pytest.MonkeyPatch) -> None:
    """What is removed is not checked once more right before the write."""
    patch.setattr(writing, "is_fresh", lambda *_: True)


def keys_go_at_once(patch: pytest.MonkeyPatch) -> None:
    """A key of slurm.conf that jobs need changes under them."""
    patch.setattr(removals, "keys_that_stay", lambda *_: KeptKeys())


def nodes_go_at_once(patch: pytest.MonkeyPatch) -> None:
    """Lines of nodes outside Kubernetes go while jobs are on them."""
    patch.setattr(static_nodes, "lines_that_stay", lambda *_: [])


def licenses_go_at_once(patch: pytest.MonkeyPatch) -> None:
    """A license goes that a pending job asks for."""
    patch.setattr(licenses, "licenses_that_stay", lambda *_: {})


def reservations_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """A partition goes that a reservation is in."""
    real = removals._partitions

    def partitions(old: Any, new: Any, use: Use | None, *rest: Any, **more: Any) -> Any:
        return real(old, new, None if use is None else replace(use, reservations=()), *rest, **more)

    patch.setattr(removals, "_partitions", partitions)


def opened_by_hand_goes(patch: pytest.MonkeyPatch) -> None:
    """A partition goes that an administrator has opened again."""
    real = removals._partitions

    def partitions(old: Any, new: Any, use: Use | None, *rest: Any, **more: Any) -> Any:
        return real(old, new, None if use is None else replace(use, states={}), *rest, **more)

    patch.setattr(removals, "_partitions", partitions)


def states_set_by_hand_are_lost(patch: pytest.MonkeyPatch) -> None:
    """A partition that an administrator has closed is opened by the next change."""
    patch.setattr(manual_changes, "known", lambda *_, **__: None)
    patch.setattr(manual_changes, "unasked", lambda *_, **__: ("", ()))
