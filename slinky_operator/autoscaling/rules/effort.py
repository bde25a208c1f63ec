"""What one count of jobs may cost: steps and seconds in all, and steps for the jobs of each user.

Users write what is counted, and it is counted in a thread, which nobody can stop from outside. So each loop of the
rules spends steps here, and ends when they are used up. Steps do not depend on the machine; the deadline is for one
that is much slower than any that was measured. A step takes 0.1 to 8 microseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

STEPS: Final = 2_000_000
"""Steps of one count."""

SECONDS: Final = 20.0
"""Seconds of one count."""

SHARES: Final = 3
"""Where jobs of several users wait, those of one may take one part in so many: the jobs of the others are counted,
however costly the jobs of one are."""

LOOK: Final = 256
"""Steps between two looks at the clock."""


class Effort:
    """Steps that one count has left.

    Parameters
    ----------
    clock
        Monotonic seconds.
    steps, seconds
        What the count may take.
    """

    def __init__(self, clock: Callable[[], float], *, steps: int = STEPS, seconds: float = SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._until = clock() + seconds
        self._steps = steps
        self._users = 1
        self._kept_back = False
        self._used: Counter[str] = Counter()
        self._user = ""
        self._looked_at = 0
        self._late = False
        self.spent = 0
        """Steps so far."""

    def share(self, users: int) -> None:
        """Say of how many users jobs are counted."""
        self._users = max(1, min(SHARES, users))

    def keep_half(self) -> None:
        """Keep half of the steps for later: what is read is to be placed as well."""
        self._kept_back = True

    def release(self) -> None:
        """Have back what was kept."""
        self._kept_back = False

    def begin(self, user: str) -> bool:
        """Go on with a job of a user; False if nothing more may be spent for it. An empty name stands for all users."""
        self._user = user
        return not self.exhausted

    def spend(self, steps: int = 1) -> None:
        """Count what is done for the job of the user that `begin` was called with."""
        self.spent += steps
        self._used[self._user] += steps
        if self.spent - self._looked_at >= LOOK:
            self._looked_at = self.spent
            self._late = self._late or self._clock() >= self._until

    @property
    def exhausted(self) -> bool:
        """Whether nothing more may be done for this user."""
        return self._late or self._has_ended or self._has_used_its_share

    @property
    def limit(self) -> str:
        """Which limit was reached, for people; empty if none was."""
        if self._late:
            return f"the count was ended after {self._seconds:.0f} s"
        if self._has_ended:
            return f"the count was ended after {self._steps} steps"
        if self._has_used_its_share:
            return f"jobs of user {self._user} take more than {self._steps // self._users} steps to count"
        return ""

    @property
    def _has_ended(self) -> bool:
        return self.spent >= self._steps >> self._kept_back

    @property
    def _has_used_its_share(self) -> bool:
        return bool(self._user) and self._used[self._user] >= (self._steps >> self._kept_back) // self._users
