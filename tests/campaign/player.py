"""Plays rounds one after the other, at one site that is made again where that must be.

What a round does is left to :mod:`tests.campaign.run`, what is wrong in it to :mod:`tests.campaign.verdict`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hack.localkube.errors import LocalKubeError
from hack.machine.progress import say
from tests.campaign import costs
from tests.campaign.plan import Plan, has_other_node, has_upgrade
from tests.campaign.run import BOUND, Round
from tests.campaign.site.site import Site
from tests.campaign.story import told
from tests.campaign.verdict import MET_NOTHING, Finding, judge
from tests.support.slurm_in_kubernetes import NEWEST, OLDER


class Player:
    """Plays rounds one after the other.

    What an earlier run has left of its site is ended first. A site that was clean after a round is the next one's, too.
    A new one is made after a finding about it, after one in which a Node was lost for good, after a number of rounds,
    and for an upgrade of Slurm, which needs an older release to begin with.

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

    def confirmed(self, plan: Plan) -> list[Finding]:
        """Play one round, and once more where something was wrong, at a new site; what was wrong both times.

        A fault that has met nothing says something of this machine, and nothing of the operator. So may what does not
        come again: its story is printed, for somebody to read.
        """
        first = {one.what for one in self.play(plan)} - {MET_NOTHING}
        if not first:
            return []
        found = [one for one in self.play(plan) if one.what in first]
        if not found:
            say(f"  ...  seed {plan.seed}: {', '.join(sorted(first))} did not come again")
        return found

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
        site.down()
        site.up(BOUND)
        self._left, self._before = self._fresh, None
        say(f"  ok   the site {self._name!r} is new, with Slurm {site.slurm.slurm} ({time.monotonic() - began:.0f} s)")
        return site
