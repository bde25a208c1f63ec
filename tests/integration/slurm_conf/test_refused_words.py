"""What real slurmctlds say of a bad line: whose line it is, and which of their words are shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.images.rootfs import ensure
from slinky_operator.slurm.conf import subjects
from slinky_operator.slurm.pods.exit_messages import short
from tests.support.slurm_host import SlurmHost

pytestmark = pytest.mark.timeout(300)

PARTITION = "PartitionName=night Nodes=ALL {}"
NODE = "NodeName=metal1 NodeAddr=127.0.0.1 {}"
WITHOUT_ACCOUNTING = (
    "JobAcctGatherType=jobacct_gather/linux\n"
    "AccountingStorageEnforce=limits\n"
    "PriorityType=priority/multifactor\n"
    "PriorityWeightFairshare=1000\n"
)
"""What slurmctld complains of where accounting is left out, and goes on."""

BAD = (
    ("partition night", PARTITION, "MaxTime=banana"),
    ("partition night", PARTITION, "DefaultTime=x"),
    ("partition night", PARTITION, "State=GONE"),
    ("partition night", PARTITION, "OverSubscribe=maybe"),
    ("partition night", PARTITION, "MaxNodes=x"),
    ("partition night", PARTITION, "DefMemPerCPU=x"),
    ("partition night", PARTITION, "PriorityTier=99999999"),
    ("partition night", PARTITION, "Hidden=dunno"),
    ("partition night", PARTITION, "SelectTypeParameters=x"),
    ("partition night", PARTITION, "TRESBillingWeights=zz"),
    ("partition night", PARTITION, "Bogus=1"),
    ("node metal1", NODE, "CPUs=999999999"),
    ("node metal1", NODE, "RealMemory=x"),
    ("node metal1", NODE, "Port=x"),
    ("node metal1", NODE, "NodeHostname=a,b"),
    ("node metal1", NODE, "TRESWeights=x"),
)


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """A tree of each release, with no daemon; commands run in it once it can be asked for its release."""
    host = SlurmHost(ensure(request.param))
    try:
        host.spawn("beside", ["sleep", "infinity"])
        host.wait_for(lambda: in_tree(host, "slurmctld -V").startswith("slurm"), "the tree is there")
        yield host
    finally:
        host.close()


def in_tree(host: SlurmHost, script: str) -> str:
    return host.run_beside("beside", "sh", "-c", f"{script} 2>&1", check=False, processes=True).stdout


def said(host: SlurmHost, lines: str) -> str:
    """What slurmctld says until it ends; it must."""
    host.write_conf(lines)
    return in_tree(host, "slurmctld -D -c")


def test_the_message_of_each_bad_key_is_shown_with_the_partition_or_node_of_its_line(slurm: SlurmHost) -> None:
    text = slurm.configuration / "slurm.conf"
    for subject, line, bad in BAD:
        message = said(slurm, line.format(bad))
        assert "fatal" in message, (bad, message)
        assert subjects.refused(message, text.read_text()) == (subject,), (bad, message)
        assert bad.partition("=")[2] in short(message) or bad.partition("=")[0] in short(message)


def test_what_it_says_without_accounting_is_not_shown_beside_the_fault(slurm: SlurmHost) -> None:
    message = said(slurm, f"{WITHOUT_ACCOUNTING}{NODE.format('Port=x')}")
    assert "accounting information gathered, but not stored" in message
    assert short(message) == "fatal: Invalid Port x"


def test_a_name_that_slurmctld_says_itself_is_not_repeated(slurm: SlurmHost) -> None:
    message = said(slurm, "PartitionName=night Nodes=nosuch")
    assert "fatal: Invalid node names in partition night" in message
    assert subjects.refused(message, (slurm.configuration / "slurm.conf").read_text()) == ()
    assert 'lookup failure for node "nosuch"' in short(message)
