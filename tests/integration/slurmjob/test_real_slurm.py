"""SlurmJobs with real Slurm and accounting; slurmctld forgets jobs that ended two seconds ago.

The operator's own loop works here, woken by its triggers alone.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx
import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from slinky_operator.slurm.connection.contact import ContactState
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.model.stages.late_calls import MARGIN, SETTLED
from slinky_operator.slurmjob.model.stages.submitted import HISTORY_PATIENCE
from slurm_client import MintedToken, SlurmClient, errors
from slurm_client.connection.transport import Transport, written
from tests.support.accounting_host import AccountingHost
from tests.support.cut import Cut
from tests.support.mariadb_host import MariadbHost
from tests.support.slurm_jobs import JobWorld, Killed, until
from tests.support.slurm_series import OLDER_IN_FULL

pytestmark = [pytest.mark.timeout(600), pytest.mark.long(190)]

# Components of a heterogeneous job are started by the backfill scheduler alone.
CONF = """MinJobAge=2
GresTypes=gpu
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1"""

PATIENCE = 120
USER = "daemon"
LONG = "sleep 600"
FUTURE = {"begin_time": 1_999_999_999}


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbHost]:
    with MariadbHost(ensure_mariadb()) as host:
        yield host


@pytest.fixture(scope="module", params=OLDER_IN_FULL)
def slurm(request: pytest.FixtureRequest, mariadb: MariadbHost) -> Iterator[AccountingHost]:
    series: str = request.param
    database = mariadb.database(f"jobs{series.replace('.', '')}")
    with AccountingHost(ensure(series), database=database, extra_conf=CONF) as host:
        host.add_node("w-0", cpus=16, features=("all", "stays"), wait=False)
        host.add_node("w-1", cpus=2, features=("all", "lost"))
        host.wait_for(lambda: host.node_is_up("w-0"), "node w-0 registers")
        yield host


class World(JobWorld):
    """SlurmJobs of one test."""

    def __init__(self, slurm: AccountingHost, url: str = "") -> None:
        super().__init__(url or slurm.url, slurm.jwt_key, USER, poll_interval=0.1)
        self.uids = uuid.uuid4().hex
        self.cluster(accounting={})

    def run(self, name: str, script: str, **fields: Any) -> None:
        given = {"features": "stays", "output": "/dev/null", "workingDirectory": "/", **fields}
        self.job(name, script=f"#!/bin/sh\n{script}\n", **given)

    def contact(self) -> ContactState:
        """The state of contact with Slurm."""
        entry = self.clients.get("cluster-1")
        assert entry is not None
        return entry.contact.state

    def says(self, name: str) -> tuple[str, str]:
        """State and reason."""
        status = self.status(name)
        return status.get("state", ""), status.get("reason", "")

    async def reaches(self, name: str, reason: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await until(lambda: self.status(name).get("reason") == reason)
        except TimeoutError:
            pytest.fail(f"{name} is not {reason}: {self.status(name)}")


@pytest.fixture
async def world(slurm: AccountingHost) -> AsyncIterator[World]:
    async with _world(slurm) as one:
        yield one


@asynccontextmanager
async def _world(slurm: AccountingHost, url: str = "") -> AsyncIterator[World]:
    world = World(slurm, url)
    await world.start()
    try:
        yield world
    finally:
        await world.clients.close_all()


async def command(slurm: AccountingHost, *words: str) -> str:
    return (await asyncio.to_thread(slurm.run, *words)).stdout


async def forgets(slurm: AccountingHost, job: int) -> None:
    """Wait until slurmctld has forgotten a job."""
    await asyncio.to_thread(slurm.wait_for, lambda: slurm.job_state(job) == "", f"job {job} is forgotten", PATIENCE)


async def leaves(slurm: AccountingHost, job: int) -> None:
    """Wait until nothing of a job is left on its node."""
    states = {"RUNNING", "COMPLETING"}
    await asyncio.to_thread(slurm.wait_for, lambda: slurm.job_state(job) not in states, f"job {job} ends", PATIENCE)


def numbers(slurm: AccountingHost, name: str) -> list[int]:
    """All jobs of a name that slurmdbd has."""
    lines = slurm.run("sacct", "-n", "-P", "-X", "-D", "-a", "-S", "now-1hour", "-o", "jobid,jobname%100").stdout
    return [int(job) for job, _, found in (line.partition("|") for line in lines.splitlines()) if found == name]


async def test_ends_and_refusals(slurm: AccountingHost, world: World) -> None:
    world.run("good", "true")
    world.run("code", "exit 3")
    world.run("signal", "kill -9 $$")
    world.run("cancelled", LONG)
    world.run("array", "exit $((SLURM_ARRAY_TASK_ID == 1 ? 4 : 0))", array="0-2")
    world.run("unwritable", "true", output="/etc/slurm/out")
    world.run("error", "true", error="/etc/slurm/err")
    world.run("never", "true", dependsOn=[{"name": "code"}])
    world.run("partition", "true", partition="nosuch")
    world.run("large", "true", array="0-1000000")
    async with world.working():
        await world.reaches("cancelled", "Running")
        _ = await command(slurm, "scancel", str(world.status("cancelled")["jobId"]))
        await world.reaches("good", "Completed")
        await world.reaches("code", "NonZeroExitCode")
        await world.reaches("signal", "Signaled")
        await world.reaches("cancelled", "Cancelled")
        await world.reaches("array", "NonZeroExitCode")
        await world.reaches("unwritable", "FileNotOpened")
        await world.reaches("error", "FileNotOpened")
        await world.reaches("partition", "SubmissionRefused")
        await world.reaches("large", "SubmissionRefused")
        await world.reaches("never", "DependencyNeverSatisfied")
    assert world.status("code")["exitCode"] == 3
    assert world.status("signal")["signal"] == 9
    assert world.says("cancelled")[0] == "Failed"
    assert world.status("array")["array"] == {"pending": 0, "running": 0, "succeeded": 2, "failed": 1}
    assert world.status("array")["exitCode"] == 4
    assert world.says("unwritable")[0] == "Failed"
    assert ": output /etc/slurm/out;" in world.condition("Finished", "unwritable")[2]
    assert ": error /etc/slurm/err;" in world.condition("Finished", "error")[2]
    assert "artition" in world.condition("Submitted", "partition")[2]
    assert "array" in world.condition("Submitted", "large")[2].lower()
    assert world.condition("Finished", "never")[0] == "False"
    # One for each job that Slurm has, and for each of them that has started.
    assert world.count("slurmjob_submit_duration_seconds_count") == 8
    assert world.count("slurmjob_pending_duration_seconds_count") == 7
    assert (world.count("slurmjob_submissions_total", outcome="refused") or 0) >= 2
    ended = Counter(
        world.says(name)[1] for name in ("good", "code", "signal", "cancelled", "array", "unwritable", "error")
    )
    assert {reason: world.count("slurmjobs_ended_total", reason=reason) for reason in ended} == ended


async def test_others_wait_for_the_submission_that_counts(slurm: AccountingHost, world: World) -> None:
    once = f"/tmp/{world.uids}"
    world.run("again", f"[ -e {once} ] || {{ touch {once}; exit 3; }}", backoffLimit=2)
    world.run("twice", "exit 3", backoffLimit=1)
    world.run("after", "true", dependsOn=[{"name": "again"}, {"name": "twice", "type": "afternotok"}])
    world.run("never", "true", dependsOn=[{"name": "twice"}])
    async with world.working():
        await world.reaches("after", "Completed")
        await world.reaches("never", "DependencyNeverSatisfied")
    assert len(world.status("again")["failedAttempts"]) == 1
    assert world.status("again")["state"] == "Succeeded"
    assert world.status("after")["submitTime"] >= world.status("again")["endTime"]


async def test_held_released_requeued_and_lost(slurm: AccountingHost, world: World) -> None:
    """What changes in Slurm meanwhile wakes other SlurmJobs; the held one is woken by its spec alone."""
    world.run("held", "true", parameters=FUTURE)
    world.run("again", LONG)
    world.run("lost", LONG, features="lost", requeue=False)
    world.run("moved", LONG, features="lost", requeue=True)
    async with world.working():
        await world.reaches("held", "Queued")
        world.job("held", suspend=True)
        await world.reaches("held", "Held")
        assert world.status("held")["slurmReason"] == "JobHeldUser"
        for name in ("again", "lost", "moved"):
            await world.reaches(name, "Running")
        _ = await command(slurm, "scontrol", "requeue", str(world.status("again")["jobId"]))
        await world.reaches("again", "Requeued")
        slurm.stop("w-1", kill=True)
        _ = await command(slurm, "scontrol", "update", "NodeName=w-1", "State=DOWN", "Reason=lost")
        await world.reaches("lost", "NodeFail")
        await world.reaches("moved", "Requeued")
        assert world.says("held") == ("Pending", "Held")
        world.job("held", suspend=False)
        await world.reaches("held", "Queued")
        assert not world.status("held").get("held")
        for name in ("held", "again", "moved"):
            world.delete(name)
        await until(lambda: not any(world.exists(name) for name in ("held", "again", "moved")))
    assert world.says("lost")[0] == "Failed"
    assert world.status("lost")["nodes"] == "w-1"
    # A requeued job is counted with its first start.
    assert world.count("slurmjob_pending_duration_seconds_count") == 3
    assert world.count("slurmjobs_ended_total", reason="NodeFail") == 1


async def test_what_pending_jobs_wait_for(slurm: AccountingHost, world: World) -> None:
    """Warnings name a partition that is down and a limit, once; of a job that waits for nodes Slurm plans the start."""
    for line in ("PartitionName=down State=DOWN", "PartitionName=short MaxTime=1"):
        _ = await command(slurm, "scontrol", "create", *line.split(), "Nodes=ALL")
    world.run("fills", LONG, tasks=16, time="5")
    async with world.working():
        await world.reaches("fills", "Running")
        world.run("planned", "true", tasks=16, time="5")
        world.run("down", "true", partition="down")
        world.run("limit", "true", partition="short", time="10")
        world.run("held", "true", parameters={"hold": True})
        words = {"down": "PartitionDown", "limit": "PartitionTimeLimit", "held": "JobHeldUser"}
        for name, word in words.items():
            await until(lambda: world.status(name).get("slurmReason") == word)  # noqa: B023 - awaited in this turn
        await until(lambda: world.status("planned").get("expectedStartTime"))
        planned = world.status("planned")
        assert planned["state"] == "Pending"
        assert planned["expectedStartTime"] > planned["submitTime"]
        assert "startTime" not in planned
        await until(lambda: world.events.reasons().count("JobWaits") == 2)
        _ = await command(slurm, "scancel", str(world.status("fills")["jobId"]))
        await world.reaches("planned", "Completed")
        assert "expectedStartTime" not in world.status("planned")
        assert world.status("planned")["startTime"]
        for name in words:
            world.delete(name)
        await until(lambda: not any(world.exists(name) for name in words))
    warnings = [message for kind, reason, message in world.events.told if (kind, reason) == ("Warning", "JobWaits")]
    assert sorted(word for word in words.values() for message in warnings if word in message) == [
        "PartitionDown",
        "PartitionTimeLimit",
    ]
    (held,) = [message for _, reason, message in world.events.told if reason == "JobSubmitted" and "held" in message]
    assert held.count("Job is in held state") == 1


async def test_the_end_comes_from_slurmdbd(slurm: AccountingHost, world: World) -> None:
    world.run("unseen", "until [ -e /var/spool/go ]; do sleep 0.1; done; exit 7")
    # Slurm looks for such jobs, and for those that it forgets, every half minute.
    world.run("late", LONG)
    async with world.working():
        await world.reaches("unseen", "Running")
        await world.reaches("late", "Running")
    await asyncio.to_thread(slurm.end_now, world.status("late")["jobId"])
    number = world.status("unseen")["jobId"]
    (slurm.shared / "go").touch()
    await forgets(slurm, number)
    await world.kill()
    async with world.working():
        await world.reaches("unseen", "NonZeroExitCode")
        await world.reaches("late", "Timeout")
    assert world.status("unseen")["exitCode"] == 7
    assert world.says("late")[0] == "Failed"


async def test_tasks_of_an_array_that_slurm_forgets(slurm: AccountingHost, world: World) -> None:
    """The end of task 0 comes from slurmdbd; task 2 is cancelled before it starts, and no daemon has a record of it."""
    script = "until [ -e /var/spool/task-$SLURM_ARRAY_TASK_ID ]; do sleep 0.1; done; exit $SLURM_ARRAY_TASK_ID"
    world.run("tasks", script, array="0-3%1", backoffLimit=1)
    async with world.working():
        await world.reaches("tasks", "Running")
    number = world.status("tasks")["jobId"]
    _ = await command(slurm, "scancel", f"{number}_2")
    for task, following in ((0, 1), (1, 3)):
        (slurm.shared / f"task-{task}").touch()
        await asyncio.to_thread(slurm.wait_for, partial(_runs, slurm, number, following), f"{task} ends", PATIENCE)
    await asyncio.to_thread(slurm.wait_for, lambda: _listed(slurm, number) == 1, "tasks are forgotten", PATIENCE)
    await world.kill()
    async with world.working():
        (slurm.shared / "task-3").touch()
        await until(lambda: "the operator asks slurmdbd about the other" in world.status("tasks")["summary"])
        world.ahead = HISTORY_PATIENCE
        await until(lambda: world.condition("Finished", "tasks")[0] == "True")
    assert world.says("tasks") == ("Failed", "NonZeroExitCode")
    assert world.status("tasks")["array"] == {"pending": 0, "running": 0, "succeeded": 1, "failed": 3}
    assert world.status("tasks")["exitCode"] == 3
    assert "(1 of 4)" in world.condition("Finished", "tasks")[2]
    assert world.status("tasks")["jobId"] == number


def _runs(slurm: AccountingHost, array: int, task: int) -> bool:
    """Whether a task of an array runs."""
    return slurm.run("squeue", "-h", "-j", str(array), "-t", "R", "-o", "%K").stdout.split() == [str(task)]


def _listed(slurm: AccountingHost, array: int) -> int:
    """How many tasks of an array slurmctld lists."""
    return len(slurm.run("squeue", "-h", "-r", "-j", str(array), "-t", "all", "-o", "%K").stdout.split())


async def test_a_lost_answer_is_found(slurm: AccountingHost, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While slurmctld has the job, and when only slurmdbd knows of it; neither is submitted a second time."""
    real = slurm_calls.submit

    async def unanswered(*arguments: Any) -> Any:
        _ = await real(*arguments)
        raise errors.Timeout("no answer")

    async def killed(*arguments: Any) -> Any:
        _ = await real(*arguments)
        raise Killed

    # Slurm's lists take a name with a comma for two names.
    names = {name: f"{name},{world.uids}" for name in ("short", "running")}
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "submit", killed)
        world.run("short", f"#SBATCH --job-name={names['short']}")
        with pytest.raises(Killed):
            await world.until(lambda: False)
    (number,) = await asyncio.to_thread(numbers, slurm, names["short"])
    await forgets(slurm, number)
    world.ahead = 2 * SETTLED
    await world.kill()
    monkeypatch.setattr(slurm_calls, "submit", unanswered)
    world.run("running", f"#SBATCH --job-name={names['running']}\n{LONG}")
    async with world.working():
        await world.reaches("short", "Completed")
        await world.reaches("running", "Running")
        world.delete("running")
        await until(lambda: not world.exists("running"))
    assert world.status("short")["jobId"] == number
    for name in names.values():
        assert len(await asyncio.to_thread(numbers, slurm, name)) == 1


