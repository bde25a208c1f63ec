"""Whose line Slurm has refused: with its own messages of both releases, as `test_refused_words` sees them."""

from __future__ import annotations

import pytest

from slinky_operator.slurm.conf import subjects

CONF = """\
ClusterName=test
NodeSet=gpu Feature=gpu
NodeName=metal[1-2] CPUs=2 Port=17000
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=5
PartitionName=long Nodes=ALL MaxTime=banana State=UP
"""

PROCESS = "fatal: Unable to process configuration file"


def told(message: str, *lines: str) -> tuple[str, ...]:
    return subjects.refused(message, CONF + "".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", 'error: Bad value "banana" for MaxTime'),
        ("PartitionName=long State=GONE", 'error: Bad value "GONE" for State'),
        ("PartitionName=long SelectTypeParameters=x", "error: Bad value for SelectTypeParameters: x"),
        ("PartitionName=long MaxNodes=x", "error: MaxNodes value (x) is not a valid number"),
        ("PartitionName=long PriorityTier=99999999", "error: PriorityTier value (99999999) is greater than 65535"),
        ("PartitionName=long Hidden=dunno", 'error: "dunno" is not a valid option for "Hidden"'),
        (
            "PartitionName=long Bogus=1",
            'error: Parse error in file /etc/slurm/slurm.conf line 6: " Bogus=1"',
        ),
        (
            "PartitionName=long TRESBillingWeights=zz",
            "error: \"zz\" is an invalid TRES weight entry\nfatal: failed to parse tres weights str 'zz'",
        ),
        ("PartitionName=long Topology=nosuch", "error: Invalid partition topology"),
    ],
)
def test_the_partition_is_named_that_slurm_does_not_name(line: str, message: str) -> None:
    assert told(f"slurmctld: {message}\nslurmctld: {PROCESS}", *([line] if line else [])) == ("partition long",)


def test_the_node_is_named_too() -> None:
    assert told("fatal: Invalid Port x", "NodeName=metal3 Port=x") == ("node metal3",)
    assert told("error: CPUs value (999999999) is greater than 65535", "NodeName=m[3-4] CPUs=999999999") == (
        "node m[3-4]",
    )
    said = "fatal: NodeAddr count must equal that of NodeName records or  there must be no more than one"
    assert told(said, "NodeName=metal3 NodeAddr=a[1-2]") == ("node metal3",)


def test_all_are_named_that_have_the_value_and_no_others() -> None:
    assert told('error: Bad value "banana" for MaxTime', "PartitionName=night MaxTime=banana") == (
        "partition long",
        "partition night",
    )
    assert told('error: Bad value "banana" for DefaultTime') == ()


def test_a_line_is_found_by_its_number_whatever_else_has_the_key() -> None:
    said = 'error: Parse error in file /etc/slurm/slurm.conf line 7: " Bogus=1"'
    assert told(said, "PartitionName=a Nodes=ALL", "PartitionName=b Bogus=1") == ("partition b",)
    assert told('error: Parse error in file /etc/slurm/gres.conf line 5: " Bogus=1"') == ()


@pytest.mark.parametrize(
    "message",
    [
        "fatal: Invalid node names in partition long",
        "fatal: Partition long has an invalid qos (banana), please check your configuration",
        "fatal: Invalid state banana from metal[1-2]",
    ],
)
def test_what_slurm_names_itself_is_not_named_twice(message: str) -> None:
    assert told(message) == ()


@pytest.mark.parametrize(
    "message",
    [
        "",
        "fatal: Failed to initialize the various schedulers",
        "error: MaxJobCount value (x) is not a valid number",
        # Two lines have the key, and the message does not say which.
        "fatal: no State",
    ],
)
def test_what_is_about_no_line_names_none(message: str) -> None:
    assert told(message) == ()
