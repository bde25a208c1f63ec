"""What happened in a round, as a person reads it: time, step, what was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from tests.campaign.plan import Plan
from tests.campaign.verdict import Finding
from tests.campaign.witness import Seen

LONGEST: Final = 200
"""Characters of what was done, and of what was said."""


def told(plan: Plan, seen: Seen, findings: Sequence[Finding]) -> str:
    """The whole story, by time, with the way to play it again."""
    begun = min((one.at for one in seen.happened), default=0.0)
    entries = [*_steps(seen), *_jobs(seen), *((one.at, f"!! {one}") for one in findings if one.at)]
    lines = [f"{at - begun:7.1f} s  {text}" for at, text in sorted(entries)]
    numbers = ",".join(str(one.number) for one in plan.steps)
    return "\n".join(
        [
            f"Seed {plan.seed}, {plan.seconds:.0f} s, begun at {datetime.fromtimestamp(begun, UTC):%H:%M:%S} UTC",
            *lines,
            *(f"  !! {one}" for one in findings),
            f"Again: python -m tests.campaign --seed {plan.seed} --seconds {plan.seconds:.0f} --only {numbers}",
        ]
    )


def _steps(seen: Seen) -> Iterator[tuple[float, str]]:
    for one in seen.happened:
        lasted = f" for {one.until - one.at:.1f} s" if one.until - one.at > 1 else ""
        number = f"[{one.number}] " if one.number else ""
        yield one.at, f"{number}{one.what[:LONGEST]}{lasted}: {' '.join(one.said.split())[:LONGEST]}"


def _jobs(seen: Seen) -> Iterator[tuple[float, str]]:
    for mark, lines in seen.lines.items():
        for one in lines:
            task = "" if one.task == "-" else f"_{one.task}"
            again = f" (attempt {one.restarts})" if one.restarts else ""
            yield one.at, f"  job {one.job}{task} {one.what}s on {one.node}{again}: {mark}"
