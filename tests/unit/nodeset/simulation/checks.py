"""Health checks of the simulated nodes: what their programs report, and what may follow from that.

Scripts are distinguished by their texts. What is wrong with a node, all scripts that work find.
"""

from __future__ import annotations

from tests.unit.nodeset.simulation.objects import OURS, Object
from tests.unit.nodeset.simulation.state import State

SCRIPTS = {"": "exit 0", "failed": "exit 1", "unknown": "exit 127"}
"""A check that is right, one that fails everywhere, and one that cannot be run; by what it reports of a good node."""

CHOSEN: tuple[str | None, ...] = ("", "", "failed", "", "unknown", None, "", "failed")
REPORTS = f"{OURS.removesuffix(': ')} checks "
NAME = "disk"


def check(result: str) -> Object:
    """A check of the spec."""
    return {"name": NAME, "script": f"#!/bin/sh\n{SCRIPTS[result]}\n# {result or 'passed'}\n"}


def mounts_checks(pod: Object) -> bool:
    """Whether checks can reach a pod."""
    return any(one["name"] == "health-checks" for one in pod["spec"].get("volumes") or ())


class Checks(State):
    """The user gives checks, the program on the nodes runs them."""

    def do_check(self, index: int) -> None:
        """The user has a check run, another one, or none."""
        if self.nodeset is None:
            return
        result = CHOSEN[index % len(CHOSEN)]
        health = {key: one for key, one in (self.nodeset["spec"].get("health") or {}).items() if key != "checks"}
        if result is not None:
            health["checks"] = [check(result)]
        self.nodeset["spec"]["health"] = health if health.keys() & {"checks", "nodeConditions", "defaults"} else None
        self.edited()

    def do_break(self, index: int) -> None:
        """A node breaks so that checks find it, or so that none can be run there; or it is mended."""
        name = self.pick(self.records, index)
        if name is not None and index < 4:
            self.broken ^= {name}
        elif name is not None:
            self.hung ^= {name}

    def do_comment_lost(self, index: int) -> None:
        """slurmctld has lost what a node has reported; its program does not write it again for a while."""
        name = self.pick(self.records, index)
        if name is not None:
            self.records[name].comment = ""

    def do_checks_run(self, index: int) -> None:
        """Slurm runs the checks; the kubelet may have brought the last files of the ConfigMap, or not."""
        if index % 4:
            self.delivered = dict((self.checks or {"data": {}})["data"])
        for record in self.records.values():
            pod = next((one for one in self.pods.values() if one["metadata"]["uid"] == record.slurmd), None)
            if pod is None or record.slurmd not in self.running or not mounts_checks(pod) or self.slurm_fault:
                continue
            revision, result = self.checks_of(self.delivered, record.name)
            if result is None:
                continue
            if record.name in self.hung:
                result = "unknown"
            elif record.name in self.broken and not result:
                result = "failed"
            told = (revision, result)
            if self.results.get(record.name, ("", "", 0.0))[:2] != told:
                self.results[record.name] = (*told, self.now.timestamp())
            since = int(self.results[record.name][2])
            record.comment = f"{REPORTS}{revision} {since}" + (f"|{NAME} {result} why" if result else "")

    def checks_of(self, data: Object, node: str) -> tuple[str, str | None]:
        """Revision and result of the check that a node runs by these files; None if it runs none."""
        trial = data.get("trial", "")
        text = trial if f"\nnode {node}\n" in trial else data.get("approved", "")
        lines = text.splitlines()
        line = next((one for one in lines if one.startswith(f"check {NAME} ")), None)
        if line is None:
            return "", None
        script = data.get(next(word for word in line.split() if word.startswith("script-")), "")
        result = next((result for result, words in SCRIPTS.items() if f"\n{words}\n" in script), None)
        return lines[0].removeprefix("revision "), result

    def wants_checks(self) -> bool:
        """Whether the spec has checks."""
        return bool(((self.nodeset or {"spec": {}})["spec"].get("health") or {}).get("checks"))

    def order_checks(self, data: Object) -> None:
        """The ConfigMap changes: what all nodes run, one has tried and passed."""
        before = (self.checks or {"data": {}})["data"]
        revision, result = self.checks_of({**data, "trial": ""}, "")
        if result is None or revision == self.checks_of({**before, "trial": ""}, "")[0]:
            return
        tried = [name for name in self.records if f"\nnode {name}\n" in before.get("trial", "")]
        passed = [name for name in tried if self.reported(name) == (revision, "")]
        if not passed:
            self.violations.append(f"all nodes run {revision}, which {tried} tried and {self.reported(''.join(tried))}")

    def reported(self, node: str) -> tuple[str, str] | None:
        """Revision and result that a node has reported, as the controller sees it."""
        comment = self.picture[node].comment if node in self.picture else ""
        if not comment.startswith(REPORTS):
            return None
        head, _, rest = comment.removeprefix(REPORTS).partition("|")
        return head.split()[0], rest.removeprefix(f"{NAME} ").partition(" ")[0]

    def watch_checked(self, node: str) -> None:
        """Note a node that is drained for a check and may not be."""
        approved, _ = self.checks_of({**(self.checks or {"data": {}})["data"], "trial": ""}, "")
        if not (self.seen_health or {}).get("checks"):
            self.violations.append(f"{node} was drained for a check, and there is none")
        elif self.reported(node) != (approved, "failed"):
            self.violations.append(f"{node} was drained for a check that says {self.reported(node)} of {approved}")

    def watch_given_back(self, node: str) -> None:
        """Note a node that is given back while its check does not pass."""
        if not self.is_held_for_a_check(node) or not (self.seen_health or {}).get("checks"):
            return
        found = self.reported(node)
        if found is None or found[1]:
            self.violations.append(f"{node} was given back although its check says {found}")

    def is_held_for_a_check(self, node: str) -> bool:
        """Whether the reason of a node names the check."""
        return self.is_held(node) and f" check {NAME}: " in self.records[node].reason
