"""Which changes need a restart of slurmctld, and no others."""

from __future__ import annotations

import pytest

from slinky_operator.slurm.conf import restart_keys
from slinky_operator.slurm.conf.keys.daemons import beyond_slurmds
from tests.unit.slurm.conf.goldens import CASES, Case

PLAIN = restart_keys(Case().render().lines)


def keys(extra: str) -> dict[str, str]:
    return dict(restart_keys(Case({"extraConf": extra}).render().lines))


def test_only_listening_and_authentication_need_a_restart() -> None:
    assert PLAIN == {"AuthType": "auth/slurm", "SlurmctldPort": "6817", "SlurmdPort": "6818"}
    assert keys("communicationparameters=EnableIPv6,block_null_hash") == {
        **PLAIN,
        "CommunicationParameters": "enableipv6",
    }


@pytest.mark.parametrize(
    "extra", ["CommunicationParameters=block_null_hash", "SchedulerType=sched/builtin", "TaskPlugin=task/affinity"]
)
def test_what_a_reconfigure_takes_over_needs_none(extra: str) -> None:
    assert keys(extra) == PLAIN


def test_the_order_of_items_needs_none() -> None:
    one, other = (
        "CommunicationParameters=" + items for items in ("NoInAddrAny,EnableIPv6", "enableipv6,x,noinaddrany")
    )
    assert keys(one) == keys(other)


@pytest.mark.parametrize("name", CASES)
def test_no_field_of_the_spec_needs_one(name: str) -> None:
    assert restart_keys(CASES[name].render().lines) == PLAIN


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
