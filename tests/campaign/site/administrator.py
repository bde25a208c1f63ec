"""What an administrator does after a bad night: specs are put back, cordons and drains taken off, jobs released."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hack.localkube.kubectl import Kubectl, KubectlFailed
from slinky_api import labels
from tests.campaign.lanes.actions import BY_HAND, in_slurm, owner_marks
from tests.campaign.lanes.jobs import NODES, TEAM
from tests.campaign.lanes.keys import MADE_SECRETS, TOKEN
from tests.campaign.lanes.pods import CHOSEN
from tests.campaign.lanes.upkeep import KEY_SET, KEYS, write_secret
from tests.campaign.site.specs import Specs
from tests.campaign.witness import nodes_of, seconds
from tests.support.slurm_in_kubernetes import SlurmInKubernetes

SLURMS_OWN: Final = ("Duplicate jobid", "batch job complete failure", "Kill task failed", "Not responding")
"""Reasons of drains that Slurm itself makes, after slurmctld was killed, and an administrator takes off."""

BAD_CONDITIONS: Final = {
    ("Ready", "False"),
    ("ConfigApplied", "False"),
    ("AccountingReady", "False"),
    ("Degraded", "True"),
}
"""Of a Cluster that is not at rest."""


INVALID: Final = re.compile(r"reservation.*invalid", re.IGNORECASE)
"""Reason of a job whose reservation slurmctld did not find when it began."""

IS_HELD: Final = re.compile(rf"held|reservation.*deleted|{INVALID.pattern}", re.IGNORECASE)
"""Reasons of jobs that wait to be released; Slurm holds those of a reservation that is deleted or has ended."""

RESUMED: Final = re.compile(
    r"^JobId=(\d+) .* JobState=RUNNING .* SuspendTime=\d\S+ .* NodeList=([ab]-\d+) ", re.MULTILINE
)
"""Jobs on one slurmd pod that run, and were suspended before, with their nodes."""

IS_STOPPED: Final = """\
for found in $(grep -ls '^State:.*T (stopped)' /proc/[0-9]*/status); do
    tr '\\0' '\\n' < "${found%/status}/environ" | grep -x "SLURM_JOB_ID=$1"
