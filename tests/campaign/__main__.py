"""``make campaign``: rounds of real jobs, users and faults from seeds, on a local Kubernetes with real Slurm.

Prints a line for each round, and the whole story of one in which something was wrong. The exit code is the number of
such rounds.
"""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from hack.localkube.errors import LocalKubeError
from hack.machine import neutral_start
from hack.machine.progress import say
from tests.campaign import costs
from tests.campaign.plan import Plan, has_other_node, has_upgrade, make
from tests.campaign.run import BOUND, Round
from tests.campaign.shrink import shrink
from tests.campaign.site.site import NAME, Site
from tests.campaign.sites import names, side_by_side
from tests.campaign.story import told
from tests.campaign.verdict import MET_NOTHING, Finding, judge
from tests.support.slurm_in_kubernetes import NEWEST, OLDER

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


class Player:
    """Plays rounds one after the other.

    A site that was clean after a round is the next one's, too. A new one is made after a finding about it, after one in
    which a Node was lost for good, after a number of rounds, and for an upgrade of Slurm, which needs an older release
    to begin with.

    Parameters
    ----------
    name
        Of the local Kubernetes.
    stories
        Folder for stories and logs, if they are kept.
    rounds
        File that gets a line for each round, if there is one: seed, seconds, steps, jobs, and kinds of findings.
    fresh
        Rounds that a site lasts at most.
    """

    def __init__(self, name: str, stories: Path | None, rounds: Path | None, fresh: int) -> None:
        self._name = name
        self._stories = stories
        self._list = rounds
        self._fresh = fresh
        self._run = secrets.token_hex(2)
        self._rounds = 0
        self._site: Site | None = None
        self._left = 0
        """Rounds that the site lasts."""
        self._before: costs.Cost | None = None

    def fails_alike(self, kinds: Collection[str], plan: Plan) -> bool:
        """Whether a plan has a finding of one of these kinds."""
        return any(one.what in kinds for one in self.play(plan))

    def play(self, plan: Plan) -> list[Finding]:
        """Play one round, and say what was wrong."""
        site = self._ready(plan)
        self._rounds += 1
        self._left -= 1
        began = time.monotonic()
        one = Round(site, plan, f"c{self._run}-{self._rounds}-", self._before)
        try:
            seen = one.play()
        except (LocalKubeError, OSError, ValueError, KeyError) as error:
            self._left = 0
            say(f"  FAIL seed {plan.seed}: nobody could look after the round: {error}")
            findings = [Finding("no look", "site", str(error))]
            self._note(plan, 0, time.monotonic() - began, findings)
            return findings
        self._before = self._before or one.cost
        findings = judge(seen)
        story = told(plan, seen, findings)
        if self._stories:
            self._stories.mkdir(parents=True, exist_ok=True)
            (self._stories / f"seed-{plan.seed}-{self._rounds}.txt").write_text(f"{story}\n")
            if findings:
                (self._stories / f"seed-{plan.seed}-{self._rounds}.log").write_text(site.logs())
        seconds = time.monotonic() - began
        self._note(plan, len(seen.asked), seconds, findings)
        counts = f"{len(plan.steps)} steps, {len(seen.asked)} jobs, {seconds:.0f} s"
        say(f"  {'FAIL' if findings else 'ok  '} seed {plan.seed}: {counts}, {one.cost}")
        say(f"  ...  {one.calls}")
        if has_other_node(plan) or any(one.what != MET_NOTHING for one in findings):
            self._left = 0
        if findings:
            say(story)
            try:
                say(site.slurm.describe())
            except (LocalKubeError, OSError) as error:
                say(str(error))
        return findings

    def _note(self, plan: Plan, jobs: int, seconds: float, findings: Sequence[Finding]) -> None:
        if self._list is not None:
            kinds = ", ".join(sorted({one.what for one in findings})) or "none"
            words = (plan.seed, f"{seconds:.0f}", len(plan.steps), jobs, kinds, f"{datetime.now(UTC):%H:%M:%S}")
            with self._list.open("a") as file:
                file.write("\t".join(map(str, words)) + "\n")

    def down(self) -> None:
        """Leave nothing behind."""
        if self._site is not None:
            self._site.down()
            self._site = None

    def _ready(self, plan: Plan) -> Site:
        """A site that is at rest, and has a release of Slurm from which the plan can begin."""
        if self._site is not None and self._left > 0 and not (has_upgrade(plan) and self._site.slurm.slurm == NEWEST):
            return self._site
        self.down()
        began = time.monotonic()
        site = self._site = Site.of(self._name, OLDER if has_upgrade(plan) else NEWEST)
        site.up(BOUND)
        self._left, self._before = self._fresh, None
        say(f"  ok   the site {self._name!r} is new, with Slurm {site.slurm.slurm} ({time.monotonic() - began:.0f} s)")
        return site


if __name__ == "__main__":
    neutral_start.begin()
    sys.exit(main())
