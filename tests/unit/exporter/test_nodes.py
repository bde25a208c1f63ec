"""Nodes, and the CPUs, memory and GPUs on them, are counted so that the parts add up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slurm_client.models import Node, NodeState
from slurm_exporter.families import nodes
from slurm_exporter.families.nodes import NodeTally
from slurm_exporter.samples.budget import OTHERS
from tests.unit.exporter.builders import by_family, node


def tally(found: list[Node], single_nodes: int = 100) -> NodeTally:
    result = NodeTally(single_nodes)
    for each in found:
        result.add(each)
    return result


def test_what_is_free_on_a_drained_node_is_unavailable() -> None:
    samples = by_family(
        tally(
            [
                node(
                    "a", "MIXED", alloc_cpus=3, alloc_memory_mib=256, gres="gpu:h100:4", gres_used="gpu:h100:1(IDX:0)"
                ),
                node("b", "MIXED+DRAIN", alloc_cpus=3, gres="gpu:h100:4", gres_used="gpu:h100:4(IDX:0-3)"),
                node("c", "IDLE+DRAIN"),
            ]
        ).samples()
    )
    assert samples[nodes.CPUS] == {("allocated",): 6, ("idle",): 5, ("unavailable",): 13}
    assert samples[nodes.MEMORY][("allocated",)] == 256 * 1024 * 1024
    assert samples[nodes.GRES] == {
        ("gpu", "h100", "allocated"): 5,
        ("gpu", "h100", "idle"): 3,
        ("gpu", "h100", "unavailable"): 0,
    }
    assert samples[nodes.NODES_DRAIN] == {("draining",): 1, ("drained",): 1}
    assert samples[nodes.NODES_USABLE] == {(): 1}


def test_a_node_counts_in_each_of_its_partitions_and_once_in_the_cluster() -> None:
    samples = by_family(tally([node("a", partitions=("x", "y")), node("b", "DOWN", partitions=("x",))]).samples())
    assert sum(samples[nodes.NODES].values()) == 2
    assert samples[nodes.PARTITION_NODES]["x", "down"] == 1
    assert samples[nodes.PARTITION_NODES]["y", "idle"] == 1
    assert samples[nodes.PARTITION_NODES_USABLE] == {("x",): 1, ("y",): 1}


def test_a_state_that_no_node_has_is_zero_and_one_that_is_not_slurms_is_among_others() -> None:
    samples = by_family(tally([node("a", "HIBERNATING")]).samples())
    assert samples[nodes.NODES] == {("allocated",): 0, ("down",): 0, ("idle",): 0, ("mixed",): 0, (OTHERS,): 1}


def test_nodes_beyond_the_limit_are_in_the_sums_and_are_counted_as_left_out() -> None:
    found = tally([node(f"n{number}") for number in range(5)], single_nodes=2)
    samples = by_family(found.samples())
    assert found.left_out == 3
    assert set(samples[nodes.NODE_CPUS]) == {("n0",), ("n1",)}
    assert samples[nodes.CPUS][("idle",)] == 40


def test_gres_that_cannot_be_read_count_as_nothing() -> None:
    assert nodes.gres_counts("gpu:(((") == {}


@given(
    st.lists(
        st.builds(
            Node,
            name=st.text("abc", min_size=1, max_size=4),
            state=st.builds(NodeState.from_words, st.lists(st.sampled_from(sorted(NodeState.BASES | NodeState.FLAGS)))),
            cpus=st.integers(0, 512),
            alloc_cpus=st.integers(0, 512),
            real_memory_mib=st.integers(0, 10**6),
            alloc_memory_mib=st.integers(0, 10**6),
            gres=st.sampled_from(["", "gpu:4", "gpu:a:2,gpu:b:2", "(null)", "x(y"]),
            gres_used=st.sampled_from(["", "gpu:1", "gpu:a:1(IDX:0)", "gpu:9"]),
            partitions=st.sampled_from([(), ("p",), ("p", "q")]),
        ),
        max_size=8,
    )
)
def test_whatever_slurm_says_the_states_add_up_and_nothing_is_negative(found: list[Node]) -> None:
    samples = by_family(tally(found).samples())
    assert sum(samples[nodes.NODES].values()) == len(found)
    assert sum(samples[nodes.CPUS].values()) == sum(max(each.cpus, each.alloc_cpus) for each in found)
    assert all(value >= 0 for values in samples.values() for value in values.values())