done"""
"""Prints something if a process of a job is stopped."""

LEFT: Final = re.compile(r"kubectl delete -n \S+ pod/(\S+) configmap/([\w-]+)")
"""What a condition says is to be deleted."""

ASSIGNED: Final = re.compile(r"kubectl -n \S+ label --overwrite (\S+) (\S+) ((?:[\w./-]+=[\w-]+ ?)+)")
"""What a condition says is to be labelled: plural, name, labels."""


@dataclass(frozen=True, slots=True)
class Administrator:
    """Who puts things back.

    Attributes
    ----------
    kubectl, slurm
        Access to Kubernetes, and to the Cluster.
    specs
        What all is to be.
    """

    kubectl: Kubectl
    slurm: SlurmInKubernetes
    specs: Specs

    def restore(self) -> list[str]:
        """Put back what users have changed, as far as it can be now; returns what was done beyond that."""
        self._put_nodes_back()
        done = [*self._put_keys_back(), *self.give_owners_back(), *self.let_nodesets_go()]
        self.put("Cluster", self.slurm.name, self.specs.cluster())
        for name in NODES:
            self.put("NodeSet", name, self.specs.nodeset(name))
        done += [*self._take_drains_off(), *self.end_reservations(), *self.let_jobs_go()]
        done += self.wake_stopped()
        return [*done, *self._submit_again(), *self._take_left_away()]

    def cancel_lost(self, nodes: Collection[str], before: float) -> list[str]:
        """Cancel what Slurm shows as running although it ended with its node, which was back before Slurm missed it.

        slurmctld would see it when the node registers the next time, in 20 times a third of `SlurmdTimeout` at most.

        Parameters
        ----------
        before
            When the nodes were lost, in seconds since the epoch.
        """
        text = self.slurm.control("squeue", "--noheader", "--states=RUNNING", "--format=%i|%N|%S")
        found = [job for job, where, start in (line.split("|") for line in text.splitlines())
                 if nodes_of(where) & {*nodes} and seconds(start) < before]  # fmt: skip
        if found:
            in_slurm(self.slurm, "scancel", *found)
        return [f"jobs {' '.join(found)} had ended with their node"] if found else []

    def cancel_ended(self, names: Collection[str]) -> list[str]:
        """Cancel jobs of these names that Slurm shows as running: they have ended, and slurmctld has forgotten it."""
        text = self.slurm.control("squeue", "--noheader", "--states=RUNNING", "--format=%A|%j")
        found = sorted({job for job, name in (line.split("|") for line in text.splitlines()) if name in names})
        if found:
            in_slurm(self.slurm, "scancel", *found)
        return [f"slurmctld was killed, and has forgotten the end of jobs {' '.join(found)}"] if found else []

    def choose_node(self) -> None:
        """Label the Node on which Slurm places pods: one that was lost, or another, comes without it."""
        labelled = [f"{key}={value}" for key, value in CHOSEN.items()]
        self.kubectl("label", "node", self.specs.bridged_node, *labelled, "--overwrite")

    def _put_nodes_back(self) -> None:
        for node in self.kubectl.get("nodes")["items"]:
            name = node["metadata"]["name"]
            if node["spec"].get("unschedulable"):
                self.kubectl("uncordon", name)
            if name == self.specs.bridged_node and not CHOSEN.items() <= node["metadata"]["labels"].items():
                self.choose_node()

    def _take_drains_off(self) -> Iterator[str]:
        for line in self.slurm.control("sinfo", "--noheader", "--Node", "--format=%N|%T|%E").splitlines():
            node, state, reason = line.split("|", 2)
            by_slurm = any(one in reason for one in SLURMS_OWN)
            if state.startswith(("drain", "down")) and (reason == BY_HAND or by_slurm):
                wanted = "resume" if by_slurm else "undrain"
                in_slurm(self.slurm, "scontrol", "update", f"nodename={node}", f"state={wanted}")
                if by_slurm:
                    yield f"{node} was {state}: {reason}"

    def reservations(self) -> list[str]:
        """Names of reservations that are not the operator's own."""
        text = self.slurm.control("scontrol", "--oneliner", "show", "reservations")
        found: list[str] = re.findall(r"^ReservationName=(\S+)", text, re.MULTILINE)
        return [one for one in found if not one.startswith("slurm-operator-")]

    def end_reservations(self) -> Iterator[str]:
        """Delete reservations, and let no job wait for them; one in which a job runs is kept until that has ended."""
        names = self.reservations()
        text = self.slurm.control("squeue", "--noheader", "--states=PENDING", "--format=%i|%v") if names else ""
        for job, name in (line.split("|") for line in text.splitlines()):
            if name in names:
                in_slurm(self.slurm, "scontrol", "update", f"jobid={job}", "reservationname=")
                yield f"job {job} waited for reservation {name}"
        for name in names:
            try:
                in_slurm(self.slurm, "scontrol", "delete", f"reservationname={name}")
            except KubectlFailed:
                # Slurm keeps one in which a job runs, or for which one waits: the next look tries again.
                continue
            yield f"reservation {name} was deleted"

    def let_jobs_go(self) -> Iterator[str]:
        for numbers in self._forgotten():
            in_slurm(self.slurm, "scancel", *numbers)
            yield f"slurmctld has forgotten the end of {numbers}"
        for job, state, reason in self.jobs():
            if state in {"PENDING", "RESV_DEL_HOLD"} and IS_HELD.search(reason):
                if INVALID.search(reason):
                    in_slurm(self.slurm, "scontrol", "update", f"jobid={job}", "reservationname=")
                in_slurm(self.slurm, "scontrol", "release", job)
                if reason != "JobHeldUser":
                    yield f"job {job} was held: {reason}"
            if state == "SUSPENDED":
                in_slurm(self.slurm, "scontrol", "resume", job)

    def wake_stopped(self) -> Iterator[str]:
        """Resume once more what Slurm shows as running, although its processes are stopped (docs/promises.md)."""
        text = self.slurm.control("scontrol", "--oneliner", "show", "job")
        for job, node in RESUMED.findall(text):
            if self.slurm.kube("exec", node, "--container=slurmd", "--", "sh", "-c", IS_STOPPED, "look", job).strip():
                in_slurm(self.slurm, "scontrol", "suspend", job)
                in_slurm(self.slurm, "scontrol", "resume", job)
                yield f"job {job} was stopped on {node}, although Slurm showed it running"

    def _put_keys_back(self) -> list[str]:
        """Where a set of keys is refused, put back what daemons have, as the message of the condition says."""
        conditions = self.slurm.get("cluster", self.slurm.name).get("status", {}).get("conditions", ())
        refused = [
            one["reason"] for one in conditions
            if (one["type"], one["status"]) in BAD_CONDITIONS and f"Secret {KEYS}" in one["message"]
        ]  # fmt: skip
        if not refused:
            return []
        data = self.slurm.get("secret", f"{self.slurm.name}-auth-accepted")["data"]
        write_secret(self.slurm, KEYS, KEY_SET, base64.b64decode(data[KEY_SET]).decode())
        return [f"{refused[0]}: the key set that daemons have was put back"]

    def give_owners_back(self) -> Iterator[str]:
        """Assign what has lost its owner: as conditions say, and Secrets of keys, which work without.

        A Secret that does not name its Token is deleted, as docs/tokens.md says, and made again.
        """
        cluster = self.slurm.get("cluster", self.slurm.name)
        for one in cluster.get("status", {}).get("conditions", ()):
            for kind, name, marks in ASSIGNED.findall(one["message"]):
                self.slurm.kube("label", "--overwrite", kind, name, *marks.split())
                yield f"{kind} {name} named no owner: {one['reason']}"
        secrets = {obj["metadata"]["name"]: obj["metadata"] for obj in self.slurm.get("secrets")["items"]}
        unowned = [name for name, about in secrets.items() if not owner_marks(about)]
        said = self.slurm.condition("tokens.slinky.slurm.net", TOKEN, "Ready")["reason"]
        # The condition is older than the Secret that was made since.
        if said == "SecretNotOwned" and TOKEN in unowned:
            self.slurm.kube("delete", "secret", TOKEN, "--ignore-not-found")
            yield f"Secret {TOKEN} did not name its Token"
        keys = {name.format(cluster=self.slurm.name) for name in MADE_SECRETS} - {TOKEN}
        for name in filter(keys.__contains__, unowned):
            self.slurm.kube("label", "secret", name, f"{labels.LABEL_CLUSTER_UID}={cluster['metadata']['uid']}")
            yield f"Secret {name} named no owner"

    def let_nodesets_go(self) -> Iterator[str]:
        """Let jobs use other nodes that wait for a NodeSet which waits for them, as its condition says."""
        for obj in self.slurm.get("nodesets.slinky.slurm.net")["items"]:
            if "deletionTimestamp" not in obj["metadata"]:
                continue
            said = " ".join(
                one["message"] for one in obj["status"].get("conditions", ()) if one["type"] == "RecordsKept"
            )
            for job in sorted({*re.findall(r"required by job (\d+)", said)}):
                in_slurm(self.slurm, "scontrol", "update", f"jobid={job}", "reqnodelist=")
                yield f"job {job} waited for NodeSet {obj['metadata']['name']}, which waited for it"

    def _submit_again(self) -> Iterator[str]:
        """Submit at once what Slurm refused, as docs/jobs.md says; the operator would wait for a quarter of an hour."""
        for obj in self.kubectl.get("slurmjobs.slinky.slurm.net", "--namespace", TEAM)["items"]:
            name, conditions = obj["metadata"]["name"], obj.get("status", {}).get("conditions", ())
            if "SubmissionRefused" in {one.get("reason") for one in conditions}:
                for suspended in ("true", "false"):
                    change = f'{{"spec": {{"suspend": {suspended}}}}}'
                    self.kubectl("patch", "slurmjob", name, f"--namespace={TEAM}", "--type=merge", f"--patch={change}")
                yield f"{name} was refused, and is submitted again"

    def _take_left_away(self) -> Iterator[str]:
        """Delete pods that a NodeSet without finalizers has left, once they have no job, as the condition says."""
        busy = self.slurm.control("squeue", "--all", "--noheader", "--format=%N")
        used = {node for line in busy.splitlines() for node in nodes_of(line)}
        for obj in self.slurm.get("nodesets.slinky.slurm.net")["items"]:
            said = " ".join(one["message"] for one in obj.get("status", {}).get("conditions", ()))
            for pod, guard in sorted({*LEFT.findall(said)}):
                if pod not in used:
                    self.slurm.kube("delete", f"pod/{pod}", f"configmap/{guard}", "--ignore-not-found", "--wait=false")
                    yield f"pod {pod} was left by an earlier NodeSet"

    def _forgotten(self) -> Iterator[list[str]]:
        """Jobs that the operator says an administrator has to cancel."""
        for obj in self.slurm.get("nodesets.slinky.slurm.net")["items"]:
            for one in obj.get("status", {}).get("conditions", ()):
                if one["type"] == "Degraded" and one["reason"] == "JobEndForgotten":
                    yield from (found.split() for found in re.findall(r"scancel ([\d ]+) ends", one["message"]))

    def put(self, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        """Let an object have exactly this spec; one that is being deleted is made again when it has gone."""
        found = next((one for one in self.slurm.get(f"{kind.lower()}s.slinky.slurm.net")["items"]
                      if one["metadata"]["name"] == name), None)  # fmt: skip
        if found is None:
            self.slurm.kubectl.apply([self.slurm.object(kind, name, spec)])
        elif "deletionTimestamp" not in found["metadata"] and found["spec"] != spec:
            operations = json.dumps([{"op": "replace", "path": "/spec", "value": spec}])
            self.slurm.kube("patch", kind.lower(), name, "--type=json", f"--patch={operations}")

    def jobs(self) -> Iterator[tuple[str, str, str]]:
        for line in self.slurm.control("squeue", "--all", "--noheader", "--format=%i|%T|%r").splitlines():
            job, state, reason = line.split("|", 2)
            yield job, state, reason
