"""An administrator cancels what ended with its node, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass, field
from typing import Any, cast

from hack.localkube.kubectl import KubectlFailed
from tests.campaign.site.administrator import IS_STOPPED, Administrator
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
    refuses: str = "-"
    """What a command must have in it to be refused."""
    stopped: str = "-"
    """The job whose processes are stopped."""
    waiting: str = ""
    """Jobs that wait, with their reservations."""

    def control(self, *argv: str) -> str:
        return self.waiting if "--format=%i|%v" in argv else self.shown

    def get(self, kind: str) -> dict[str, Any]:
        kept = {"type": "RecordsKept", "message": "…: b-0 (required by job 51, excluded by job 52)"}
        return {
            "items": [
                {"metadata": {"name": "a"}, "status": {"conditions": [kept]}},
                {"metadata": {"name": "b", "deletionTimestamp": "now"}, "status": {"conditions": [kept]}},
            ]
        }

    def kube(self, *arguments: str) -> str:
        return "stopped" if arguments[-1] == self.stopped else ""

    def kubectl(self, *arguments: str, **more: Any) -> str:
        self.done.append(" ".join(arguments).partition(" timeout ")[2])
        if self.refuses in self.done[-1].split():
            raise KubectlFailed(arguments, "Requested reservation is in use")
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


def test_reservations_are_deleted_but_those_of_the_operator_and_those_in_use() -> None:
    shown = "".join(
        f"ReservationName={one} StartTime=2026-11-29T06:00:00\n" for one in ("c1-3", "slurm-operator-w-1", "c1-9")
    )
    slurm = Answering(shown, refuses="reservationname=c1-3", waiting="7|c1-9\n8|(null)\n9|slurm-operator-w-1\n")
    assert [*administrator(slurm).end_reservations()] == [
        "job 7 waited for reservation c1-9",
        "reservation c1-9 was deleted",
    ]
    deletions = [f"30 scontrol delete reservationname={one}" for one in ("c1-3", "c1-9")]
    assert slurm.done == ["30 scontrol update jobid=7 reservationname=", *deletions]
    assert administrator(Answering("No reservations in the system\n")).reservations() == []


def test_jobs_of_deleted_reservations_are_released() -> None:
    shown = "7|RESV_DEL_HOLD|Reservation c1-3 was deleted\n8|PENDING|ReservationDeleted\n9|PENDING|Resources\n"
    slurm = Answering(f"{shown}10|PENDING|Reservation c1-4 is invalid\n")
    said = [*administrator(slurm).let_jobs_go()]
    assert slurm.done == [
        "30 scontrol release 7",
        "30 scontrol release 8",
        "30 scontrol update jobid=10 reservationname=",
        "30 scontrol release 10",
    ]
    assert said[0] == "job 7 was held: Reservation c1-3 was deleted"


def test_a_job_whose_resume_was_lost_is_resumed_once_more() -> None:
    line = "JobId={} JobName=x JobState={} Reason=None SuspendTime={} SecsPreSuspend=3 NodeList={} BatchHost=a-0 \n"
    shown = "".join(
        line.format(*one)
        for one in (
            (7, "RUNNING", "2026-11-30T08:39:40", "a-0"),
            (8, "RUNNING", "None", "a-0"),
            (9, "SUSPENDED", "2026-11-30T08:39:40", "a-1"),
            (10, "RUNNING", "2026-11-30T08:39:40", "b-1"),
        )
    )
    slurm = Answering(shown, stopped="7")
    said = [*administrator(slurm).wake_stopped()]
    assert slurm.done == ["30 scontrol suspend 7", "30 scontrol resume 7"]
    assert said == ["job 7 was stopped on a-0, although Slurm showed it running"]


def test_what_is_stopped_is_found_by_the_number_of_its_job() -> None:
    number = str(os.getpid())
    with subprocess.Popen(["sleep", "60"], env={"SLURM_JOB_ID": number}) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)

        def look(job: str) -> str:
            return subprocess.run(
                ["sh", "-c", IS_STOPPED, "look", job], capture_output=True, text=True, check=False
            ).stdout.strip()

        assert (look(number), look(f"{number}7")) == (f"SLURM_JOB_ID={number}", "")
        process.send_signal(signal.SIGCONT)
        os.waitid(os.P_PID, process.pid, os.WCONTINUED)
        assert look(number) == ""
        process.kill()


def test_an_older_slurm_places_no_pods() -> None:
    newest, older = (
        Specs(SlurmInKubernetes(cast("Any", None), "campaign", version), "/folder") for version in (NEWEST, OLDER)
    )
    assert [len(one.bridged()) for one in (newest, older)] == [1, 0]
    assert ["bridge" in one.cluster()["jobs"] for one in (newest, older)] == [True, False]


def test_one_nodeset_has_job_log_servers_and_the_other_has_none() -> None:
    specs = Specs(SlurmInKubernetes(cast("Any", None), "campaign", NEWEST), "/folder")
    assert ["jobLogs" in specs.nodeset(name) for name in ("a", "b")] == [False, True]
