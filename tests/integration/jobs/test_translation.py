"""
Specs of job objects against real sbatch: slurmctld must store the same job, and jobs must run with what they ask for.

What single ``#SBATCH`` lines become is compared in ``tests/integration/slurm_client/test_sbatch_lines.py``. Here are
fields, which stand where sbatch has its command line, beside lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hack.images.rootfs import ensure
from slinky_api.v1alpha1.slurmjob.submission import JobVariable, SlurmJobSpec
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.jobs.translation import Submission, translate
from slurm_client import JobSpec, MintedToken, SlurmClient, errors
from tests.support.slurm_host import SlurmHost

OUTPUT = "/var/spool/jobs/out"
NAME = "sample"

SAME: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "nothing": ("", {}, []),
    "nodes": ("", {"nodes": 2}, ["--nodes=2"]),
    "a range of nodes": ("", {"nodes": "1-2", "tasks": 2}, ["--nodes=1-2", "--ntasks=2"]),
    "a list of sizes": ("", {"nodes": "1,2"}, ["--nodes=1,2"]),
    "tasks": ("", {"tasks": 3, "cpusPerTask": 2}, ["-n3", "-c2"]),
    "memory": ("", {"memory": "1G"}, ["--mem=1G"]),
    "memory in Kubernetes' words": ("", {"memory": "100Mi"}, ["--mem=100M"]),
    "all memory": ("", {"memory": 0}, ["--mem=0"]),
    "gres": ("", {"gres": "gpu:1"}, ["--gres=gpu:1"]),
    "minutes": ("", {"time": 30}, ["--time=30"]),
    "hours": ("", {"time": "1:30:00"}, ["--time=1:30:00"]),
    "days": ("", {"time": "2-12:30"}, ["--time=2-12:30"]),
    "no limit": ("", {"time": "UNLIMITED"}, ["--time=UNLIMITED"]),
    "features": ("", {"features": "all&fast"}, ["--constraint=all&fast"]),
    "one of features": ("", {"features": "[all|fast]"}, ["--constraint=[all|fast]"]),
    "array": ("", {"array": "0-9:3%2"}, ["--array=0-9:3%2"]),
    "partition": ("", {"partition": "all,night"}, ["--partition=all,night"]),
    "account and qos": ("", {"account": "physics", "qos": "normal"}, ["-A", "physics", "-q", "normal"]),
    "requeue": ("", {"requeue": True}, ["--requeue"]),
    "no requeue": ("--requeue", {"requeue": False}, ["--no-requeue"]),
    "a field over a line": ("-N1 --mem=5G -t 5", {"nodes": 2, "memory": "1G"}, ["--nodes=2", "--mem=1G"]),
    "lines and a field together": ("-N4", {"tasks": 2}, ["-n2"]),
    "a layout and nodes": ("--ntasks-per-node=2", {"nodes": 2}, ["-N2"]),
    "gpus of lines": ("--gpus=2 --cpus-per-gpu=1", {"nodes": 1}, ["-N1"]),
    "arguments": ("", {"args": ["a b", "$c"]}, []),
    "comment": ("", {"parameters": {"comment": "a 'b' \"c\" #d"}}, ["--comment=a 'b' \"c\" #d"]),
    "nice": ("--nice=5", {"parameters": {"nice": 7}}, ["--nice=7"]),
    "memory of CPUs": ("", {"parameters": {"memory_per_cpu": 10}}, ["--mem-per-cpu=10"]),
    "tasks of nodes": ("", {"nodes": 2, "parameters": {"tasks_per_node": 2}}, ["-N2", "--ntasks-per-node=2"]),
    "gpus": ("", {"parameters": {"tres_per_job": "gres/gpu:2"}}, ["--gpus=2"]),
    "gpus of tasks": (
        "",
        {"tasks": 2, "parameters": {"tres_per_task": "gres/gpu:1"}},
        ["-n2", "--tres-per-task=gres/gpu:1"],
    ),
    "memory of gpus": (
        "",
        {"parameters": {"tres_per_job": "gres/gpu:1", "memory_per_tres": "gres/gpu:10"}},
        ["--gpus=1", "--mem-per-gpu=10"],
    ),
    "mail": (
        "",
        {"parameters": {"mail_type": ["END", "TIME=80%"], "mail_user": "me"}},
        ["--mail-type=END,TIME_LIMIT_80", "--mail-user=me"],
    ),
    "signal": (
        "",
        {"parameters": {"kill_warning_signal": "USR1", "kill_warning_delay": 90, "kill_warning_flags": ["BATCH_JOB"]}},
        ["--signal=B:USR1@90"],
    ),
    "exclusive": ("", {"parameters": {"shared": ["none"]}}, ["--exclusive"]),
    "exclusive of a user": ("", {"parameters": {"shared": ["user"]}}, ["--exclusive=user"]),
    "oversubscribe": ("", {"parameters": {"shared": ["oversubscribe"]}}, ["--oversubscribe"]),
    "begin": ("", {"parameters": {"begin_time": 1999999999}}, ["--begin=uts1999999999"]),
    "deadline": ("", {"time": 5, "parameters": {"deadline": 1999999999}}, ["-t5", "--deadline=uts1999999999"]),
    "dependency": ("", {"parameters": {"dependency": "singleton"}}, ["--dependency=singleton"]),
    "licenses": ("", {"parameters": {"licenses": "matlab:2"}}, ["--licenses=matlab:2"]),
    "required nodes": ("", {"parameters": {"required_nodes": ["w-0", "w-1"]}}, ["-w", "w-0,w-1"]),
    "excluded nodes": ("", {"parameters": {"excluded_nodes": "w-1"}}, ["-x", "w-1"]),
    "switches": ("", {"parameters": {"required_switches": 2, "wait_for_switch": 600}}, ["--switches=2@10"]),
    "open mode": ("", {"parameters": {"open_mode": ["APPEND"]}}, ["--open-mode=append"]),
    "a node that fails": ("", {"parameters": {"kill_on_node_fail": False}}, ["--no-kill"]),
    "distribution": ("", {"tasks": 4, "parameters": {"distribution": "plane=2"}}, ["-n4", "-m", "plane=2"]),
    "delay of boots": ("", {"parameters": {"delay_boot": 300}}, ["--delay-boot=5"]),
    "least time": ("", {"time": 20, "parameters": {"time_minimum": 10}}, ["-t20", "--time-min=10"]),
    "temporary disk": ("", {"parameters": {"temporary_disk_per_node": 5}}, ["--tmp=5"]),
    "cpus of nodes": ("", {"cpusPerTask": 1, "parameters": {"minimum_cpus_per_node": 2}}, ["-c1", "--mincpus=2"]),
    "binding of gres": (
        "",
        {"gres": "gpu:1", "parameters": {"flags": ["GRES_BINDING_DISABLED"]}},
        ["--gres=gpu:1", "--gres-flags=disable-binding"],
    ),
    "reboot": ("", {"parameters": {"reboot": True}}, ["--reboot"]),
    "overcommit": ("", {"tasks": 4, "parameters": {"overcommit": True}}, ["-n4", "-O"]),
    "layout": (
        "",
        {"nodes": 1, "parameters": {"sockets_per_node": 1, "threads_per_core": 1}},
        ["-N1", "--sockets-per-node=1", "--threads-per-core=1"],
    ),
}  # fmt: skip
"""Line of the script, fields, and what sbatch has on its command line instead of them."""

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no such partition": ({"partition": "nosuch"}, ["-p", "nosuch"]),
    "nodes backwards": ({"nodes": "3-2"}, ["-N3-2"]),
    "a size that is none": ({"memory": "1X"}, ["--mem=1X"]),
    "a time that is none": ({"time": "1:2:3:4"}, ["-t", "1:2:3:4"]),
    "an array that is none": ({"array": "a-b"}, ["--array=a-b"]),
    "an array that is too large": ({"array": "0-1000000"}, ["--array=0-1000000"]),
    "no such gres": ({"gres": "nosuch:1"}, ["--gres=nosuch:1"]),
    "no such feature": ({"features": "nosuch"}, ["-C", "nosuch"]),
    "two kinds of memory": ({"memory": "1G", "parameters": {"memory_per_cpu": 5}}, ["--mem=1G", "--mem-per-cpu=5"]),
    "no such node": ({"parameters": {"required_nodes": ["nosuch"]}}, ["-w", "nosuch"]),
    "no such signal": ({"parameters": {"kill_warning_signal": "NOSUCH"}}, ["--signal=NOSUCH"]),
    "no such license": ({"parameters": {"licenses": "nosuch"}}, ["-L", "nosuch"]),
}

NOISE = frozenset({
    "job_id", "submit_time", "eligible_time", "accrue_time", "last_sched_evaluation", "allocating_node", "submit_line",
    "standard_output", "standard_error", "standard_input", "stdin_expanded", "stdout_expanded", "stderr_expanded",
    "array_job_id", "step_id", "preemptable_time", "pre_sus_time", "oom_kill_step", "command",
})  # fmt: skip
"""What differs between two submissions of the same; ``command`` is the path of sbatch's script."""


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def host(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """A cluster of two nodes, with GPUs in its configuration, licenses, and a folder for output."""
    series: str = request.param
    conf = "Licenses=matlab:3\nGresTypes=gpu,shard\nPartitionName=night Nodes=ALL State=UP"
    with SlurmHost(ensure(series), extra_conf=conf) as slurm:
        slurm.add_node("w-0", cpus=4, features=("all", "fast"))
        slurm.add_node("w-1", cpus=2, features=("all", "fast"))
        (slurm.shared / "jobs").mkdir()
        yield slurm


def _script(line: str) -> str:
    return f"#!/bin/sh\n#SBATCH -H -J {NAME} -D /tmp\n" + (f"#SBATCH {line}\n" if line else "") + "sleep 1\n"


def _translated(line: str, fields: dict[str, Any]) -> Submission:
    return translate(SlurmJobSpec(script=_script(line), **fields), name="other")


async def _submitted(slurm: SlurmClient, line: str, fields: dict[str, Any]) -> int | None:
    try:
        return (await slurm.submit_job(_translated(line, fields).job)).id
    except (InvalidJob, errors.InvalidRequest, errors.NotFound):
        return None


def _by_sbatch(host: SlurmHost, line: str, options: list[str]) -> int | None:
    answer = host.run("sbatch", "--parsable", *options, stdin=_script(line), check=False)
    return int(answer.stdout) if answer.returncode == 0 else None


async def test_slurmctld_stores_the_same_job_as_from_sbatch(host: SlurmHost) -> None:
    pairs: dict[str, tuple[int | None, int | None]] = {}
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root")) as slurm:
        for name, (line, fields, options) in SAME.items():
            pairs[name] = (_by_sbatch(host, line, options), await _submitted(slurm, line, fields))
    assert {name: pair for name, pair in pairs.items() if None in pair} == {}
    stored = {job["job_id"]: job for job in json.loads(host.run("scontrol", "--json", "show", "jobs").stdout)["jobs"]}
    assert {
        name: differing
        for name, (one, other) in pairs.items()
        if one is not None and other is not None and (differing := _differences(stored[one], stored[other]))
    } == {}


def _differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    found = {key: (_told(key, one.get(key)), _told(key, other.get(key))) for key in (one.keys() | other.keys()) - NOISE}
    return {key: pair for key, pair in found.items() if pair[0] != pair[1]}


def _told(key: str, value: Any) -> Any:
    """Return a value without the flag that the scheduler adds."""
    return sorted(set(value) - {"DEPENDENT"}) if key == "flags" else value


async def test_both_refuse_the_same(host: SlurmHost) -> None:
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root")) as slurm:
        found = {
            name: (_by_sbatch(host, "", options), await _submitted(slurm, "", fields))
            for name, (fields, options) in REFUSED.items()
        }
    assert found == dict.fromkeys(REFUSED, (None, None))


HOSTILE = [
    "a b",
    "$HOME",
    "`id`",
    "it's",
    '"x"',
    "\\",
    "\n#SBATCH --uid=0\ntouch /var/spool/jobs/never\n",
    "",
    "é*",
    "-n",
]


async def _ran(host: SlurmHost, spec: SlurmJobSpec) -> bytes:
    """Run a job of a spec that writes `OUTPUT`, and return what it wrote."""
    output = host.shared / "jobs" / "out"
    output.unlink(missing_ok=True)
    job: JobSpec = translate(spec, name=NAME, user="root").job
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root")) as slurm:
        finished = await slurm.wait_job((await slurm.submit_job(job)).id)
    assert finished.succeeded
    return output.read_bytes()


async def test_a_program_gets_its_arguments_as_they_are(host: SlurmHost) -> None:
    spec = SlurmJobSpec(command=("printf", "<%s>"), args=tuple(HOSTILE), output=OUTPUT)
    assert await _ran(host, spec) == "".join(f"<{each}>" for each in HOSTILE).encode()
    assert not (host.shared / "jobs" / "never").exists()


async def test_a_script_gets_its_arguments_as_they_are(host: SlurmHost) -> None:
    spec = SlurmJobSpec(script='#!/bin/sh\nprintf "<%s>" "$@"\n', args=tuple(HOSTILE), output=OUTPUT)
    assert await _ran(host, spec) == "".join(f"<{each}>" for each in HOSTILE).encode()


HEADERS = (
    "-w w-0 -n1",
    "-w w-0 -n2 -c2 --mem=100 --time=5 -p all",
    "-w w-0 --mem-per-cpu=10 --nice=5 --signal=USR1 --open-mode=append --exclusive -D /var/spool",
)
OF_ONE_RUN = frozenset({
    "HOME", "PWD", "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME", "SLURM_TASK_PID",
    "SLURM_JOB_SLUID", "SLURM_PRIO_PROCESS", "SLURM_SUBMIT_HOST", "SLURM_TRES_PER_TASK",
})  # fmt: skip
"""
What two runs do not share, what depends on where sbatch runs, and a variable that 24.11 alone has.

sbatch 24.11 repeats in SLURM_TRES_PER_TASK what SLURM_CPUS_PER_TASK says.
"""


@pytest.mark.parametrize("line", HEADERS)
async def test_a_job_has_the_variables_that_it_would_have_from_sbatch(host: SlurmHost, line: str) -> None:
    script = f"#!/bin/sh\n#SBATCH -J {NAME} -o {OUTPUT} {line}\nenv -0\n"
    spec = SlurmJobSpec(script=script, env=(JobVariable(name="OWN", value="a\nb"),))
    ours = _variables(await _ran(host, spec))
    folder = "/var/spool" if "-D" in line else "/tmp"
    assert ours.pop("SLURM_SUBMIT_DIR") == folder
    assert (ours.pop("OWN"), ours.pop("USER"), ours.pop("LOGNAME")) == ("a\nb", "root", "root")
    output = host.shared / "jobs" / "out"
    output.unlink()
    job = int(host.run("env", "-i", f"PATH={ours['PATH']}", "sbatch", "--parsable", stdin=script).stdout)
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root")) as slurm:
        assert (await slurm.wait_job(job)).succeeded
    theirs = _variables(output.read_bytes())
    assert theirs.pop("SLURM_SUBMIT_DIR")
    assert ours == theirs


def _variables(listed: bytes) -> dict[str, str]:
    pairs = (each.partition("=") for each in listed.decode().split("\0") if each)
    return {name: value for name, _, value in pairs if name not in OF_ONE_RUN}
