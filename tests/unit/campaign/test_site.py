"""What is there at two times is compared by names that last."""

from __future__ import annotations

from collections import Counter

from tests.campaign.site.site import lasting_name, wrong_nodes


def test_the_guard_of_a_nodeset_that_was_made_again_is_the_same_and_two_of_them_are_one_too_many() -> None:
    before, after = (lasting_name("configmaps", f"nodeset-a-{one}") for one in ("6be94659", "0ae981f8"))
    assert before == after
    assert Counter([before, after]) - Counter([before]) == Counter([after])


def test_names_without_a_hash_stay() -> None:
    assert lasting_name("secrets", "slurm-auth-jwt") == "secrets slurm-auth-jwt"
    assert lasting_name("configmaps", "slurm-config") == "configmaps slurm-config"


IDLE = dict.fromkeys(("a-0", "a-1", "a-2", "b-0", "b-1", "node-2"), "idle")


def test_a_nodeset_may_have_other_nodes_than_before_and_no_more_or_fewer_of_them() -> None:
    others = {node: state for node, state in IDLE.items() if node != "b-0"}
    assert wrong_nodes(IDLE, {"node-2"}) == wrong_nodes({**others, "b-2": "idle"}, {"node-2"}) == {}
    assert wrong_nodes(others, {"node-2"}) == {"of b": "1 are there, and 2 at rest"}
    assert wrong_nodes({**IDLE, "c-0": "idle"}, {"node-2"}) == {"of c": "1 are there, and 0 at rest"}


def test_a_node_that_is_not_idle_or_not_there_is_wrong() -> None:
    assert wrong_nodes({**IDLE, "a-1": "drained"}, {"node-2"}) == {"a-1": "drained"}
    assert wrong_nodes({**IDLE}, {"node-2", "node-1"}) == {"node-1": "absent"}
    assert wrong_nodes(IDLE, set()) == {"of node": "1 are there, and 0 at rest"}
