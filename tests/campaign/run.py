"""Carries a plan out, one thread for each lane, and gathers what the judge needs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from hack.localkube.errors import LocalKubeError
from hack.localkube.kubectl import KubectlFailed
from hack.machine.progress import say
from tests.campaign import calls, costs, witness
from tests.campaign.calls import Calls
from tests.campaign.faults.kind import MetNothing
from tests.campaign.faults.machines import LOSSES, lost_with
from tests.campaign.faults.table import FAULTS, mend_all
from tests.campaign.lanes import jobs, pods
from tests.campaign.lanes.actions import ACTIONS, SOON, in_slurm
from tests.campaign.lanes.upkeep import UPKEEP
from tests.campaign.plan import ACTION, ADMIN, BROKEN, JOBS, PLACED, Plan, Step
from tests.campaign.site.site import Site
from tests.campaign.verdict import forgotten
from tests.campaign.witness import OBJECT, Asked, Happened, Seen

BOUND: Final = 300.0
"""Seconds in which something must change after the last fault, until all has come to rest, jobs included."""

WAITS: Final = "waits for"
"""What a story calls that which is not at rest."""


@dataclass(slots=True)
class Round:
    """One round: the plan, and what was seen so far.

    Attributes
    ----------
    site, plan
        Where, and what is done.
    prefix
        What the marks of its jobs begin with.
    before
        What the site cost at rest before.
    """

    site: Site
    plan: Plan
    prefix: str
    before: costs.Cost | None = None
    cost: costs.Cost | None = None
    calls: Calls = field(default_factory=Calls)
    _asked: list[Asked] = field(default_factory=list)
    _happened: list[Happened] = field(default_factory=list)
    _begun: float = field(default_factory=time.monotonic)
    _failed: threading.Event = field(default_factory=threading.Event)

    def play(self) -> Seen:
        """Carry it out, mend everything, wait until all is at rest, and return what was seen."""
        with calls.counted(self.site) as asked:
            seen = self._play()
        self.calls = asked
        now = moment()
        happened = (*seen.happened, Happened(now, now, "the operator's calls", str(asked)))
        return replace(seen, happened=happened, loops=tuple(asked.complaints()))

    def _play(self) -> Seen:
        self._begun = time.monotonic()
        lanes: dict[str, Callable[[Step], None]] = {
            JOBS: self._submit,
            PLACED: self._place,
            ACTION: self._act,
            ADMIN: self._keep_up,
            **dict.fromkeys(sorted(BROKEN), self._break),
        }
        with ThreadPoolExecutor(len(lanes) + 1) as pool:
            running = [pool.submit(self._lane, name, do) for name, do in lanes.items()]
            running.append(pool.submit(self._follow))
            for one in running:
                one.result()
        began = moment()
        mend_all(self.site)
        self._cancel_again()
        lost = [(lost_with(one.said), one.at) for one in self._happened if one.what in LOSSES]
        left = self.site.settle(BOUND, self._note, lost, self._forgotten, partial(self._note, what=WAITS))
        lines, records = witness.read(self.site.folder, self.prefix), tuple(self._records())
        asked = witness.with_answers(self._asked, self.site.submissions())
        refused = self.site.refused()
        left += [] if left else self.site.clear(BOUND)
        self._happened.append(Happened(began, moment(), "settle", "; ".join(left) or "all is at rest"))
        self.cost = costs.measure(self.site)
        return Seen(
            asked=asked,
            lines=lines,
            records=records,
            happened=tuple(sorted(self._happened, key=lambda one: one.at)),
            unsettled=tuple(left),
            orphans=tuple(self.site.orphans()),
            costs=tuple(self.cost.complaints(self.before)),
            leaks=tuple(costs.leaks(self.site)),
            refused=refused,
        )

    def _forgotten(self) -> set[str]:
        """Names in Slurm of jobs whose end slurmctld may have forgotten."""
        found = forgotten(witness.read(self.site.folder, self.prefix), tuple(self._happened))
        return {one.name or one.mark for one in self._asked if one.mark in found}

    def _cancel_again(self) -> None:
        """Cancel jobs that are to be cancelled: the command may have met a fault, and they would only take time.

        By name: a slurmctld that was killed gives a number again that it has forgotten.
        """
        for one in self._asked:
            if one.job and jobs.is_cancelled(one.kind):
                with suppress(LocalKubeError):
                    in_slurm(self.site.slurm, "scancel", f"--name={one.name or one.mark}")

    def _note(self, said: str, what: str = "put back by an administrator") -> None:
        now = moment()
        self._happened.append(Happened(now, now, what, said))

    def _wait_until(self, at: float) -> None:
        time.sleep(max(0.0, self._begun + at - time.monotonic()))

    def _lane(self, name: str, do: Callable[[Step], None]) -> None:
        for step in self.plan.lane(name):
            self._wait_until(step.at)
            do(step)

    def _try(self, step: Step, name: str, do: Callable[[], str]) -> str:
        """Do a part of a step; a refusal or no answer is what users meet, too. Returns what was said."""
        began = moment()
        try:
            said = do()
        except KubectlFailed as error:
            said = f"refused: {error.stderr}"
        self._happened.append(Happened(began, moment(), name, said, step.number))
        return said

    def _submit(self, step: Step) -> None:
        mark = f"{self.prefix}{step.number}"
        began = moment()
        previous = next((one.job for one in reversed(self._asked) if one.job), "")
        if reserve := jobs.reservation(step.name, step.values, mark):
            self._try(step, " ".join(reserve), lambda: in_slurm(self.site.slurm, *reserve))
        argv = jobs.command(step.name, step.values, mark, previous)
        script = jobs.script(step.name, step.values, mark)
        if jobs.KINDS[step.name].as_object:
            said = self._try(step, "create a SlurmJob", partial(self._create, step, mark))
            self._asked.append(
                Asked(mark, step.name, began, "" if said.startswith("refused") else OBJECT, until=moment())
            )
            return
        said = self._try(step, f"submit {step.name}", lambda: in_slurm(self.site.slurm, *argv, stdin=script))
        job = said.strip().split(";")[0]
        self._asked.append(Asked(mark, step.name, began, job if job.isdigit() else "", until=moment()))

    def _create(self, step: Step, mark: str) -> str:
        slurm = self.site.slurm
        cluster = {"clusterName": slurm.name, "clusterNamespace": slurm.namespace}
        body = json.dumps(jobs.slurm_job(step.name, step.values, mark, cluster))
        return slurm.kubectl("apply", "--server-side", "--filename=-", stdin=body, timeout=SOON)

    def _place(self, step: Step) -> None:
        mark = f"{self.prefix}{step.number}"
        began = moment()
        obj = pods.pod(step.name, step.values, mark, self.site.slurm.image("slurmd"), str(self.site.folder))
        create = ("create", "--filename=-", "--output=jsonpath={.metadata.uid}")
        said = self._try(
            step, f"create a {step.name}",
            lambda: self.site.slurm.kubectl(*create, stdin=json.dumps(obj), timeout=SOON),
        )  # fmt: skip
        name = "" if said.startswith("refused") else pods.job_name(step.name, said.strip())
        self._asked.append(Asked(mark, step.name, began, OBJECT if name else "", name, moment()))

    def _follow(self) -> None:
        """What follows submissions: releases, suspensions and the like, each so long after the answer."""
        due = [
            (step.at + after, after, step, argv)
            for step in self.plan.lane(JOBS)
            for after, argv in jobs.KINDS[step.name].then.items()
        ]
        while due:
            due.sort(key=lambda one: one[0])
            at, after, step, argv = due.pop(0)
            self._wait_until(at)
            mark = f"{self.prefix}{step.number}"
            asked = {one.mark: one for one in self._asked}.get(mark)
            left = after - (moment() - asked.until) if asked else 1.0
            if left > 0:
                # Its submission takes longer than planned.
                due.append((time.monotonic() - self._begun + left, after, step, argv))
            # A reservation may have been made for a job that was refused.
            elif asked and (asked.job or jobs.RESERVATION in argv):
                command = [word.format(job=asked.job, mark=mark) for word in argv]
                self._try(step, " ".join(command), partial(in_slurm, self.site.slurm, *command))

    def _act(self, step: Step) -> None:
        name = f"{step.name} {json.dumps(step.values)}"
        self._try(step, name, lambda: ACTIONS[step.name].do(self.site.slurm, step.values))

    def _keep_up(self, step: Step) -> None:
        drawn = json.dumps({name: value for name, value in step.values.items() if name != "key"})
        self._try(step, f"{step.name} {drawn}", lambda: UPKEEP[step.name].do(self.site, step.values))

    def _break(self, step: Step) -> None:
        began, met = moment(), True
        try:
            said = FAULTS[step.name].play(self.site, step.values)
        except MetNothing as error:
            said, met = f"met nothing: {error}", False
        self._happened.append(Happened(began, moment(), step.name, said, step.number, met))

    def _records(self) -> Iterator[witness.Record]:
        """Records of slurmdbd, once it has the end of all jobs that wrote theirs, or after a while without."""
        deadline = time.monotonic() + 60
        names = {one.name: one.mark for one in self._asked if one.name}
        while True:
            try:
                found = [*witness.records_of(self.site.records(), self.prefix, names)]
            except LocalKubeError:
                # slurmdbd is at rest, and may just begin again.
                if time.monotonic() > deadline:
                    raise
                time.sleep(2)
                continue
            open_ = witness.unended(found)
            if not open_ or time.monotonic() > deadline:
                yield from found
                return
            say(f"  ...  slurmdbd has no end of {open_} yet")
            time.sleep(2)


def moment() -> float:
    """Now, in seconds of the clock that jobs have, too."""
    return time.time()
