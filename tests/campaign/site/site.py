"""The site that the campaign disturbs: a local Kubernetes, the operator, a Cluster with accounting, two NodeSets.

What an administrator does after a bad night is left to :mod:`tests.campaign.site.administrator`, what all is made of to
:mod:`tests.campaign.site.specs`, and what is wrong in the end to :mod:`tests.campaign.verdict`.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from hack.images import build as images
from hack.installing.operator import NAMESPACE, Installation
from hack.localkube.cluster import Cluster
from hack.localkube.errors import LocalKubeError
from hack.localkube.paths import PROJECT
from hack.machine.progress import say
from slinky_operator.slurm import naming
from tests.campaign.lanes.actions import in_slurm, owner_marks, patch
from tests.campaign.lanes.jobs import NODES, TEAM
from tests.campaign.lanes.keys import TOKEN
from tests.campaign.lanes.pods import BRIDGED_NODE, HOST
from tests.campaign.site import nodes
from tests.campaign.site.administrator import BAD_CONDITIONS, Administrator
from tests.campaign.site.disks import Disks
from tests.campaign.site.specs import Specs, namespace
from tests.campaign.witness import FIELDS
from tests.support import api_proxy
from tests.support.api_proxy import ApiProxy
from tests.support.nodesets import whole
from tests.support.slurm_in_kubernetes import NEWEST, SlurmInKubernetes

CHARTS: Final = PROJECT / "helm"
RIGHTS: Final = (
    ("slurm-bridge", f"--set=tenants={{{TEAM}}}"),
    ("slurm-virtual-nodes", f"--set=tenants={{{TEAM}}}", f"--set=policy.hosts={{{HOST}}}"),
)
"""Charts with rights for pods, and their settings."""

NAME: Final = "campaign"
DOMAIN: Final = "slurm.example"
OWNED: Final = ("secrets", "configmaps", "services", "statefulsets", "poddisruptionbudgets", "persistentvolumeclaims")
"""What the operator makes under names that do not change."""

OF_TEAM: Final = ("pods", "slurmjobs.slinky.slurm.net")
"""What users make in their namespace."""

HASH: Final = re.compile(r"-[0-9a-f]{8}$")
"""End of a name that is another one when its owner is made again."""


def lasting_name(kind: str, name: str) -> str:
    """The name of an object for a comparison of two times: it is the same after its owner was made again."""
    return f"{kind} {HASH.sub('-*', name)}"


def lasting_object(kind: str, about: Mapping[str, Any]) -> str:
    """The same, from the metadata of an object, with a word where nothing names an owner of it."""
    return f"{lasting_name(kind, about['name'])}{'' if owner_marks(about) else ' of nobody'}"


def set_of(node: str) -> str:
    """NodeSet of a node."""
    return node.rpartition("-")[0]


def wrong_nodes(states: Mapping[str, str], bridged: Collection[str]) -> dict[str, str]:
    """Nodes and NodeSets that are not as they are at rest, and why.

    Which of its nodes a NodeSet has is not said: those of a Node that is lost go first when it is scaled in.

    Parameters
    ----------
    states
        Of nodes, as sinfo shows them.
    bridged
        Nodes without a slurmd that are to be there.
    """
    counts = Counter(set_of(node) for node in states if node not in bridged)
    return {
        **{node: state for node, state in states.items() if state != "idle"},
        **{node: "absent" for node in bridged if node not in states},
        **{f"of {name}": f"{counts[name]} are there, and {NODES.get(name, 0)} at rest"
           for name in {*counts, *NODES} if counts[name] != NODES.get(name, 0)},
    }  # fmt: skip


def _subjects(said: Sequence[str]) -> list[str]:
    return sorted({one.partition(": ")[0] for one in said})


@dataclass(slots=True)
class Site:
    """The site, up or not.

    Attributes
    ----------
    cluster, operator, slurm
        The local Kubernetes, the operator in it, and the Cluster; its version of Slurm may change once.
    disks
        Of the claims.
    at_rest
        Names of objects in the namespace when all was calm.
    """

    cluster: Cluster
    operator: Installation
    slurm: SlurmInKubernetes
    disks: Disks
    at_rest: Counter[str] = field(default_factory=Counter)
    _proxy: ApiProxy | None = None
    _open: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def of(cls, name: str = NAME, slurm: str = NEWEST) -> Site:
        """The site in a local Kubernetes of this name, with Slurm of this version."""
        cluster = Cluster(name)
        return cls(
            cluster, Installation(cluster, replicas=2), SlurmInKubernetes(cluster.kubectl, NAME, slurm), Disks(name)
        )

    @property
    def folder(self) -> Path:
        """What jobs see as `WITNESS`."""
        return self.cluster.paths.root / "witness"

    @property
    def proxy(self) -> ApiProxy:
        """The way of the operator to the API server."""
        assert self._proxy is not None, "the site is up"
        return self._proxy

    @property
    def administrator(self) -> Administrator:
        """Who puts things back."""
        return Administrator(self.cluster.kubectl, self.slurm, self.specs)

    @property
    def specs(self) -> Specs:
        """What it is made of, in its version of Slurm."""
        return Specs(self.slurm, str(self.folder), nodes.name_of(self.cluster, BRIDGED_NODE))

    def up(self, patience: float) -> None:
        """Bring all of it up, and wait until it is at rest."""
        self.disks.mount()
        self.cluster.up(nodes=2, domain=DOMAIN)
        self._proxy = self._open.enter_context(api_proxy.before(self.cluster))
        archives = images.ensure([*{f"slurm-{self.slurm.slurm}", f"slurm-{NEWEST}"}, "mariadb"], say)
        self.cluster.load_images([one for group in archives.values() for one in group])
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o1777)
        kubectl = self.cluster.kubectl
        kubectl.apply(
            [
                *(namespace(one) for one in (TEAM, self.slurm.namespace)),
                *self.disks.objects(self.slurm.namespace, self.slurm.name),
            ]
        )
        self.administrator.choose_node()
        for chart, *settings in RIGHTS:
            self.operator.helm("upgrade", "--install", chart, str(CHARTS / chart), "--create-namespace", *settings)
        owner = json.dumps([f"{self.slurm.namespace}/{self.slurm.name}"])
        self.operator = replace(
            self.operator,
            settings=(
                f"--set-json=extraEnv={json.dumps(api_proxy.environment(self.cluster))}",
                f"--set-json=virtualNodes.clusters={owner}",
                f"--set-json=bridge.clusters={owner}",
            ),
        )
        self.operator.install()
        kubectl.apply(self.specs.helpers())
        self.administrator.put("Cluster", self.slurm.name, self.specs.cluster())
        for name in NODES:
            self.administrator.put("NodeSet", name, self.specs.nodeset(name))
        left = self.settle(patience)
        if left:
            raise LocalKubeError(f"the site does not come to rest: {'; '.join(left)}")
        self.at_rest.update(self.objects())

    def down(self) -> None:
        """End it and leave nothing behind."""
        self.slurm.close_shells()
        self._open.close()
        try:
            self.cluster.down(quiet=True)
        finally:
            self.disks.unmount()

    def upgrade_slurm(self) -> str:
        """Name images of the newest Slurm everywhere; returns what was said."""
        if self.slurm.slurm == NEWEST:
            return "it is the newest"
        self.slurm = replace(self.slurm, slurm=NEWEST)
        slurm, specs = self.slurm, self.specs
        said = [patch(slurm, "cluster", slurm.name, specs.images())]
        said += [patch(slurm, "nodeset", name, {"image": slurm.image("slurmd")}) for name in NODES]
        return " ".join(said)

    def logs(self) -> str:
        """What the operator's pods, and those of the Cluster, have logged; earlier containers included."""
        kubectl, found = self.cluster.kubectl, []
        for where in (NAMESPACE, self.slurm.namespace):
            for pod in kubectl.get("pods", "--namespace", where)["items"]:
                name = pod["metadata"]["name"]
                for when in ((), ("--previous",)):
                    about = ("--namespace", where, name, "--all-containers", "--timestamps", *when)
                    with suppress(LocalKubeError):  # it was never started again
                        found.append(f"== {name} {' '.join(when)}\n{kubectl('logs', *about)}")
        return "\n".join(found)

    def clear(self, patience: float) -> list[str]:
        """Delete what users would delete after a look at it, and wait until it has gone; returns what has not.

        Jobs have ended before: what the next round sees is its own.
        """
        kubectl = self.cluster.kubectl
        deadline = time.monotonic() + patience
        while True:
            try:
                for kind in OF_TEAM:
                    kubectl("delete", kind, "--all", f"--namespace={TEAM}", "--wait=false")
                left = [f"{kind.partition('.')[0]} {one['metadata']['name']}: stays after its deletion"
                        for kind in OF_TEAM for one in kubectl.get(kind, "--namespace", TEAM)["items"]]  # fmt: skip
            except LocalKubeError as error:
                left = [f"{TEAM}: cannot be cleared: {error}"]
            if not left or time.monotonic() > deadline:
                break
            time.sleep(1)
        for file in self.folder.iterdir():
            file.unlink()
        return left

    def _slurm_jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cluster.kubectl.get("slurmjobs.slinky.slurm.net", "--namespace", TEAM)[
            "items"
        ]
        return found

    def submissions(self) -> dict[str, float]:
        """When Slurm took the jobs of SlurmJobs, in seconds since the epoch, by their names."""
        found = {}
        for one in self._slurm_jobs():
            answered = one.get("status", {}).get("submission", {}).get("answeredAt")
            if answered:
                found[one["metadata"]["name"]] = datetime.fromisoformat(answered).timestamp()
        return found

    def refused(self) -> frozenset[str]:
        """Names of pods of users that failed since their namespace has no tenant."""
        pods = self.cluster.kubectl.get("pods", "--namespace", TEAM)["items"]
        return frozenset(one["metadata"]["name"] for one in pods if one["status"].get("reason") == "JobsNotAllowed")

    # What is looked at

    def settle(
        self,
        patience: float,
        note: Callable[[str], None] = say,
        lost: Sequence[tuple[Collection[str], float]] = (),
        forgotten: Callable[[], Collection[str]] = tuple,
        waits: Callable[[str], None] = lambda _: None,
    ) -> list[str]:
        """Wait until all is at rest; returns what is not, when nothing of that has changed for too long.

        Parameters
        ----------
        patience
            Seconds without a change, after which it is given up; and a third of all the time that it may take, since a
            busy machine is slow and what goes round in circles never rests.
        note
            Hears what an administrator had to do for it, beyond putting specs back.
        lost
            Nodes of Slurm that were lost, and when.
        forgotten
            Names of jobs whose end slurmctld may have forgotten, as far as they have ended.
        waits
            Hears what is not at rest, each time when that are other things.
        """
        began = changed = time.monotonic()
        before: list[str] = []
        while True:
            try:
                # What the operator makes again takes its time, too: a Token hears of its Secret within half a minute.
                left = [*self._restless()] or (self.orphans() if self.at_rest else [])
            except (LocalKubeError, ValueError, KeyError) as error:
                left = [f"no look: {error}"]
            now = time.monotonic()
            if _subjects(left) != _subjects(before):
                waits(", ".join(_subjects(left)) or "nothing")
            before, changed = left, changed if left == before else now
            # A submission whose answer was lost is looked for during ten minutes.
            still = patience * (3 if any("SubmissionUnknown" in one for one in left) else 1)
            if not left or now > min(changed + still, began + 3 * patience):
                return left
            time.sleep(2)
            try:
                administrator = self.administrator
                # Specs first: slurmctld may not run before they are put back.
                done = administrator.restore()
                done += [one for nodes, at in lost for one in administrator.cancel_lost(nodes, at)]
                done += administrator.cancel_ended(forgotten())
                for one in done:
                    note(one)
            except (LocalKubeError, ValueError, KeyError) as error:
                left.append(f"not put back: {error}")

    def _restless(self) -> Iterator[str]:
        yield from self._restless_objects()
        yield from self._restless_slurm()
        for one in self._slurm_jobs():
            state = one.get("status", {}).get("state", "no state")
            # Where nobody can know any more how a job has ended, this is the last word; its record is judged.
            reasons = {each.get("reason") for each in one.get("status", {}).get("conditions", ())}
            if state not in {"Succeeded", "Failed"} and "EndNotSeen" not in reasons:
                yield f"SlurmJob {one['metadata']['name']}: {state}: {', '.join(sorted(map(str, reasons)))}"
        for one in self.cluster.kubectl.get("pods", "--namespace", TEAM)["items"]:
            phase = one["status"].get("phase", "no phase")
            if phase not in {"Succeeded", "Failed"}:
                said = [f"{each['reason']}: {each.get('message', '')}" for each in one["status"].get("conditions", ())
                        if each.get("reason")]  # fmt: skip
                yield f"pod {one['metadata']['name']}: {phase}: {'; '.join(said)}"
        if self.slurm.condition("tokens.slinky.slurm.net", TOKEN, "Ready")["status"] != "True":
            yield f"Token {TOKEN}: not ready"
        pods = self.operator.pods().values()
        ready = [
            all(one["ready"] for one in pod["status"].get("containerStatuses", [{"ready": False}])) for pod in pods
        ]
        if ready != [True] * self.operator.replicas:
            yield f"operator: {ready.count(True)} replicas are ready"

    def _restless_objects(self) -> Iterator[str]:
        slurm = self.slurm
        status = slurm.get("cluster", slurm.name).get("status", {})
        for one in status.get("conditions", ()):
            if (one["type"], one["status"]) in BAD_CONDITIONS:
                yield f"Cluster: {one['type']} is {one['status']}: {one['reason']}: {one['message']}"
        if not status.get("isReady"):
            yield "Cluster: not ready"
        objects = {one["metadata"]["name"]: one for one in slurm.get("nodesets.slinky.slurm.net")["items"]}
        for name, count in NODES.items():
            if name not in objects or not whole(slurm, name, count):
                conditions = objects.get(name, {}).get("status", {}).get("conditions", ())
                said = [f"{one['type']}={one['status']} {one['reason']}: {one['message']}" for one in conditions]
                yield f"NodeSet {name}: not whole: {'; '.join(said)}"

    def _restless_slurm(self) -> Iterator[str]:
        states = self.slurm.states()
        for node, why in wrong_nodes(states, self.specs.bridged()).items():
            yield f"node {node}: {why}: {self.slurm.reason(node) if node in states else ''}"
        for job, state, reason in self.administrator.jobs():
            yield f"job {job}: {state} {reason}"
        for name in self.administrator.reservations():
            yield f"reservation {name}: is there"

    def objects(self) -> Counter[str]:
        """Names of what the operator keeps in the namespace, a hash in them left out, and NodeSets of slurmd pods.

        Not keys that stay with the Cluster: that of job logs once a NodeSet has had them, since tokens last, and that
        of Slurm once the Cluster has named no Secret of its users'.
        """
        found = Counter(f"pods of {set_of(name)}" for name in self.slurm.slurmd_pods())
        for kind in OWNED:
            found.update(lasting_object(kind, one["metadata"]) for one in self.slurm.get(kind)["items"])
        for name in (naming.job_logs_key(self.slurm.name), naming.slurm_key_secret(self.slurm.name)):
            del found[lasting_name("secrets", name)]
        return found

    def orphans(self) -> list[str]:
        """What is there and belongs to nobody, or is not there any more, beside the time when all was calm."""
        now, before = self.objects(), self.at_rest
        return [f"{one}: {now[one]} are there, and {before[one]} at rest before" for one in sorted({*now, *before})
                if now[one] != before[one]]  # fmt: skip

    def records(self) -> str:
        """What slurmdbd has of all jobs."""
        return in_slurm(
            self.slurm, "sacct", "--noheader", "--parsable2", "--allocations", "--allusers", "--duplicates",
            "--starttime=now-1days", f"--format={','.join(FIELDS)}", timeout=60,
        )  # fmt: skip
