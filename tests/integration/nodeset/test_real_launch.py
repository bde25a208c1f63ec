"""How a real slurmd parses the command lines that NodeSets of Slinky's charts lead to.

The last test is the reason for the others: slurmd accepts quotes around the value of `--conf` without an error, and
then has none of its keys.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from hack.images.rootfs import ensure
from hack.machine import ports
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.pod_spec import builder
from slinky_operator.slurm.slurmd import launch
from tests.support.slurm_host import SlurmHost

pytestmark = pytest.mark.timeout(300)

CLUSTER = Cluster.parse({"metadata": {"name": "c", "namespace": "ns", "uid": "cu"}, "spec": {}})
RESOURCES: dict[str, Any] = {"limits": {"cpu": "1", "memory": "256Mi"}}
LIKE_SLINKYS = """\
#!/bin/bash
set -euo pipefail
export OPTIONS="${OPTIONS:-} $*"
export NOTIFY_SOCKET=/dev/null
exec bash -c "exec slurmd --systemd $OPTIONS"
"""
ENTRYPOINT = "/var/spool/entrypoint.sh"
STANDARD = (1 << 31) - 1
"""The signals 1 to 31; 32 and 33 belong to the C library, and no program can be told to handle them."""


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    # That of a slurmd whose command line names none.
    (port,) = ports.hold(1)
    with SlurmHost(ensure(request.param), extra_conf=f"GresTypes=fpga\nSlurmdPort={port}") as host:
        entrypoint = host.shared / "entrypoint.sh"
        entrypoint.write_text(LIKE_SLINKYS)
        entrypoint.chmod(0o755)
        yield host


def command(
    slurm: SlurmHost, node: str, conf: str, container: dict[str, Any], resources: dict[str, Any] = RESOURCES
) -> list[str]:
    """The command line of a pod's slurmd; what Kubernetes replaces in it is replaced."""
    metadata = {"name": "a", "namespace": "ns", "uid": "u"}
    nodeset = NodeSet.parse({"metadata": metadata, "spec": {"clusterName": "c", "replicas": 1}})
    server = f"127.0.0.1:{slurm.slurmctld_port}"
    own = {**container, "args": [*container.get("args", []), "-Z", "--conf-server", server, "--conf", conf]}
    started = launch.read(own)
    assert started.problems == ()
    made = builder.arguments_of(nodeset, CLUSTER, started, {"resources": resources})
    return [
        word.replace("$(POD_UID)", "uid") for word in (*started.container_command, *made.of(PodSlot(node, node, 0)))
    ]


def shown(slurm: SlurmHost, node: str) -> dict[str, str]:
    words = slurm.run("scontrol", "--oneliner", "show", "node", node).stdout.split()
    return dict(word.partition("=")[::2] for word in words)


@pytest.mark.parametrize("quote", ["'", '"', ""])
@pytest.mark.parametrize(
    ("name", "container"),
    [
        ("direct", {}),
        ("named", {"command": ["slurmd"]}),
        ("script", {"command": ["bash", "-c", 'exec slurmd "$@"']}),
        ("entry", {"command": [ENTRYPOINT]}),
    ],
)
def test_a_node_has_what_the_manifest_says(slurm: SlurmHost, name: str, container: dict[str, Any], quote: str) -> None:
    if quote == "" and name == "entry":
        # Without quotes nobody can know that a shell comes in between.
        container = {"args": ["--conf", "''"]} | container
    node = f"{name}-{['', chr(39), chr(34)].index(quote)}"
    (port,) = ports.hold(1)
    conf = f"{quote}Features=gpu,a100 Gres=fpga:2 Weight=7 Port={port}{quote}"

    slurm.start_slurmd(node, command(slurm, node, conf, container))

    found = shown(slurm, node)
    assert found["AvailableFeatures"] == "a,gpu,a100"
    assert found["Gres"] == "fpga:2"
    assert found["Weight"] == "7"
    assert (found["CPUTot"], found["RealMemory"]) == ("1", "256")
    assert found["Extra"] == "ns/a"
    slurm.stop(node)


def test_every_step_is_reaped_and_its_signals_are_those_of_a_slurmd_alone(slurm: SlurmHost) -> None:
    (port,) = ports.hold(1)
    slurm.start_slurmd("tidy", command(slurm, "tidy", f"'Port={port}'", {}))

    for _ in range(5):
        slurm.run("srun", "--nodelist=tidy", "true")

    # A slurmstepd ends a moment after its step.
    slurm.wait_for(lambda: " Z " not in processes(slurm, "tidy"), "no zombie is left")
    assert "(slurmd" in processes(slurm, "tidy")
    # What the parent of the tests ignores, the daemons under test ignore too; the shell before slurmd adds nothing.
    status = ("grep", "SigIgn", "/proc/self/status")
    alone = subprocess.run(status, capture_output=True, text=True, check=True).stdout.split()[1]
    ignored = slurm.run("srun", "--nodelist=tidy", *status).stdout.split()[1]
    assert int(ignored, 16) & ~int(alone, 16) & STANDARD == 0
    # It is the same slurmd that reads a changed configuration, and that ends in order.
    slurm.reconfigure()
    slurm.run("srun", "--nodelist=tidy", "true")
    # At its end slurmd waits for what it is asked at the end of a job.
    slurm.wait_for(lambda: not slurm.run("squeue", "--noheader").stdout, "no job is completing")
    slurm.grace["tidy"] = 60
    slurm.stop("tidy")
    assert "Slurmd shutdown completing" in (slurm.folder / "tidy.log").read_text()


def processes(slurm: SlurmHost, node: str) -> str:
    """What the kernel says of each process beside a slurmd (proc_pid_stat)."""
    script = 'for file in /proc/[0-9]*/stat; do read -r line < "$file" && echo "$line"; done 2>/dev/null || :'
    return slurm.run_beside(node, "sh", "-c", script).stdout


def test_what_a_whole_command_line_does_not_limit_is_the_machines(slurm: SlurmHost) -> None:
    machine = slurm.run("slurmd", "-C").stdout.split()
    has = dict(word.partition("=")[::2] for word in machine)
    offered = {}
    for name, limits in {"both": {}, "cpus": {"memory": "256Mi"}, "memory": {"cpu": "1"}}.items():
        (port,) = ports.hold(1)
        line = f"'Features=gpu Port={port}'"
        slurm.start_slurmd(name, command(slurm, name, line, {}, {"limits": limits}))
        found = shown(slurm, name)
        offered[name] = found["CPUTot"], found["RealMemory"]
        slurm.stop(name)

    assert offered == {
        "both": (has["CPUs"], has["RealMemory"]),
        "cpus": (has["CPUs"], "256"),
        "memory": ("1", has["RealMemory"]),
    }


def test_slurmd_itself_drops_every_key_of_a_quoted_value(slurm: SlurmHost) -> None:
    (port,) = ports.hold(1)
    server = f"127.0.0.1:{slurm.slurmctld_port}"
    conf = f"'Features=gpu Gres=fpga:2 Weight=7 Port={port}'"

    slurm.start_slurmd("lost", ["slurmd", "-D", "-Z", "-N", "lost", "--conf-server", server, "--conf", conf])

    found = shown(slurm, "lost")
    assert (found["AvailableFeatures"], found["Gres"], found["Weight"]) == ("(null)", "(null)", "1")
    slurm.stop("lost")
