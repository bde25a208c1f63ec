"""Real Slurm runs the program for health checks, which tells it what they say, and drains nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.images.rootfs import ensure
from hack.machine import ports
from slinky_api.v1alpha1.nodeset.checks import Check
from slinky_operator.slurm.health_checks import programs, reports, tables
from slinky_operator.slurm.health_checks.reports import Report
from tests.support.slurm_host import SlurmHost

NODE = "n-0"
AS_IN_A_POD = """\
mkdir /run/key && cp -p /etc/slurm/slurm.key /run/key/ && mount -t tmpfs -o mode=755 tmpfs /etc/slurm \
&& mv /run/key/slurm.key /etc/slurm/ && exec slurmd -D -Z -N n-0 --conf-server """
"""slurmd's container has the key in /etc/slurm and nothing else."""


class Checked:
    """A node with checks."""

    def __init__(self, host: SlurmHost, given: Path) -> None:
        self.host, self.given = host, given

    def gives(self, *checks: dict[str, Any]) -> str:
        """Bring checks as the kubelet does; returns their revision."""
        table, files = tables.table(map(Check.model_validate, checks))
        for name, text in files.items():
            (self.given / name).write_text(text)
            (self.given / name).chmod(0o500)
        (self.given / "new").write_text(table.text())
        (self.given / "new").rename(self.given / tables.APPROVED)
        return table.revision

    def shown(self) -> str:
        """The node as scontrol shows it; empty while slurmctld does not know it."""
        found = self.host.run("scontrol", "show", "node", NODE, check=False)
        return "" if found.returncode else found.stdout

    def report(self) -> Report:
        """What the node has told; nothing counts as a report of nothing."""
        comment = next((line.strip() for line in self.shown().splitlines() if "Comment=" in line), "")
        return reports.read(comment.removeprefix("Comment=")) or Report("")


@pytest.fixture(params=["24.11", "26.05"])
def checked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checked]:
    tmp_path.chmod(0o755)
    given = tmp_path / "given"
    given.mkdir()
    keys = {**programs.KEYS, "HealthCheckInterval": "2"}
    lines = [*map(str, programs.LINES), *(f"{key}={value}" for key, value in keys.items())]
    host = SlurmHost(ensure(request.param), extra_conf="\n".join(lines))
    for name in (programs.PROLOG, programs.EPILOG):
        host.write_file(name, programs.program(), 0o444)
    host.binds[programs.GIVEN_FOLDER] = given
    found = Checked(host, given)
    with host:
        yield found


def start(host: SlurmHost) -> None:
    (port,) = ports.hold(1)
    conf = f"Port={port} CPUs=4 RealMemory=256 Features=all"
    command = f"{AS_IN_A_POD} 127.0.0.1:{host.slurmctld_port} --conf '{conf}'"
    host.start_slurmd(NODE, ["sh", "-c", command])


def test_slurm_runs_checks_at_the_start_at_intervals_and_around_jobs_and_drains_nothing(checked: Checked) -> None:
    host = checked.host
    good = f"test -e {programs.GIVEN_FOLDER}/good"
    disk = {"name": "disk", "script": f"#!/bin/sh\n{good} || {{ echo full; exit 1; }}\n"}
    odd = {"name": "odd", "script": "#!/no/such/shell\n"}
    first = checked.gives(disk, odd)
    start(host)

    host.wait_for(lambda: checked.report().revision == first, "the node has told of its checks")
    assert checked.report().failed == {"disk": "full"}
    assert list(checked.report().unknown) == ["odd"]

    scratch = {"name": "scratch", "script": '#!/bin/sh\necho "job $SLURM_JOB_ID"\nexit 1\n', "contexts": ["Prolog"]}
    (checked.given / "good").touch()
    second = checked.gives(disk, scratch)
    host.wait_for(lambda: checked.report().revision == second, "the node has told of other checks")
    assert not checked.report().failed

    assert host.run("srun", "--immediate=30", "hostname").returncode == 0
    host.wait_for(lambda: checked.report().failed == {"scratch": "job 1"}, "the node has told of its prolog")
    assert "DRAIN" not in checked.shown()
