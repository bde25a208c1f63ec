"""``make campaign``: rounds of real jobs, users and faults from seeds, on a local Kubernetes with real Slurm.

Prints a line for each round, and the whole story of one in which something was wrong. The exit code is the number of
such rounds.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from hack.machine import neutral_start
from hack.machine.progress import say
from tests.campaign.plan import Plan, make
from tests.campaign.player import Player
from tests.campaign.shrink import shrink
from tests.campaign.site.site import NAME
from tests.campaign.sites import names, side_by_side

TRIALS: Final = 8
"""Rounds that shrinking plays at most."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__)
    parser.add_argument("--seed", type=int, action="append", default=[], help="play this one; may be repeated")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from --from on, where none is named")
    parser.add_argument("--from", type=int, default=1, dest="first", help="the first of them")
    parser.add_argument("--minutes", type=float, help="begin no round after that")
    parser.add_argument("--seconds", type=float, default=90, help="length of a round, without its end")
    parser.add_argument("--only", type=_numbers, help="only these steps of it: 3,7,12")
    parser.add_argument("--shrink", action="store_true", help="look for fewer steps that fail, too")
    parser.add_argument("--plan", action="store_true", help="print the steps, and play nothing")
    parser.add_argument("--name", default=NAME, help="of the local Kubernetes")
    parser.add_argument(
        "--sites", type=int, default=1, help="how many play side by side, each in a Kubernetes of its own"
    )
    parser.add_argument("--fresh", type=int, default=10, help="rounds that one local Kubernetes lasts at most")
    parser.add_argument("--keep", action="store_true", help="leave it up")
    parser.add_argument("--rounds", type=Path, help="file that gets a line for each round")
    parser.add_argument(
        "--stories", type=Path, help="folder for the story of every round, and the logs of those with findings"
    )
    options = parser.parse_args(arguments)
    seeds = options.seed or range(options.first, options.first + options.seeds)
    plans = [make(seed, options.seconds) for seed in seeds]
    if options.only:
        plans = [plan.only(options.only) for plan in plans]
    if options.plan:
        for plan in plans:
            say("\n".join([f"Seed {plan.seed}", *map(str, plan.steps)]))
        return 0
    # Anybody who ends it leaves no Kubernetes behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    play = partial(_play, options)
    if options.sites == 1:
        failed = play(options.name, plans)
    else:
        failed = side_by_side(names(options.name, options.sites), plans, play)
    say(f"campaign: {failed} rounds with findings")
    return failed


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(word) for word in text.split(","))


def _play(options: argparse.Namespace, name: str, plans: Iterable[Plan]) -> int:
    """Play rounds at one site; how many had findings."""
    player = Player(name, options.stories, options.rounds, options.fresh)
    began, failed = time.monotonic(), 0
    try:
        for plan in plans:
            if options.minutes and time.monotonic() - began > 60 * options.minutes:
                say(f"  ...  {options.minutes:.0f} minutes are over; seed {plan.seed} and later ones were not played")
                break
            findings = player.play(plan)
            if findings:
                failed += 1
                if options.shrink:
                    less = shrink(plan, partial(player.fails_alike, {one.what for one in findings}), TRIALS)
                    say(f"  ...  {len(less.steps)} of {len(plan.steps)} steps fail, too: {[*map(str, less.steps)]}")
    finally:
        if not options.keep:
            player.down()
    return failed


if __name__ == "__main__":
    neutral_start.begin()
    sys.exit(main())
