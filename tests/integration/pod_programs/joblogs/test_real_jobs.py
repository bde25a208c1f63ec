"""Output of jobs that a real slurmd runs as an ordinary user, followed as they run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.images.rootfs import ensure
from slinky_operator.slurm import naming
from tests.support import job_logs
from tests.support.job_logs import Followed, Node
from tests.support.slurm_host import NOBODY, SlurmHost

SCRIPT = """\
echo one; echo problem >&2
while [ ! -e /var/spool/go ]; do sleep 0.1; done
echo two
exit 3
"""


@pytest.fixture(params=["24.11", "26.05"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[SlurmHost, Node]]:
    """A cluster with one node, and the server beside it; its folder is where jobs find it in a pod."""
    with job_logs.node() as node:
        host = SlurmHost(ensure(request.param))
        (host.shared / "job-output").mkdir()
        host.binds[naming.JOB_OUTPUT_FOLDER] = node.output
        with host:
            host.add_node("n1")
            yield host, node


def test_a_job_is_followed_while_it_runs(pair: tuple[SlurmHost, Node]) -> None:
    host, node = pair
    place = f"{naming.JOB_OUTPUT_FOLDER}/u5g8-%j"
    as_user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    options = ("--parsable", "--chdir=/", f"--output={place}.out", f"--error={place}.err")
    job = int(host.run(*as_user, "sbatch", *options, stdin=f"#!/bin/sh\n{SCRIPT}").stdout)
    pod = node.root / "pod"
    pod.mkdir()
    pod.chmod(0o755)
    streams = {
        stream: node.place(f"u5g8-{job}.{end}", NOBODY) for stream, end in (("stdout", "out"), ("stderr", "err"))
    }
    followed = Followed(pod, streams)
    out, err = followed.start("stdout"), followed.start("stderr")
    try:
        out.prints(b"one\n")
        err.prints(b"problem\n")
        (host.shared / "go").touch()
        out.prints(b"one\ntwo\n")
        host.wait_for(lambda: host.job_state(job) == "FAILED", "the job ends")
        followed.end(3)
        out.ends_with(3)
        err.ends_with(3)
        assert (out.printed, err.printed) == (b"one\ntwo\n", b"problem\n")
        # Another user has no part in it.
        assert node.get(node.token(f"u5g8-{job}.out", uid=job_logs.ALICE))[0] == 403
    finally:
        out.stop()
        err.stop()
