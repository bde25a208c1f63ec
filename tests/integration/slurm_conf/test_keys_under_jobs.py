"""The effect of changed keys on running jobs, on real daemons of both releases: the reasons for the rules."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from hack.images.rootfs import ensure
from slinky_operator.cluster.rollout.slurm_questions import ask_use
from slinky_operator.slurm.conf.keys.rules import Kind, rule_of
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import MintedToken, SlurmClient
from tests.support.slurm_host import SlurmHost

pytestmark = pytest.mark.timeout(300)

NODES = ("w-0", "w-1")


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """A cluster of each release with two nodes, which get their files from slurmctld as in pods."""
    host = SlurmHost(ensure(request.param))
    try:
        host.start()
        for name in NODES:
            host.add_node(name, cpus=4, memory=512, configless=True)
        yield host
    finally:
        host.close()


def apply(host: SlurmHost, lines: str) -> None:
    """Bring lines to all daemons."""
    host.write_conf(lines)
    host.reconfigure()


def running(host: SlurmHost, *options: str) -> int:
    """A batch job that goes on to another step, and to its end, once there is a file `go`."""
    script = "touch /var/spool/begun-$SLURM_JOB_ID; until [ -e /var/spool/go ]; do sleep 0.1; done; srun --overlap true"
    job = host.sbatch(f"set -e; {script}", "--mem=10", *options)
    host.wait_for((host.shared / f"begun-{job}").exists, f"job {job} has begun")
    return job


def ends_well(host: SlurmHost, *jobs: int) -> None:
    (host.shared / "go").touch()
    host.wait_for(lambda: {host.job_state(job) for job in jobs} == {"COMPLETED"}, "they have ended well")


def waits(key: str, kind: Kind = Kind.WAITS) -> bool:
    rule = rule_of(key)
    return rule is not None and rule.kind is kind


def test_every_key_that_slurmctld_shows_has_a_rule(slurm: SlurmHost) -> None:
    shown = slurm.run("scontrol", "show", "config").stdout.split("\n\n")[0]
    keys = {line.partition("=")[0].strip().partition("[")[0] for line in shown.splitlines() if " = " in line}
    # Where several keys are shown as one: DefCPUPerGPU and DefMemPerGPU.
    keys = {key for key in keys if key and not key.isupper() and key != "JobDefaults"}
    assert len(keys) > 150
    assert {key for key in keys if rule_of(key) is None} == set()


async def test_records_are_counted_as_slurmctld_counts_them(slurm: SlurmHost) -> None:
    done = slurm.sbatch("true")
    slurm.wait_for(lambda: slurm.job_state(done) == "COMPLETED", "a job has ended")
    jobs = [running(slurm, "-w", name) for name in NODES]
    array = slurm.sbatch("true", "--hold", "--array=0-2,5")
    async with SlurmClient(slurm.url, token=MintedToken(slurm.jwt_key)) as client:
        use = await ask_use(
            cast("ClusterClient", SimpleNamespace(client=client, fresh_jobs=client.jobs)), "", time.monotonic
        )
    assert (use.why, use.records, use.shortened) == ("", 7, 0)
    assert sorted(job.id for job in use.jobs if job.holding) == jobs

    # One more than there are is enough for both releases.
    apply(slurm, f"MaxJobCount={use.records + 1}")
    assert [slurm.job_state(job) for job in jobs] == ["RUNNING", "RUNNING"]
    assert slurm.job_state(array)
    # Fewer are not, and this is why it waits; the same with as few job ids.
    assert all(waits(key, Kind.COUNTED) for key in ("MaxJobCount", "MaxJobId", "FirstJobId"))
    slurm.write_conf("FirstJobId=1\nMaxJobId=2")
    slurm.run("scontrol", "reconfigure")
    slurm.wait_for(lambda: "" in {slurm.job_state(job) for job in jobs}, "a running job is forgotten")


def test_flags_of_the_prolog_drain_a_node_of_a_job_that_began_without(slurm: SlurmHost) -> None:
    assert waits("PrologFlags")
    running(slurm, "-N2")
    apply(slurm, "PrologFlags=Alloc")
    (slurm.shared / "go").touch()
    slurm.wait_for(lambda: "Prolog error" in slurm.run("sinfo", "-hR").stdout, "a node is drained for it")


@pytest.mark.parametrize("line", ["MaxStepCount=1", "SelectTypeParameters=CR_Core_Memory"])
def test_a_job_gets_no_further_step(slurm: SlurmHost, line: str) -> None:
    assert waits(line.partition("=")[0])
    job = running(slurm)
    step = ("srun", f"--jobid={job}", "--overlap", "--mem=5", "--immediate=3", "true")
    assert slurm.run(*step, stdin="").returncode == 0
    apply(slurm, line)
    assert slurm.run(*step, stdin="", check=False).returncode != 0
    assert slurm.job_state(job) == "RUNNING"


HARMLESS = """
BatchStartTimeout=20 CompleteWait=10 DefMemPerCPU=10 EnforcePartLimits=ALL EpilogMsgTime=1000 GroupUpdateForce=0
InactiveLimit=30 JobAcctGatherFrequency=30 JobAcctGatherType=jobacct_gather/linux JobFileAppend=1 JobRequeue=0
KeepAliveTime=60 KillOnBadExit=1 LaunchParameters=enable_nss_slurm LogTimeFormat=iso8601 MaxArraySize=10
MaxBatchRequeue=2 MaxMemPerNode=5 MaxTasksPerNode=1 MCSPlugin=mcs/user MessageTimeout=12 MinJobAge=200
PreemptMode=REQUEUE PreemptType=preempt/partition_prio PriorityType=priority/basic PrivateData=jobs RequeueExit=7
ReturnToService=1 SchedulerType=sched/builtin SelectTypeParameters=CR_CPU SlurmdDebug=verbose SlurmdTimeout=60
SuspendRate=10 TCPTimeout=3 TaskPlugin=task/affinity TreeWidth=20 UnkillableStepTimeout=70 WaitTime=5
"""


def test_jobs_do_not_notice_what_is_applied_at_once(slurm: SlurmHost) -> None:
    words = HARMLESS.split()
    assert not [
        word
        for word in words
        if not waits(word.partition("=")[0], Kind.HARMLESS)
        and not word.startswith(("SelectTypeParameters", "PreemptMode"))
    ]
    jobs = [running(slurm), running(slurm, "-N2")]
    apply(slurm, "\n".join(words))
    assert [slurm.job_state(job) for job in jobs] == ["RUNNING", "RUNNING"]
    ends_well(slurm, *jobs)
    idle = {f"{name}=idle" for name in NODES}
    slurm.wait_for(lambda: set(slurm.run("sinfo", "-hN", "-o", "%N=%T").stdout.split()) == idle, "the nodes are idle")
