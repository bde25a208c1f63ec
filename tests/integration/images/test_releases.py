"""The images say which Slurm they have, when the pod of an upgrade asks them."""

from __future__ import annotations

import subprocess

import pytest

from hack.images.rootfs import ensure
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.trials.version_pod import LOGIN, Question, version_pod
from slinky_operator.slurm import naming
from slinky_operator.slurm.releases import Release

CLUSTER = Cluster.model_validate({"metadata": {"name": "slurm", "namespace": "here", "uid": "cluster-uid"}})
MESSAGE = "/tmp/termination-log"
"""Where the daemon writes here; in a pod the kubelet mounts another file."""


@pytest.mark.parametrize("version", ["24.11", "26.05"])
@pytest.mark.parametrize("daemon", ["slurmdbd", "slurmctld", "slurmrestd", LOGIN])
def test_a_daemon_prints_its_release_as_its_pod_asks_for_it(version: str, daemon: str) -> None:
    root = ensure(version)
    (container,) = version_pod(CLUSTER, [Question(daemon, "any")], {}, ()).pod.body["spec"]["containers"]
    script = container["command"][-1].replace("/dev/termination-log", MESSAGE)
    user = f"--userspec={naming.SLURM_UID}:{naming.SLURM_UID}"
    mounted = f'mount -t tmpfs -o mode=1777 tmpfs {root}/tmp && chroot {user} {root} /bin/sh -c "$1; cat {MESSAGE}"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounted, "sh", script], capture_output=True, text=True, check=True
    )
    release = Release.read(done.stdout)
    assert release is not None
    assert f"{release.year}.{release.month:02}" == version
