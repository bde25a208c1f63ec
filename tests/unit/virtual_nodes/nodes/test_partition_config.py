"""The partition configuration of red-box: what it says, and what is refused, with field and line."""

from __future__ import annotations

import random

import pytest

from slinky_operator.virtual_nodes.nodes.model.partition_config import (
    LONGEST_TEXT,
    PartitionConfigError,
    PartitionOverride,
    parse,
)
from slinky_operator.virtual_nodes.nodes.model.partitions import PartitionFacts

README = """
debug:
  nodes: 2
  cpu_per_node: 2
  mem_per_node: 512
  wall_time: 10m
  additional_feautres:
    - name: nvidia-gpu
      version: "2080ti"
      quantity: 20
    - name: cuda
      quantity: 1
gpu:
  auto_nodes: true
  nodes: 7
  wall_time: 1h30m
  additional_features: [{name: singularity, version: 3.2.0, quantity: 1}]
"""


def test_both_spellings_of_features_and_automatic_fields_are_read() -> None:
    found = parse(README)
    assert found["debug"] == PartitionOverride(2, 2, 512, 600, {"nvidia-gpu_2080ti": "20", "cuda": "1"})
    assert found["gpu"] == PartitionOverride(wall_time=5400, features={"singularity_3.2.0": "1"})


def test_what_is_not_said_is_as_slurm_says() -> None:
    facts = PartitionFacts("debug", job_nodes=4, node_cpus=8, node_memory_mib=100, wall_time=60)
    assert PartitionOverride().applied_to(facts) == facts
    changed = PartitionOverride(node_cpus=2, wall_time=30).applied_to(facts)
    assert (changed.job_nodes, changed.node_cpus, changed.wall_time) == (4, 2, 30)


@pytest.mark.parametrize("text", ["", "# nothing", "debug:"])
def test_nothing_is_said_by_nothing(text: str) -> None:
    assert all(one == PartitionOverride() for one in parse(text).values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a]", "line 1 is no mapping"),
        ("debug: {nodes: many}", "debug.nodes (line 1) is not a whole number"),
        ("debug:\n  nodes: -1", "debug.nodes (line 2) is not a whole number"),
        ("debug: {wall_time: 10}", "debug.wall_time (line 1) is not a duration such as 10h"),
        ("debug: {auto_nodes: maybe}", "debug.auto_nodes (line 1) is neither true nor false"),
        ("debug: {gpus: 1}", "debug.gpus (line 1) is not a field"),
        ("debug: {nodes: 1}\ndebug: {nodes: 2}", "debug (line 2) is there twice"),
        ("debug: {additional_features: {}}", "debug.additional_features (line 1) is no list"),
        ("debug: {additional_features: [{quantity: 1}]}", "debug.additional_features[0] (line 1) has no name"),
        ("debug: {additional_features: [{name: 'a b'}]}", "additional_features[0].name (line 1) with its version"),
        ("debug: {additional_features: [{name: a, of: b}]}", "additional_features[0].of (line 1) is not a field"),
        ("debug: [", "is no YAML"),
        ("a" * (LONGEST_TEXT + 1), f"has more than {LONGEST_TEXT} characters"),
        ("[" * 5_000, "is n"),
    ],
)
def test_what_is_invalid_is_refused_with_field_and_line(text: str, message: str) -> None:
    with pytest.raises(PartitionConfigError) as refused:
        parse(text)
    assert message in str(refused.value)
    assert len(str(refused.value)) < 700


def test_no_text_ends_in_another_error() -> None:
    rng = random.Random(31)  # noqa: S311 - no secret
    parts = [
        *README.split(),
        "!!python/object:os.system",
        "&a",
        "*a",
        "<<:",
        "-",
        "{",
        "}",
        "[",
        "]",
        "\n",
        "  ",
        "\t",
        ":",
    ]
    refused = 0
    for _ in range(3_000):
        text = " ".join(rng.choices(parts, k=rng.randrange(1, 30)))
        try:
            _ = parse(text)
        except PartitionConfigError:
            refused += 1
    assert refused > 100
