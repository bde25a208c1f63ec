"""What is there at two times is compared by names that last."""

from __future__ import annotations

from collections import Counter

from tests.campaign.site.site import lasting_name


def test_the_guard_of_a_nodeset_that_was_made_again_is_the_same_and_two_of_them_are_one_too_many() -> None:
    before, after = (lasting_name("configmaps", f"nodeset-a-{one}") for one in ("6be94659", "0ae981f8"))
    assert before == after
    assert Counter([before, after]) - Counter([before]) == Counter([after])


def test_names_without_a_hash_stay() -> None:
    assert lasting_name("secrets", "slurm-auth-jwt") == "secrets slurm-auth-jwt"
    assert lasting_name("configmaps", "slurm-config") == "configmaps slurm-config"
