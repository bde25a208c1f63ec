"""Conditions of a Cluster, without their times. Pure.

`Ready` means one thing: Slurm serves. slurmrestd answers, accepts the operator's token, and reaches slurmctld. What
keeps a Cluster from its spec while Slurm serves is shown by `ConfigApplied` and `Degraded`, and what needs nobody's
help by `Progressing`.

True conditions are kept until there is a first answer: an operator that has just started, or connects with another
token, knows nothing yet, and a Cluster must not seem to have been unreachable because of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from slinky_api.conditions import ClusterCondition, Reason
from slinky_api.v1alpha1.common import Condition
from slinky_operator.cluster.part import ON_ITS_WAY, Shown, Word
from slinky_operator.cluster.status.answers import Answers
from slinky_operator.runtime.printable import printable_lines

LONGEST: Final = 32_768
"""Characters of a message that the API server takes."""

SERVES: Final = "slurmctld and slurmrestd answer"

CONTACT: Final = (ClusterCondition.API_REACHABLE, ClusterCondition.TOKEN_VALID, ClusterCondition.CONTROLLER_UP)
"""The conditions that `Ready` depends on."""

AHEAD: Final = (Reason.DELETING, Reason.UPGRADING)
"""What is shown before anything else that is in progress."""


def conditions_of(answers: Answers, without_effect: str, *, starting: bool) -> list[Condition]:
    """All conditions of a Cluster.

    Parameters
    ----------
    without_effect
        Which fields of the spec have no effect; empty if all have.
    starting
        Whether the daemons have never answered yet.
    """
    ready = _ready(answers, starting=starting)
    return [
        *_of_parts(answers),
        condition(ClusterCondition.READY, *ready),
        condition(ClusterCondition.PROGRESSING, *_progressing(ready, answers)),
        condition(ClusterCondition.DEGRADED, *_degraded(ready, answers, without_effect)),
    ]


def condition(kind: ClusterCondition, status: Word, reason: Reason, message: str = "") -> Condition:
    """A condition without a time."""
    return Condition(
        type=str(kind), status=status, reason=str(reason), message=printable_lines(message[:LONGEST])[:LONGEST]
    )


def _of_parts(answers: Answers) -> Iterator[Condition]:
    """Each with what explains it, as the state of a daemon's pod does, before its message."""
    for kind, (status, reason, message) in answers.shown.items():
        because = () if status == "True" else answers.because[kind]
        yield condition(kind, status, reason, "; ".join(filter(None, (*because, message))))


# Whether Slurm serves


def _ready(answers: Answers, *, starting: bool) -> Shown:
    """Whether Slurm serves; if not, a known cause comes before mere symptoms."""
    # A known fault explains what cannot be known.
    ordered = (ClusterCondition.TOKEN_VALID, *CONTACT)
    seen = next((one for word in ("False", "Unknown") for one in ordered if answers.shown[one][0] == word), None)
    if seen is None:
        return "True", Reason.AS_EXPECTED, SERVES
    return "False", *_cause(seen, answers, starting=starting)


def _cause(seen: ClusterCondition, answers: Answers, *, starting: bool) -> tuple[Reason, str]:
    """Why Slurm does not serve."""
    _, reason, message = answers.shown[seen]
    words, refused = f"{seen}: {message}", _refused(answers)
    if answers.blockers:
        return answers.blockers[0][0], "; ".join(why for _, why in answers.blockers)
    if refused is not None:
        words = f"{words}; {ClusterCondition.CONFIG_APPLIED}: {refused[1]}"
    if answers.stuck:
        words = f"{'; '.join(map(str, answers.stuck))}; {words}"
        return Reason.DAEMON_STUCK if starting or reason in ON_ITS_WAY else reason, words
    if starting and refused is not None:
        return refused
    if starting:
        return Reason.DAEMONS_STARTING, f"the daemons are starting; {words}"
    return reason, words


def _refused(answers: Answers) -> tuple[Reason, str] | None:
    """Why the configuration cannot be applied without somebody's help."""
    found = answers.shown.get(ClusterCondition.CONFIG_APPLIED)
    if found is None or found[0] == "True" or found[1] in ON_ITS_WAY:
        return None
    return found[1:]


# What is in progress, and what needs help


def _progressing(ready: Shown, answers: Answers) -> Shown:
    known: Sequence[tuple[Reason, str]] = answers.ongoing
    if ready[0] != "True" and ready[1] in ON_ITS_WAY:
        known = (ready[1:], *known)
    first = min(known, key=lambda one: AHEAD.index(one[0]) if one[0] in AHEAD else len(AHEAD), default=None)
    return ("False", Reason.AS_EXPECTED, "") if first is None else ("True", *first)


def _degraded(ready: Shown, answers: Answers, without_effect: str) -> Shown:
    """What needs somebody's help, the worst first."""
    found: list[tuple[Reason, str]] = []
    serves = ready[0] == "True"
    if not serves and ready[1] not in ON_ITS_WAY:
        found.append(ready[1:])
    found += [(one.reason, one.message) for one in answers.problems]
    if serves:
        found += [(Reason.DAEMON_STUCK, str(one)) for one in answers.stuck if not one.passing]
    found += [(Reason.NOT_SUPPORTED, without_effect)] if without_effect else []
    if not found:
        return "False", Reason.AS_EXPECTED, ""
    # A text that is part of an earlier one is not repeated.
    said: list[str] = []
    for _, words in found:
        if not any(words in earlier for earlier in said):
            said.append(words)
    return "True", found[0][0], "; ".join(said)
