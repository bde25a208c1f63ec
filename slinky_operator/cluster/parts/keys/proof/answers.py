"""What daemons have proven about a key set of auth/slurm, and what their answers prove. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from slinky_operator.reconcile.text import cut
from slinky_operator.slurm.connection.key_proof import Answer, KeySet, Verdict

NOT_ASKED: Final = "has not been asked yet"

_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class KeyFinding:
    """What one daemon has proven about a key set."""

    at: float
    """Monotonic seconds."""

    lacks: str = ""
    """What shows that it does not have the set, or why that is not known; empty if it has it."""

    outdated: bool = False
    """Whether it has shown to run with another set, which a reconfigure may end."""


@dataclass(frozen=True, slots=True)
class KeyProof:
    """Which daemons have proven to have a key set of auth/slurm."""

    set: str
    """Which set, without its keys."""

    since: datetime
    """Since when they are asked."""

    asked: float
    """Monotonic seconds of the last round."""

    rounds: int = 1
    found: Mapping[str, KeyFinding] = field(default_factory=dict)
    """By `Holder.id`."""


def finding(key_set: KeySet, answers: Mapping[str, Answer], at: float) -> KeyFinding:
    """What the answers of one daemon prove.

    Parameters
    ----------
    answers
        To each key of the set, by id.
    at
        Monotonic seconds.
    """
    for one in key_set.live:
        answer = answers[one.kid]
        if answer.verdict is Verdict.UNKNOWN:
            return KeyFinding(at, f"cannot be asked: {cut(answer.why, 100)}")
        if answer.verdict is not Verdict.ACCEPTED:
            return KeyFinding(at, f"does not have key {cut(one.kid, _SHOWN)}", outdated=True)
        if answer.signs_with not in {"", key_set.default}:
            return KeyFinding(at, f"signs with key {cut(answer.signs_with, _SHOWN)}", outdated=True)
    for one in key_set.expired:
        if answers[one.kid].verdict is Verdict.ACCEPTED:
            return KeyFinding(at, f"still takes key {cut(one.kid, _SHOWN)}, which has expired", outdated=True)
        if answers[one.kid].verdict is Verdict.UNKNOWN:
            return KeyFinding(at, f"cannot be asked: {cut(answers[one.kid].why, 100)}")
    return KeyFinding(at)
