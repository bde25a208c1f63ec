"""Real slurmctlds take a new configuration with a copy of a live state, and say which jobs would end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from hack.images.rootfs import ensure
from hack.machine import ports
from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.rollout.preflight.jobs_copy import harmed
from slinky_operator.cluster.trials.jobs_pod import jobs_trial
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.slurm.pods.exit_messages import short
from tests.integration.slurm_conf.test_state_trial import CLUSTER, IMAGES, WAITS, Trial
from tests.support.slurm_host import SlurmHost

pytestmark = pytest.mark.timeout(300)

PARTITIONS = "PartitionName=stays Nodes=ALL State=UP\nPartitionName=goes Nodes=ALL State=UP"
TOPOLOGY = """\
- topology: default
  cluster_default: true
  tree:
    switches:
      - {{switch: {0}, nodes: ""}}
      - {{switch: root, children: {0}}}
"""


class JobsTrial(Trial):
    """A trial of jobs outside Kubernetes.

    Parameters
    ----------
    change
        A pattern in slurm.conf or another file, and what is to be there instead.
    """

    def __init__(self, release: str, host: SlurmHost, change: tuple[str, str]) -> None:
        self.change = change
        super().__init__(release, host, host.shared / "slurmctld")

    @override
    def made(self, template: dict[str, Any], files: dict[str, str]) -> TrialObjects:
        for path in self.live.configuration.glob("*.yaml"):
            files[path.name] = path.read_text()
        new = {name: re.sub(*self.change, text) for name, text in files.items()}
        assert new != files
        return jobs_trial(TrialInput(CLUSTER, IMAGES, new, template, template, "claim", "node"), files)


@contextmanager
def a_trial(release: str, host: SlurmHost, change: tuple[str, str]) -> Iterator[JobsTrial]:
    trial = JobsTrial(release, host, change)
    try:
        yield trial
    finally:
        trial.close()


@pytest.fixture(params=["24.11", "26.05"])
def release(request: pytest.FixtureRequest) -> str:
    """Each release."""
    return str(request.param)


def test_it_names_the_jobs_that_would_end_and_no_others(release: str, tmp_path: Path) -> None:
    (port,) = ports.hold(1)
    named = f"NodeName=z-0 NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=256\n{PARTITIONS}"
    with SlurmHost(ensure(release), extra_conf=named, state=tmp_path) as host:
        host.add_node("w-0", cpus=8)
        words = {
            "stays": ("-p", "stays"),
            "hidden": ("-p", "stays,goes"),
            "goes": ("-p", "goes"),
            # 24.11 goes by the last name of the list.
            "named": ("-N1", "-w", "w-0,z-0"),
        }
        running = {name: host.sbatch(WAITS, *more) for name, more in words.items()}
        pending = {name: host.sbatch("true", *more, "--begin=now+1hour") for name, more in words.items()}
        host.wait_for(lambda: {host.job_state(job) for job in running.values()} == {"RUNNING"}, "jobs run")
        host.sbatch("true", "--hold", "--comment=the-last-one")
        host.wait_for(lambda: host.has_saved("the-last-one"), "slurmctld has saved its jobs")

        def tried(change: tuple[str, str]) -> set[int]:
            with a_trial(release, host, change) as trial:
                code, said = trial.result()
                assert code == 0, (said, trial.logs())
                assert said.split()[0] == "9"
                return {one.job for one in harmed(said)}

        # 24.11 shows of the running job only the partition in which it runs.
        listed = {running["hidden"], pending["hidden"]} if release == "24.11" else set()
        assert tried(("PartitionName=goes.*", "")) == {running["goes"], pending["goes"], *listed}
        assert tried(("NodeName=z-0.*", "")) == {running["named"], pending["named"]}
        assert tried(("MinJobAge=300", "MinJobAge=299")) == set()
        assert {host.job_state(job) for job in running.values()} == {"RUNNING"}


def test_what_slurmctld_refuses_only_with_its_nodes_is_refused_in_its_words(tmp_path: Path) -> None:
    """A place in the topology that a dynamic node has, and that the new topology.yaml does not."""
    with SlurmHost(ensure("26.05"), state=tmp_path) as host:
        host.write_file("topology.yaml", TOPOLOGY.format("rack"), 0o444)
        host.run("scontrol", "reconfigure")
        host.add_node("w-0")
        host.run("scontrol", "update", "NodeName=w-0", "Topology=default:rack")
        host.sbatch("true", "--hold", "--comment=the-last-one")
        host.wait_for(lambda: host.has_saved("the-last-one"), "slurmctld has saved its jobs")
        host.wait_for(lambda: b"rack" in host.saved("node_state"), "slurmctld has saved its nodes")
        with a_trial("26.05", host, (r"\brack\b", "other")) as trial:
            code, said = trial.result()
    assert code == 1
    assert "Requested topology configuration is not available" in short(said)
