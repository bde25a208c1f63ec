"""Which changes cannot end any slurmd."""

from __future__ import annotations

import pytest

from slinky_operator.slurm.conf.keys.reach import beyond_slurmds

RUNNING = {
    "slurm.conf": "ClusterName=x\nKillWait=5\nNodeSet=a Feature=a\nPartitionName=p Nodes=a MaxTime=60\n",
    "cgroup.conf": "CgroupPlugin=disabled\n",
}


def changed(slurm_conf: str, **others: str) -> dict[str, str]:
    return {**RUNNING, "slurm.conf": slurm_conf, **others}


@pytest.mark.parametrize(
    "text",
    [
        "ClusterName=x\nKillWait=5\nNodeSet=a Feature=a\n",
        "KillWait=5\nClusterName=x\nNodeSet=b Feature=b\nPartitionName=q Nodes=b MaxTime=7\n",
        "# other words\nClusterName=x\nKillWait=5\nPartitionName=p Nodes=a maxtime=60\n",
    ],
)
def test_partitions_and_nodesets_by_keys_in_use(text: str) -> None:
    assert beyond_slurmds(RUNNING, changed(text))


@pytest.mark.parametrize(
    "text",
    [
        "ClusterName=x\nKillWait=6\nNodeSet=a Feature=a\n",
        "ClusterName=x\nKillWait=5\nPrologFlags=Alloc\n",
        "ClusterName=x\nKillWait=5\nNodeName=n\n",
        "ClusterName=x\nKillWait=5\nPartitionName=p Nodes=a NewKey=1\n",
        "ClusterName=x\nKillWait=5\nNodeSet=a MaxTime=60\n",
        "ClusterName=x\nKillWait=5\nInclude other\n",
    ],
)
def test_everything_else_reaches_them(text: str) -> None:
    assert not beyond_slurmds(RUNNING, changed(text))


def test_other_files_reach_them() -> None:
    text = RUNNING["slurm.conf"]
    assert not beyond_slurmds(RUNNING, {"slurm.conf": text, "cgroup.conf": "CgroupPlugin=cgroup/v2\n"})
    assert not beyond_slurmds(RUNNING, {"slurm.conf": text})
    assert not beyond_slurmds(RUNNING, {**RUNNING, "plugstack.conf": "required x.so\n"})
