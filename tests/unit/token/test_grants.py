"""Who may have which users: root and SlurmUser by name only, nothing without a grant but `nobody` at home."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.token import Token
from slinky_operator.token.grants import LONGEST, longest_life


def life(username: str, namespace: str = "ns", *grants: dict[str, Any]) -> timedelta | None:
    spec = {"auth": {"tokens": list(grants)}} if grants else {}
    cluster = Cluster.parse({"metadata": {"name": "slurm", "namespace": "ns"}, "spec": spec})
    return longest_life(cluster, namespace, username)


def test_without_grants_there_is_nobody_at_home_only() -> None:
    assert life("nobody") == LONGEST
    assert life("nobody", "other") is None
    assert life("alice") is None


@pytest.mark.parametrize("pattern", ["*", "r*", "s*", "root*", "slurm*", "ro*", "slur*"])
@pytest.mark.parametrize("user", ["root", "slurm", "ROOT", "Slurm"])
def test_no_pattern_covers_root_and_slurmuser(pattern: str, user: str) -> None:
    assert life(user, "ns", {"usernames": [pattern]}) is None


def test_root_and_slurmuser_are_granted_by_their_names() -> None:
    assert life("root", "ns", {"usernames": ["root"]}) == LONGEST
    assert life("slurm", "ns", {"usernames": ["slurm"]}) == LONGEST
    assert life("SLURM", "ns", {"usernames": ["slurm"]}) is None


def test_a_grant_is_for_its_namespaces_and_users() -> None:
    grant = {"namespaces": ["a", "b"], "usernames": ["alice", "ci-*"]}
    assert life("alice", "a", grant) == life("ci-7", "b", grant) == LONGEST
    assert life("alice", "ns", grant) is None
    assert life("bob", "a", grant) is None
    assert life("alicex", "a", grant) is None
    # With grants there is nothing beyond them.
    assert life("nobody", "ns", grant) is None


def test_the_longest_of_the_grants_counts() -> None:
    short = {"usernames": ["*"], "maxLifetime": "10m"}
    long = {"usernames": ["alice"], "maxLifetime": "48h"}
    assert life("alice", "ns", short, long) == timedelta(hours=48)
    assert life("bob", "ns", short, long) == timedelta(minutes=10)


@pytest.mark.parametrize("user", ["0", "64030", "0x0", "0X1f", "a b", "a\nb", "", "-a", "a" * 65, "a/b", "a*"])
def test_what_slurm_would_read_as_another_user_is_no_user_name(user: str) -> None:
    with pytest.raises(InvalidObjectError):
        Token.parse({"metadata": {"name": "a"}, "spec": {"clusterRef": {"name": "c"}, "username": user}})


@pytest.mark.parametrize("user", ["alice", "a.b@c", "_apt", "2fast", "0xyz", "x0"])
def test_user_names_of_sites(user: str) -> None:
    read = Token.parse({"metadata": {"name": "a"}, "spec": {"clusterRef": {"name": "c"}, "username": user}})
    assert read.spec.username == user


@pytest.mark.parametrize("pattern", ["**", "a*b", "*a", "", "a b*"])
def test_patterns_have_one_star_at_their_end(pattern: str) -> None:
    with pytest.raises(InvalidObjectError):
        life("alice", "ns", {"usernames": [pattern]})
