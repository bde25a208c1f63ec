"""
``#SBATCH`` lines as read here and as read by real sbatch: slurmctld must store the same job.

Each line is submitted twice, held: by sbatch, and by a client with what :mod:`slurm_client.notation.sbatch` has made of
it. Then all that ``scontrol --json show jobs`` says about both is compared.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from hack.images.rootfs import ensure
from slurm_client import MintedToken, SlurmClient, errors
from slurm_client.notation import sbatch
from slurm_client.notation.compress import compress
from slurm_client.notation.hostlist import expand
from slurm_client.notation.sbatch.table import LETTERS, OPTIONS
from tests.support.slurm_host import SlurmHost
from tests.support.slurm_series import OLDER_IN_FULL

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES = r"""
-N2
-N2k
-N 2 -n4
-N4 -n2
-N1-2
-n3
-n2 -c2
-n4 --ntasks-per-node=2
-N2 --ntasks-per-node=2
--tasks-per-node=2
-B 1
--sockets-per-node=1 -N2
--threads-per-core=1
--ntasks-per-core=1
--ntasks-per-socket=2
--mem=100
--mem=1G
--mem=100K
--mem=0
--mem-per-cpu=10
-t 30
-t 1:30
-t 1:30:00
-t 2-12:30
--time=0
--time=UNLIMITED
-t 1-00:00:30
--time-min=10 -t 20
--array=1-10:2%3
-J "a b"
--comment='a "b" c'
--comment=a\ b
--comment=a#b
--comment="a#b" # rest
-q normal
--account=foo
--dependency=singleton
-L matlab:2
--exclusive
--exclusive=user
--exclusive=mcs
-s
-O
-O -n4
-k
--requeue --no-requeue
-w w-[0-1]
-w w-0,w-0
-w w-[0-1] -N1
-x w-1
--prefer=all
--contiguous
--tmp=5
--mincpus=1 -c2
--switches=2@10
--signal=USR1
--signal=B:USR1@60
--nice
--nice=-5
-H --priority=10
--open-mode=append
--mail-type=ALL --mail-user=me
--mail-type=NONE
--begin=2031-01-20T12:34:00
--begin=2031-01-2-03:04
--begin=010231
--begin=12/31/31
--begin=uts1959999999
--deadline=2031-01-20T12:34:00 -t 5
--delay-boot=5
--gres=gpu:1
--gres=none
--gres=gpu:h100:1
--gpus=2
--gpus-per-node=1
--gpus-per-task=1 -n2
--gpus-per-socket=1 --sockets-per-node=1
--gpus=2 --cpus-per-gpu=2
--gpus=2 --mem-per-gpu=10
--gpus=2 --ntasks-per-gpu=1
--gpus-per-node=1 --ntasks-per-gpu=1 -N2
--gres=gpu:1 --ntasks-per-gpu=1
--ntasks-per-gpu=1 -N2
--gpus=4 --gpus-per-task=2
--gpus=h100:2 --gpus-per-task=h100:1 -c2 -n2
--gpus=1,2 --tres-per-task=gres/gpu=1
--gpus-per-node=2 --gpus-per-task=1 -N2
--gpu-bind=closest --gpus=1
--gpu-freq=high --gpus=1
--tres-per-task=cpu=2,gres/gpu=1 -n2
--gres-flags=disable-binding
-m cyclic:block
-m plane=2 -n4
-m arbitrary -w w-0,w-1
-m arbitrary,pack -w w-0
-m *:block
-m nopack
--hint=nomultithread
--hint=multithread
--hint=nomultithread,multithread
--cpu-freq=high
--network=x
--profile=task
--reboot
--wckey=foo
--extra=foo
--acctg-freq=task=15,network=10
--container-id=foo
--segment=1 -N2
--spread-job
--use-min-nodes
--kill-on-invalid-dep=yes
--wait-all-nodes=1
--export=NONE
--mem-bind=local
--part=all
-N1,2
-N1-4 -n1
--cpus-per-task=2 --mem-per-cpu=5 -N2
--
""".strip().splitlines()

REFUSED = r"""
-p nosuch
-N
--mem
--batch=all
--signal=R:10@5
--requeue=expedite
--mem=1X
--mem=1g --mem-per-cpu=4
--mem-p=3
--time=1:2:3:4
--time=abc
--exclusive -s
--hold=yes
--bogus
word
-- word
-n0
--wait-all-nodes=2
--signal=NOSUCH
--mail-type=NOSUCH
--begin=whenever
--begin=2031-1-2T03:04
--ntasks-per-gpu=1
--ntasks-per-gpu=1 -N1-2
--ntasks-per-gpu=1 -w w-0
--gpus=3 --gpus-per-task=2
--gpus=2 --gpus-per-task=1 -n1
--hint=multithread,nomultithread
--acctg-freq=task=x
-m plane=0 -m block
--comment='a
""".strip().splitlines()

ONLY_NEW = [
    "-N2 -B 1:1:1",
    "-B 1:2:1 -N1",
    "--hint=memory_bound",
    "--cores-per-socket=1",
    "--mem-update=10@5",
    "--mem-update=10@5",
]

NOISE = frozenset({
    "job_id", "submit_time", "eligible_time", "accrue_time", "last_sched_evaluation", "allocating_node", "submit_line",
    "standard_output", "standard_error", "standard_input", "current_working_directory", "stdin_expanded",
    "stdout_expanded", "stderr_expanded", "array_job_id", "step_id", "preemptable_time", "pre_sus_time",
    "oom_kill_step",
})  # fmt: skip
"""What differs between two submissions of the same; slurmrestd says 0 for a step that is not killed, sbatch nothing."""


@pytest.fixture(scope="module", params=OLDER_IN_FULL)
def host(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """A cluster with GPUs in its configuration, and licenses."""
    series: str = request.param
    with SlurmHost(ensure(series), extra_conf="Licenses=matlab:3\nGresTypes=gpu,shard") as slurm:
        slurm.add_node("w-0", cpus=4)
        slurm.add_node("w-1", cpus=2)
        yield slurm


def _script(line: str) -> str:
    return f"#!/bin/sh\n#SBATCH -H -J j\n#SBATCH {line}\n\nsleep 1\n#SBATCH --bogus\n"


def _by_sbatch(host: SlurmHost, line: str) -> int | None:
    answer = host.run("sbatch", "--parsable", stdin=_script(line), check=False)
    return int(answer.stdout) if answer.returncode == 0 else None


async def _by_client(slurm: SlurmClient, line: str) -> int | None:
    try:
        return (await slurm.submit_job(sbatch.parse(_script(line)).spec)).id
    except (errors.InvalidRequest, errors.NotFound, errors.NotSupported):
        return None


async def test_slurmctld_stores_the_same_job_as_from_sbatch(host: SlurmHost) -> None:
    new = host.run("sbatch", "--version").stdout.split()[1] >= "26"
    pairs: dict[str, tuple[int | None, int | None]] = {}
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root")) as slurm:
        for line in [*LINES, *(ONLY_NEW if new else [])]:
            pairs[line] = (_by_sbatch(host, line), await _by_client(slurm, line))
    assert {line: pair for line, pair in pairs.items() if None in pair} == {}
    stored = {job["job_id"]: job for job in json.loads(host.run("scontrol", "--json", "show", "jobs").stdout)["jobs"]}
    assert {
        line: differing
        for line, (one, other) in pairs.items()
        if one is not None and other is not None and (differing := _differences(stored[one], stored[other]))
    } == {}


def _differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    found = {key: (_told(key, one.get(key)), _told(key, other.get(key))) for key in (one.keys() | other.keys()) - NOISE}
    return {key: pair for key, pair in found.items() if pair[0] != pair[1]}


def _told(key: str, value: Any) -> Any:
    """Return a value without what the scheduler notes, and without the two ways to write a list of nodes."""
    if key == "flags":
        return sorted(set(value) - {"DEPENDENT"})
    return expand(value) if key == "required_nodes" else value


async def test_both_refuse_the_same(host: SlurmHost) -> None:
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root")) as slurm:
        found = {line: (_by_sbatch(host, line), await _by_client(slurm, line)) for line in REFUSED}
    assert found == dict.fromkeys(REFUSED, (None, None))


async def test_only_the_newest_data_parser_has_some_options(host: SlurmHost) -> None:
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root"), api_version="v0.0.42") as slurm:
        with pytest.raises(errors.NotSupported, match="cores_per_socket"):
            await slurm.submit_job(sbatch.parse(_script("--cores-per-socket=1")).spec)


def test_every_option_of_sbatch_is_known(host: SlurmHost) -> None:
    shown = host.run("sbatch", "--help").stdout
    names = set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", shown))
    assert len(names) > 80
    # Of these the help says that sbatch has them, and sbatch refuses them.
    assert {name for name in names - set(OPTIONS) if "unrecognized" not in _complaint(host, name)} == set()
    letters = set(re.findall(r"^\s+-([A-Za-z]), --", shown, flags=re.MULTILINE))
    assert letters <= set(LETTERS)


def _complaint(host: SlurmHost, name: str) -> str:
    return host.run("sbatch", "--test-only", f"--{name}", stdin="#!/bin/sh\n", check=False).stderr


@pytest.mark.parametrize(
    "names",
    [
        ["w-0", "w-1", "w-2", "w-7", "login"],
        ["n08", "n09", "n10", "n11"],
        ["n9", "n10", "n11", "n1"],
        ["r1n0", "r1n1", "r2n0"],
        ["a1-ib", "a2-ib"],
        ["x", "x1", "x02", "x03"],
    ],
)
def test_hostlists_are_those_of_slurm(host: SlurmHost, names: list[str]) -> None:
    compressed = compress(names)
    assert host.run("scontrol", "show", "hostnames", compressed).stdout.split() == names
    written = host.run("scontrol", "show", "hostlist", ",".join(names)).stdout.strip()
    assert list(expand(written)) == names
    assert compressed == written
