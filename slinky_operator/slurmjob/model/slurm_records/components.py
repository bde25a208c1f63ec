"""The components of a heterogeneous job as one: it runs once all of them do, and is over once one of them is. Pure.

Slurm starts components together. It may end one of them alone: when a user cancels that one, or a node of it goes down.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from slinky_operator.jobs.phases import Phase, Reason, Shown

_ORDER: Final = (Phase.PENDING, Phase.ENDING, Phase.SUSPENDED, Phase.UNKNOWN, Phase.RUNNING)
"""Of components in different phases, the first of these is that of the whole."""

_LAST: Final = datetime.max.replace(tzinfo=UTC)


def whole(parts: Sequence[tuple[datetime | None, Shown]]) -> tuple[Shown, Shown | None]:
    """The state of the whole, and the end of a component that others have outlived.

    Parameters
    ----------
    parts
        When each ends or has ended, and its state.
    """
    over = [(end or _LAST, one) for end, one in parts if one.is_finished]
    going = [one for _, one in parts if not one.is_finished]
    # What is cancelled after another has ended was cancelled because of that.
    ends = sorted(
        over, key=lambda part: (part[1].phase is not Phase.FAILED, part[1].reason is Reason.CANCELLED, part[0])
    )
    if not going:
        return ends[0][1], None
    return min(going, key=lambda one: _ORDER.index(one.phase)), ends[0][1] if ends else None
