"""Devices of Nodes in the order of Slurm's numbers, and what a feature of a node says of them."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.bridge.devices import (
    MOST,
    Device,
    DeviceClass,
    NodeDevices,
    devices_of,
    mark_of_word,
    prune_slice,
    readable_word,
    word_of,
)
from slinky_operator.kube.objects import Object

GPU = DeviceClass("gpu.example.com", "gpu", "gpu.example.com", {})


def slice_of(*devices: object, node: str = "k1", pool: str = "k1", generation: int = 1, count: int = 1) -> Object:
    """A ResourceSlice as a driver writes it, shortened as in the cache."""
    obj: Object = {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            "devices": [one if isinstance(one, dict) else {"name": one} for one in devices],
        },
    }
    prune_slice(obj)
    return obj


def names(found: NodeDevices) -> list[str]:
    return [one.name for one in found.order]


def test_the_order_is_that_of_kinds_drivers_pools_and_numbers_in_names() -> None:
    classes = [
        DeviceClass("h", "gpu:h100", "gpu.example.com", {"model": "H100"}),
        DeviceClass("a", "gpu:a100", "gpu.example.com", {"gpu.example.com/model": "A100"}),
    ]
    a100, h100 = ({"model": {"string": one}} for one in ("A100", "H100"))
    some = slice_of(
        {"name": "gpu-10", "attributes": a100},
        {"name": "gpu-2", "attributes": a100},
        {"name": "gpu-1", "attributes": h100},
        {"name": "gpu-0", "attributes": {"model": {"string": "V100"}}},
    )
    other = slice_of({"name": "gpu-3", "attributes": {"gpu.example.com/model": {"string": "A100"}}}, pool="a")
    found = devices_of([some, other], classes)
    assert [(one.kind, one.pool, one.name) for one in found.order] == [
        ("gpu:a100", "a", "gpu-3"),
        ("gpu:a100", "k1", "gpu-2"),
        ("gpu:a100", "k1", "gpu-10"),
        ("gpu:h100", "k1", "gpu-1"),
    ]
    assert found == devices_of([other, some], classes)
    assert found.counts() == {"gpu:a100": 3, "gpu:h100": 1}


@pytest.mark.parametrize(
    "about",
    [
        {"taints": [{"key": "unhealthy", "effect": "NoSchedule"}]},
        {"taints": [{"key": "unhealthy", "effect": "NoExecute"}]},
        {"consumesCounters": [{"counterSet": "g"}]},
        {"allowMultipleAllocations": True},
        {"bindingConditions": ["ready"]},
        {"allNodes": True},
    ],
)
def test_what_slurm_cannot_give_away_one_by_one_is_left_out(about: dict[str, Any]) -> None:
    assert names(devices_of([slice_of("gpu-0", {"name": "gpu-1", **about}, "gpu-2")], [GPU])) == ["gpu-0", "gpu-2"]


def test_a_taint_without_effect_and_other_drivers_change_nothing() -> None:
    other = slice_of("nic-0")
    other["spec"]["driver"] = "nic.example.com"
    tainted = {"name": "gpu-1", "taints": [{"key": "told", "effect": "None"}]}
    assert names(devices_of([slice_of(tainted), other], [GPU])) == ["gpu-1"]


def test_only_the_newest_generation_of_a_pool_counts_and_only_if_it_is_complete() -> None:
    old, new = slice_of("gpu-0", "gpu-1"), slice_of("gpu-1", generation=2, count=2)
    unknown = devices_of([old, new], [GPU])
    assert (unknown.order, unknown.problem) == (
        (),
        "its pool k1 of driver gpu.example.com has 1 of 2 ResourceSlices",
    )
    assert names(devices_of([old, new, slice_of("gpu-0", generation=2, count=2)], [GPU])) == ["gpu-0", "gpu-1"]


def test_a_word_says_which_device_a_number_is_until_the_order_is_another() -> None:
    found = devices_of([slice_of("gpu-0", "gpu-1", "gpu-2", "gpu-3")], [GPU])
    word = found.word({("gpu.example.com", "k1", "gpu-1")})
    assert word_of(["bridge", word, "zone.eu-1"]) == word
    assert mark_of_word(word) == found.mark
    numbered = found.numbered(word, "gpu")
    assert numbered is not None
    assert [one.name for one in numbered] == ["gpu-0", "gpu-2", "gpu-3"]
    assert found.numbered(word, "fpga") == ()
    fewer = devices_of([slice_of("gpu-0", "gpu-2", "gpu-3")], [GPU])
    assert fewer.numbered(word, "gpu") is None
    for wrong in ("", "slurm-devices.", f"{word}.1", word.upper(), "slurm-devices.x.1"):
        assert found.numbered(wrong, "gpu") is None
        assert mark_of_word(wrong) == ""
    assert found.word({one.key for one in found.order}) == ""


def test_the_words_of_the_most_devices_fit_into_a_feature() -> None:
    found = NodeDevices.of(Device("gpu", "d", "p", f"gpu-{at}") for at in range(2 * MOST))
    assert len(found.order) == MOST
    assert len(found.word()) <= 128
    numbered = found.numbered(found.word(), "gpu")
    assert numbered == found.order


def test_hostile_slices_end_no_pass() -> None:
    some: list[Object] = [
        {"metadata": {"name": "s"}},
        {"metadata": {"name": "s"}, "spec": {"driver": "gpu.example.com", "devices": [{"name": "9" * 63}]}},
        slice_of({"name": "gpu-0", "attributes": {"a": None, "b": {}, "c": {"string": "x" * 1000}, "d": {"int": 1}}}),
    ]
    for one in some[:2]:
        prune_slice(one)
    for one in some:
        found = devices_of([one], [GPU])
        assert found.problem or len(found.order) <= 1
    assert some[2]["spec"]["devices"] == [{"name": "gpu-0", "attributes": {"d": "1"}}]


def test_a_feature_is_readable_up_to_the_word_of_all_devices_that_a_node_may_have() -> None:
    longest = devices_of([slice_of(*(f"gpu-{number}" for number in range(MOST)))], [GPU]).word()
    assert readable_word(["bridge", longest]) == longest
    assert readable_word(["bridge"]) == readable_word([f"{longest}f"]) == readable_word([f"{longest} "]) == ""
