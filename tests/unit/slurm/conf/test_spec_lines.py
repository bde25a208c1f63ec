"""Lines of the spec are read once: words or a reason, and names as long as Slurm could have so many."""

from __future__ import annotations

from slinky_api.v1alpha1.cluster.parts import Partition, StaticNode
from slinky_operator.slurm.conf.spec_lines import MOST, PartitionConf, StaticNodeConf, read_nodes
from slinky_operator.slurm.conf.syntax.directives import Directive, TextProblem


def node(name: str, config: str = "") -> StaticNode:
    return StaticNode.model_construct(name=name, config=config)


def test_texts_become_words_or_a_reason() -> None:
    partition = PartitionConf.of(
        Partition.model_construct(name="p", node_sets=("a",), nodes=("n",), config="MaxTime=60")
    )
    assert partition == PartitionConf("p", ("a",), ("n",), (Directive("MaxTime", "60"),))
    (wrong,) = read_nodes([node("n", "NodeName=x")])
    assert isinstance(wrong.words, TextProblem)
    assert wrong.names == ("n",)


def test_nodes_stay_in_the_order_of_the_spec() -> None:
    found = read_nodes([node("b-[1-2]", "CPUs=2"), node("a")])
    assert [(one.name, one.names) for one in found] == [("b-[1-2]", ("b-1", "b-2")), ("a", ("a",))]


def test_no_more_names_are_made_than_slurm_can_have_nodes() -> None:
    found = read_nodes([node("z"), node(f"b-[1-{MOST}]"), node("a")])
    assert [one.names for one in found] == [None, None, ("a",)]


def test_names_are_no_part_of_what_is_compared_and_kept_as_text() -> None:
    one = StaticNodeConf.of("b-[1-1000]")
    assert one == StaticNodeConf("b-[1-1000]", (), None)
    assert "b-7" not in repr(one)