async def test_a_call_that_arrives_late_leaves_one_job(
    slurm: AccountingHost, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As slurmrestd does where it limits calls: it goes on with a submission that its caller has given up."""
    submit, history = slurm_calls.submit, slurm_calls.history
    waiting: list[tuple[Any, ...]] = []
    asked = asyncio.Event()

    async def waits(*arguments: Any) -> Any:
        waiting.append(arguments)
        raise errors.Timeout("no answer")

    async def noted(*arguments: Any) -> Any:
        found = await history(*arguments)
        asked.set()
        return found

    name = f"late-{world.uids}"
    monkeypatch.setattr(slurm_calls, "history", noted)
    async with world.working():
        with monkeypatch.context() as patched:
            patched.setattr(slurm_calls, "submit", waits)
            world.run("late", f"#SBATCH --job-name={name}\n{LONG}")
            await until(lambda: waiting)
        world.ahead += SETTLED
        await asked.wait()
        world.ahead += HISTORY_PATIENCE
        await world.reaches("late", "Running")
        number = world.status("late")["jobId"]
        second = await submit(*waiting[0])
        await until(lambda: "LateJobCancelled" in world.events.reasons())
        assert world.status("late")["jobId"] == number
        world.delete("late")
        world.ahead += MARGIN
        await until(lambda: not world.exists("late"))
    assert second.id != number
    left = await asyncio.to_thread(slurm.run, "squeue", "-h", "-n", name, "-t", "PENDING,RUNNING", "-o", "%i")
    assert left.stdout == ""


async def test_slurmrestd_ends_at_each_step(slurm: AccountingHost) -> None:
    """Before a submission, between the submission and its answer, beside a job, and while a job is cancelled."""
    async with Cut(slurm) as cut, _world(slurm, cut.url) as world:
        names = {name: f"{name}-{world.uids}" for name in ("ends", "goes")}
        scripts = {"ends": "until [ -e /var/spool/enough ]; do sleep 0.1; done; exit 7", "goes": LONG}
        async with world.working():
            await cut.stop()
            await until(lambda: world.contact() is ContactState.UNREACHABLE)
            world.run("ends", f"#SBATCH --job-name={names['ends']}\n{scripts['ends']}")
            await until(lambda: world.condition("Submitted", "ends")[1] == "SlurmUnreachable")
            await cut.start(before_answer_to=b"/job/submit")
            await cut.done()
            await cut.start()
            await world.reaches("ends", "Running")
            world.run("goes", f"#SBATCH --job-name={names['goes']}\n{scripts['goes']}")
            await world.reaches("goes", "Running")
            await cut.stop()
            (slurm.shared / "enough").touch()
            await until(lambda: world.condition("Submitted", "ends")[1] == "SlurmUnreachable")
            await leaves(slurm, world.status("ends")["jobId"])
            assert world.says("ends") == ("Running", "Running")
            world.delete("goes")
            await until(lambda: "will be cancelled once Slurm answers" in world.status("goes")["summary"])
            await cut.start(before_answer_to=b"DELETE ")
            await cut.done()
            assert world.exists("goes")
            await cut.start()
            await world.reaches("ends", "NonZeroExitCode")
            await until(lambda: not world.exists("goes"))
        assert world.status("ends")["exitCode"] == 7
        for name in names.values():
            assert len(await asyncio.to_thread(numbers, slurm, name)) == 1


async def test_annotations_cancel_jobs_and_keep_their_objects(slurm: AccountingHost, world: World) -> None:
    """A job that runs, an array of which a part runs, one that is held, and one that was never submitted."""
    names = ("runs", "array", "held", "never")
    titles = {name: f"{name}-{world.uids}" for name in names}
    specs: dict[str, dict[str, Any]] = {
        "runs": {"backoffLimit": 2},
        "array": {"array": "0-3%1"},
        "held": {"parameters": FUTURE},
        "never": {"suspend": True},
    }
    for name, spec in specs.items():
        world.run(name, f"#SBATCH --job-name={titles[name]}\n{LONG}", **spec)
    async with world.working():
        await world.reaches("runs", "Running")
        await world.reaches("array", "Running")
        await world.reaches("held", "Queued")
        world.job("held", suspend=True)
        await world.reaches("held", "Held")
        await world.reaches("never", "Suspended")
        for name in names:
            world.annotate(name, cancel="true")
        for name in names:
            await world.reaches(name, "Cancelled")
        await until(lambda: all(world.condition("Finished", name)[0] == "True" for name in names))
    for name in names:
        assert world.says(name) == ("Failed", "Cancelled")
        assert ("jobId" in world.status(name)) == (name != "never")
    # Slurm does not list one that was cancelled before it was eligible.
    for name, count in {"runs": 1, "never": 0}.items():
        assert len(await asyncio.to_thread(numbers, slurm, titles[name])) == count
    assert world.status("array")["array"]["failed"] == 4
    await leaves(slurm, world.status("runs")["jobId"])


async def test_a_dry_run_shows_the_request_that_is_sent(
    slurm: AccountingHost, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """slurmrestd takes what is shown as it stands, and the same comes from the operator without `dryRun`."""
    sent: list[tuple[str, str, bytes]] = []
    real = Transport.send

    async def recorded(self: Transport, request: errors.Request, *arguments: Any, **options: Any) -> Any:
        if request.method == "POST" and request.path.endswith("/job/submit"):
            sent.append((request.method, request.path, written(arguments[2])))
        return await real(self, request, *arguments, **options)

    monkeypatch.setattr(Transport, "send", recorded)
    name = f"dry-{world.uids}"
    spec: dict[str, Any] = {"env": [{"name": "A", "value": "grüße"}], "parameters": {"nice": 10}}
    script = f"#SBATCH --job-name={name} --time=5\ntrue"
    world.run("same", script, dryRun=True, **spec)
    async with world.working():
        await world.reaches("same", "RequestShown")
    assert sent == []
    assert await asyncio.to_thread(numbers, slurm, name) == []
    shown = world.status("same")["request"]
    headers = {
        "X-SLURM-USER-NAME": USER,
        "X-SLURM-USER-TOKEN": await MintedToken(slurm.jwt_key, USER).token(),
        "Content-Type": "application/json",
    }
    async with httpx.AsyncClient() as client:
        answer = await client.request(
            shown["method"], slurm.url + shown["path"], content=shown["body"].encode(), headers=headers, timeout=60
        )
    assert answer.status_code == 200, answer.text
    number = answer.json()["job_id"]
    await forgets(slurm, number)
    world.delete("same")
    world.run("same", script, **spec)
    async with world.working():
        await world.reaches("same", "Completed")
    assert sent == [(shown["method"], shown["path"], shown["body"].encode())]
    assert world.status("same")["jobId"] != number
    assert len(await asyncio.to_thread(numbers, slurm, name)) == 2


async def external_nodes(slurm: AccountingHost) -> bool:
    """Create nodes without a slurmd; false where Slurm has none."""
    async with SlurmClient(slurm.url, MintedToken(slurm.jwt_key, "root")) as client:
        try:
            for name, gpus in (("k-0", 2), ("k-1", 1)):
                files = ",".join(f"file=gpu-{number}" for number in range(gpus))
                await client.create_node(
                    f"NodeName={name} NodeAddr=127.0.0.1 Port={slurm.slurmctld_port} Sockets=1 CoresPerSocket=4 "
                    f"ThreadsPerCore=1 CPUs=4 RealMemory=1000 State=EXTERNAL Feature=k8s Gres=gpu:{gpus} "
                    f'GresConf="name=gpu,count={gpus},{files}"'
                )
        except errors.NotSupported:
            return False
        except errors.Conflict:
            return True
    return True


async def test_jobs_without_a_script(slurm: AccountingHost, world: World) -> None:
    spec: dict[str, Any] = {"script": None, "external": {}, "features": "k8s", "time": "10"}
    if not await external_nodes(slurm):
        world.job("old", **spec)
        async with world.working():
            await world.reaches("old", "SubmissionRefused")
        assert "needs Slurm 26.05.3 or newer" in world.condition("Submitted", "old")[2]
        return
    gang: dict[str, Any] = {
        "tasks": 3,
        "cpusPerTask": 2,
        "parameters": {"memory_per_cpu": 100, "tres_per_task": "gres/gpu=1"},
    }
    world.job("failed", **spec, **gang)
    async with world.working():
        await world.reaches("failed", "Running")
        # Slurm counts no memory with CR_Core.
        assert world.status("failed")["allocation"] == [
            {"node": "k-0", "cpus": 4, "memory": 0, "gres": ["gpu:2(IDX:0-1)"]},
            {"node": "k-1", "cpus": 2, "memory": 0, "gres": ["gpu:1(IDX:0)"]},
        ]
        world.job("waits", **spec, **gang)
        await world.reaches("waits", "Queued")
        world.job("failed", external={"ended": {"exitCode": 3, "comment": "pod a"}})
        await world.reaches("failed", "NonZeroExitCode")
        await world.reaches("waits", "Running")
        world.job("waits", external={"ended": {"exitCode": 0}})
        await world.reaches("waits", "Completed")
        world.job("cancelled", **spec)
        await world.reaches("cancelled", "Running")
        _ = await command(slurm, "scancel", str(world.status("cancelled")["jobId"]))
        await world.reaches("cancelled", "Cancelled")
        async with asyncio.timeout(PATIENCE):
            await until(lambda: world.status("failed").get("recorded") and world.status("waits").get("recorded"))
    number = str(world.status("failed")["jobId"])
    shown = await command(slurm, "sacct", "-n", "-P", "-X", "-j", number, "-o", "state%10,derivedexitcode,comment")
    state, code, comment = shown.strip().split("|")
    assert (state.partition(" ")[0], code, comment) == ("CANCELLED", "3:0", "pod a")


async def test_components_of_a_job_without_a_script(slurm: AccountingHost, world: World) -> None:
    if not await external_nodes(slurm):
        return
    driver = {"cpusPerTask": 2, "parameters": {"tres_per_task": "gres/gpu=2"}}
    parts = {"components": [driver, {"tasks": 2}]}
    common: dict[str, Any] = {"script": None, "features": "k8s", "time": "10", "parameters": {"memory_per_cpu": 10}}
    world.job("parts", external=parts, **common)
    async with world.working():
        await world.reaches("parts", "Running")
        assert world.status("parts")["allocation"] == [
            {"component": 0, "node": "k-0", "cpus": 2, "memory": 0, "gres": ["gpu:2(IDX:0-1)"]},
            {"component": 1, "node": "k-1", "cpus": 2, "memory": 0, "gres": []},
        ]
        number = world.status("parts")["jobId"]
        world.job("parts", external={**parts, "ended": {"exitCode": 3, "comment": "pod a"}})
        await world.reaches("parts", "NonZeroExitCode")
        assert await asyncio.to_thread(slurm.job_state, number + 1) == "CANCELLED"
        world.job("broken", external=parts, **common)
        await world.reaches("broken", "Running")
        _ = await command(slurm, "scancel", f"{world.status('broken')['jobId']}+1")
        await world.reaches("broken", "Cancelled")
        async with asyncio.timeout(PATIENCE):
            await until(lambda: world.status("parts").get("recorded"))
    shown = await command(slurm, "sacct", "-n", "-P", "-X", "-j", str(number), "-o", "jobid,derivedexitcode,comment")
    assert shown.split() == [f"{number}+0|3:0|pod", "a", f"{number}+1|3:0|pod", "a"]


async def test_a_job_that_a_crash_has_lost_gets_its_nodes_again(slurm: AccountingHost, world: World) -> None:
    if not await external_nodes(slurm):
        return
    await asyncio.to_thread(slurm.reconfigure)
    async with asyncio.timeout(PATIENCE):
        await until(lambda: slurm.saved("job_state"))
    saved = slurm.saved("job_state")
    shares = {"memory_per_cpu": 10, "tres_per_task": "gres/gpu=1"}
    gang: dict[str, Any] = {"tasks": 3, "cpusPerTask": 2, "parameters": shares}
    world.job("held", script=None, external={}, features="k8s", time="10", **gang)
    async with world.working():
        await world.reaches("held", "Running")
        before, name = world.status("held")["allocation"], world.status("held")["submission"]["name"]
        await asyncio.to_thread(slurm.stop, "slurmctld", kill=True)
        # What it has saved in these seconds is up to chance: here, nothing. Its next job has the same number.
        _ = (slurm.shared / "slurmctld" / "job_state").write_bytes(saved)
        await asyncio.to_thread(slurm.start_slurmctld)
        try:
            async with asyncio.timeout(PATIENCE):
                while not world.status("held")["submission"].get("again"):
                    # slurmdbd is given its time to tell of the end of a job that slurmctld does not have.
                    world.ahead += HISTORY_PATIENCE / 4
                    await asyncio.sleep(0.2)
                await until(lambda: world.status("held")["state"] == "Running")
        except TimeoutError:
            pytest.fail(f"it is not submitted again: {world.status('held')}, {world.events.told}")
        assert world.status("held")["allocation"] == before
        # Two tasks on one node and one on the other are two components; nothing else is left.
        shown = await command(slurm, "squeue", "-h", "-n", name, "-o", "%T %N %C")
        assert sorted(shown.splitlines()) == ["RUNNING k-0 4", "RUNNING k-1 2"]
        world.job("held", external={"ended": {"exitCode": 0}})
        await world.reaches("held", "Completed")


async def test_a_number_that_a_crash_has_given_to_another_job_is_left_alone(
    slurm: AccountingHost, world: World
) -> None:
    if not await external_nodes(slurm):
        return
    # Otherwise nothing is there yet that slurmctld could start from.
    await asyncio.to_thread(slurm.reconfigure)
    world.job("lost", script=None, external={}, features="k8s", time="10")
    async with world.working():
        await world.reaches("lost", "Running")
        # slurmctld writes its state every few seconds: what it has just started is forgotten.
        await asyncio.to_thread(slurm.stop, "slurmctld", kill=True)
        await asyncio.to_thread(slurm.start_slurmctld)
        other = await asyncio.to_thread(slurm.sbatch, LONG, "-C", "stays")
        world.job("lost", external={"ended": {"exitCode": 5}})
        await world.reaches("lost", "NonZeroExitCode")
        assert (world.status("lost")["state"], world.status("lost")["exitCode"]) == ("Failed", 5)
        assert world.status("lost")["allocation"]
    assert await asyncio.to_thread(slurm.job_state, other) in {"PENDING", "RUNNING"}
    _ = await command(slurm, "scancel", str(other))


async def test_jobs_that_had_ended_and_that_a_crash_brings_back_are_cancelled(
    slurm: AccountingHost, world: World
) -> None:
    if not await external_nodes(slurm):
        return
    for name in ("over", "gone"):
        world.job(name, script=None, external={}, features="k8s", time="10")
    world.run("script", LONG)
    names = ("over", "gone", "script")
    async with world.working():
        for name in names:
            await world.reaches(name, "Running")
        numbers = {name: world.status(name)["jobId"] for name in names}
        titles = [world.status(name)["submission"]["name"].encode() for name in names]
        before = slurm.saved("job_state")
        await asyncio.to_thread(slurm.reconfigure)

        def is_saved() -> bool:
            saved = slurm.saved("job_state")
            return saved != before and all(one in saved for one in titles)

        async with asyncio.timeout(PATIENCE):
            await until(is_saved)
        saved = slurm.saved("job_state")
        world.job("over", external={"ended": {"exitCode": 3, "comment": "pod a"}})
        await world.reaches("over", "NonZeroExitCode")
        async with asyncio.timeout(PATIENCE):
            await until(lambda: world.status("over").get("recorded"))
            for name in names[1:]:
                world.delete(name)
                await until(partial(lambda name: not world.exists(name), name))
        await asyncio.to_thread(slurm.stop, "slurmctld", kill=True)
        # The state of the seconds before is what a crash leaves.
        _ = (slurm.shared / "slurmctld" / "job_state").write_bytes(saved)
        await asyncio.to_thread(slurm.start_slurmctld)
        try:
            async with asyncio.timeout(PATIENCE):
                await until(lambda: world.events.reasons().count("EndedJobCancelled") == len(names))
        except TimeoutError:
            shown = await command(slurm, "squeue", "-t", "all", "-o", "%A %T")
            pytest.fail(f"they are not cancelled: {numbers}, {shown}, {world.events.told}")
        told = " ".join(words for _, reason, words in world.events.told if reason == "EndedJobCancelled")
        assert all(f"job {number} " in told for number in numbers.values())
        listed = ",".join(map(str, numbers.values()))

        def is_left() -> bool:
            shown = slurm.run("squeue", "-h", "-t", "pending,running", "-j", listed, "-o", "%A", check=False)
            return bool(shown.stdout)

        await asyncio.to_thread(slurm.wait_for, lambda: not is_left(), "they have ended", PATIENCE)
        shown = await command(slurm, "sacct", "-n", "-P", "-X", "-j", str(numbers["over"]), "-o", "derivedexitcode")
        assert shown.split() == ["3:0"]
