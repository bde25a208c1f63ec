"""Keys of auth/slurm rotated under running jobs, on real daemons of both releases: the order, and why it matters."""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from hack.images.rootfs import ensure
from slinky_operator.cluster.parts.keys.sets.key_sets import early_default
from tests.support.slurm_host import SLURM_UID, SlurmHost

pytestmark = pytest.mark.timeout(300)

NODE = "w-0"


def key(name: str) -> dict[str, Any]:
    return {"alg": "HS256", "kty": "oct", "kid": name, "k": base64.b64encode(secrets.token_bytes(32)).decode()}


def default(one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "use": "default"}


def put(host: SlurmHost, *keys: dict[str, Any]) -> None:
    """Give all daemons a key set, which nobody reads before a reconfigure."""
    path, new = host.configuration / "slurm.jwks", host.configuration / "new"
    new.write_bytes(key_set(*keys))
    os.chown(new, SLURM_UID, SLURM_UID)
    new.chmod(0o400)
    new.rename(path)


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def running(host: SlurmHost) -> int:
    """A batch job that goes on to another step, and to its end, once it may."""
    spool = "/var/spool"
    script = f"touch {spool}/begun-$SLURM_JOB_ID; until [ -e {spool}/go-$SLURM_JOB_ID ]; do sleep 0.1; done"
    job = host.sbatch(f"set -e; {script}; srun --overlap true", "--mem=10")
    host.wait_for((host.shared / f"begun-{job}").exists, f"job {job} has begun")
    return job


def ends_well(host: SlurmHost, job: int) -> None:
    (host.shared / f"go-{job}").touch()
    host.wait_for(lambda: host.job_state(job) == "COMPLETED", f"job {job} has ended well")


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    host = SlurmHost(ensure(request.param))
    try:
        yield host
    finally:
        host.close()


def begin(host: SlurmHost, first: dict[str, Any]) -> None:
    (host.configuration / "slurm.key").unlink()
    put(host, first)
    host.start()
    host.add_node(NODE, cpus=8, memory=1024)


def test_a_key_is_added_made_the_default_and_the_earlier_dropped_while_jobs_run(slurm: SlurmHost) -> None:
    a, b = key("a"), key("b")
    begin(slurm, a)
    jobs = [running(slurm) for _ in range(3)]
    for keys in ((a, b), (a, default(b)), (default(b),)):
        put(slurm, *keys)
        slurm.reconfigure()
        ends_well(slurm, jobs.pop(0))
        # One of each key lives through all steps that follow.
        jobs.append(running(slurm))
    for job in jobs:
        ends_well(slurm, job)


def test_a_default_that_slurmd_does_not_have_yet_separates_the_daemons(slurm: SlurmHost) -> None:
    a, b = key("a"), key("b")
    begin(slurm, a)
    before = slurm.starts(NODE)
    put(slurm, a, default(b))
    assert early_default(key_set(a), key_set(a, default(b))) == "b"
    slurm.run("scontrol", "reconfigure")
    log = slurm.folder / f"{NODE}.log"
    slurm.wait_for(lambda: "could not find kid=b" in log.read_text(), "slurmd refuses slurmctld")
    assert slurm.starts(NODE) == before


def test_a_slurmd_that_was_missed_is_seen_not_to_respond_and_comes_back_with_the_earlier_default(
    slurm: SlurmHost,
) -> None:
    a, b = key("a"), key("b")
    # slurmctld asks each node three times in this time.
    slurm.write_conf("SlurmdTimeout=12")
    begin(slurm, a)
    put(slurm, a, default(b))
    slurm.run("scontrol", "reconfigure")
    slurm.wait_for(lambda: not slurm.node_is_up(NODE), "its node does not respond")
    put(slurm, default(a), b)
    slurm.reconfigure()
    slurm.wait_for(lambda: slurm.node_is_up(NODE), "it responds again")
    put(slurm, a, default(b))
    slurm.reconfigure()
    slurm.wait_for(lambda: slurm.node_is_up(NODE), "it responds with the new key too")
