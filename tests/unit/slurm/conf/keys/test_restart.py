"""Which changes need a restart of slurmctld, and no others."""

from __future__ import annotations

import pytest

from slinky_operator.slurm.conf import restart_keys
from tests.unit.slurm.conf.goldens import CASES, Case

PLAIN = restart_keys(Case().render().files["slurm.conf"])


def keys(extra: str) -> dict[str, str]:
    return dict(restart_keys(Case({"extraConf": extra}).render().files["slurm.conf"]))


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
    assert restart_keys(CASES[name].render().files["slurm.conf"]) == PLAIN
