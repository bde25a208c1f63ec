"""Names of Nodes: one partition each, and no name that Kubernetes would refuse."""

from __future__ import annotations

import random
import re

from slinky_api.conditions import Reason
from slinky_operator.virtual_nodes.nodes.model.naming import names_of

VALID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def test_of_two_partitions_with_one_name_the_first_has_the_node_unless_the_other_has_it_already() -> None:
    found = names_of("site", ["gpu", "GPU"], {})
    assert found.names == {"slurm-site-gpu": "GPU"}
    ((reason, message),) = found.problems
    assert reason is Reason.NODE_NAME_TAKEN
    assert message == "two partitions have one name for a Node: gpu would be slurm-site-gpu, as GPU is"
    found = names_of("site", ["gpu", "GPU"], {"slurm-site-gpu": "gpu"})
    assert found.names == {"slurm-site-gpu": "gpu"}
    assert "GPU would be slurm-site-gpu, as gpu is" in found.problems[0][1]


def test_a_partition_that_cannot_be_a_label_or_a_name_has_no_node() -> None:
    found = names_of("site", ["_x", "a..b", "p" * 64, "fine_one"], {})
    assert found.names == {"slurm-site-fine-one": "fine_one"}
    assert "_x; a..b; " in found.problems[0][1]


def test_every_name_is_valid_unique_and_of_its_partition() -> None:
    rng = random.Random(7)  # noqa: S311 - no secret
    for _ in range(2_000):
        partitions = {"".join(rng.choices("aAbB01_.-", k=rng.randrange(1, 8))) for _ in range(rng.randrange(1, 6))}
        standing = {f"slurm-h-{one.lower()}": one for one in rng.sample(sorted(partitions), 1)}
        found = names_of("h", partitions, standing)
        assert all(VALID.fullmatch(name) for name in found.names)
        assert len(set(found.names.values())) == len(found.names)
        assert set(found.names.values()) <= partitions
        for name, partition in standing.items():
            assert found.names.get(name, partition) == partition
