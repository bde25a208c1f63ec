"""What a Node stands for, and which extended resources stand for GRES."""

from __future__ import annotations

import pytest

from slinky_operator.virtual_nodes.node_names import extended_resource, gres_of


@pytest.mark.parametrize("gres", ["gpu", "shard", "nic"])
def test_a_gres_is_found_again_by_its_resource(gres: str) -> None:
    assert gres_of(extended_resource(gres)) == gres


def test_other_resources_stand_for_no_gres() -> None:
    assert [gres_of(name) for name in ("cpu", "memory", "amd.com/gpu")] == [None, None, None]
