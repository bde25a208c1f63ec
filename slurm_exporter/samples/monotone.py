"""Counters that never go back.

slurmctld sets its counters to zero at midnight, at `sdiag --reset` and when it starts. Prometheus would take that for a
restart of the exporter and, after a real one, count a whole day again. So only increases are added up: a counter is
zero when it is first seen, and rates are right from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from slurm_exporter.samples.family import Labels


class Monotone:
    """One counter per labels.

    Parameters
    ----------
    limit
        Most labels that are remembered; further ones are not counted.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._since: datetime | None = None
        self._last: dict[Labels, float] = {}
        self._totals: dict[Labels, float] = {}
        self._seen = False

    def update(self, values: Mapping[Labels, float], since: datetime | None) -> None:
        """Take in what Slurm counted.

        Parameters
        ----------
        values
            Slurm's counters since `since`; one that is missing stays as it was.
        since
            When Slurm last set them to zero. A counter that went back is taken as set to zero too.
        """
        is_reset = self._seen and since != self._since
        if is_reset:
            self._last.clear()
        for labels, value in values.items():
            if labels not in self._totals and len(self._totals) >= self._limit:
                continue
            # What is new since the last look began at zero; at the first look nobody knows when it began.
            before = self._last.get(labels, 0.0 if self._seen else value)
            growth = value - before if value >= before else value
            self._totals[labels] = self._totals.get(labels, 0.0) + growth
            self._last[labels] = value
        self._since = since
        self._seen = True

    @property
    def totals(self) -> Mapping[Labels, float]:
        """Increases since each was first seen."""
        return self._totals
