"""An administrator cancels what ended with its node, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from tests.campaign.site.administrator import Administrator
from tests.campaign.site.specs import Specs
from tests.support.slurm_in_kubernetes import NEWEST, OLDER, SlurmInKubernetes

LOST = 1000.0
EARLIER, LATER = "1970-01-01T00:16:00", "1970-01-01T00:17:00"


@dataclass
class Answering:
    """A Slurm that shows these jobs, and notes what is done."""

    shown: str
    done: list[str] = field(default_factory=list)
    name: str = "slurm"
    namespace: str = "campaign"

    def control(self, *argv: str) -> str:
        return self.shown

    def get(self, kind: str) -> dict[str, Any]:
        kept = {"type": "RecordsKept", "message": "…: b-0 (required by job 51, excluded by job 52)"}
        return {
            "items": [
                {"metadata": {"name": "a"}, "status": {"conditions": [kept]}},
                {"metadata": {"name": "b", "deletionTimestamp": "now"}, "status": {"conditions": [kept]}},
            ]
        }

    def kubectl(self, *arguments: str, **more: Any) -> str:
        self.done.append(" ".join(arguments).partition(" timeout ")[2])
        return ""


def administrator(slurm: Answering) -> Administrator:
    one = cast("SlurmInKubernetes", slurm)
    return Administrator(one.kubectl, one, Specs(one, "/folder"))


def test_jobs_that_ran_on_a_node_when_it_was_lost_are_cancelled() -> None:
    slurm = Answering(f"7|a-0|{EARLIER}\n8|a-[0-1]|{EARLIER}\n9|a-1|{EARLIER}\n10|a-0|{LATER}\n")
    assert administrator(slurm).cancel_lost(["node-1", "a-0"], LOST) == ["jobs 7 8 had ended with their node"]
    assert slurm.done == ["30 scancel 7 8"]


def test_where_slurm_has_missed_them_itself_nothing_is_done() -> None:
    slurm = Answering(f"10|a-0|{LATER}\n")
    assert administrator(slurm).cancel_lost(["a-0"], LOST) == []
    assert slurm.done == []


def test_jobs_whose_end_slurmctld_has_forgotten_are_cancelled_and_no_others() -> None:
    slurm = Answering("7|c1-7\n8|c1-8\n7|c1-7\n")
    said = "slurmctld was killed, and has forgotten the end of jobs 7"
    assert administrator(slurm).cancel_ended({"c1-7", "c1-9"}) == [said]
    assert slurm.done == ["30 scancel 7"]
    assert administrator(slurm).cancel_ended(set()) == []


def test_jobs_that_wait_for_a_nodeset_which_waits_for_them_may_use_other_nodes() -> None:
    slurm = Answering("")
    said = [*administrator(slurm).let_nodesets_go()]
    assert said == ["job 51 waited for NodeSet b, which waited for it"]
    assert slurm.done == ["30 scontrol update jobid=51 reqnodelist="]


def test_an_older_slurm_places_no_pods() -> None:
    newest, older = (
        Specs(SlurmInKubernetes(cast("Any", None), "campaign", version), "/folder") for version in (NEWEST, OLDER)
    )
    assert [len(one.bridged()) for one in (newest, older)] == [1, 0]
    assert ["bridge" in one.cluster()["jobs"] for one in (newest, older)] == [True, False]
