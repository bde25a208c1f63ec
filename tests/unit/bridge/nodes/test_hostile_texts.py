"""Texts of Slurm and of Kubernetes Nodes, as long as they may be, cost a pass little, and are shown shortened."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from slinky_operator.bridge.nodes.model.report import LONGEST
from slurm_client.models import Partition, PartitionState
from tests.unit.bridge.nodes.worlds import MARK, World, external, host

LONG = 65_536
MOST_S = 2.0
"""CPU seconds of a pass; one takes some milliseconds, and a text that costs the square of its length takes minutes."""

TEXTS = [
    "a" * LONG,
    "gpu:" * (LONG // 4),
    "gpu:1," * (LONG // 6),
    "(" * LONG,
    ":" * LONG,
    "gpu:a:1(S:0-1)," * 4_000,
    " " * LONG,
]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:8])
async def test_a_pass_is_short_whatever_slurm_says(text: str) -> None:
    world = World(host("kn-1", labels={"zone": text}), host("kn-2"), host("kn-3"))
    words = (*text.split(",")[:2_000], "bridge", MARK)
    world.slurm.nodes = {
        "kn-1": external("kn-1", *words, gres=text, reason=text, cpus=1),
        "kn-2": replace(
            external("kn-2", "bridge", MARK, flags=["DRAIN"], cpus=1), reason=f"slurm-operator: bridge: {text}"
        ),
        "kn-3": external("kn-3", text),
        "kn-4": external("kn-4", "bridge", MARK, flags=["DRAIN"], reason=text),
    }
    world.slurm.loaded = dict.fromkeys(("GresTypes", "SlurmctldPort", "PreemptMode", "AccountingStorageEnforce"), text)
    world.slurm.all_partitions = [Partition(name=text, state=PartitionState("UP"), node_sets=text, node_list=text)]
    began = time.process_time()
    await world.settle(times=8)
    assert time.process_time() - began < 8 * MOST_S
    assert len(world.shown["message"]) <= LONGEST
    assert all(len(one) < 2 * LONGEST for one in world.told)
