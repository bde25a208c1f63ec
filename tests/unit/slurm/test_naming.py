"""Names of a Cluster's objects."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import MANAGED_NAME_LENGTH, Cluster
from slinky_operator.slurm import naming


def cluster(**spec: Any) -> Cluster:
    return Cluster.model_validate({"metadata": {"name": "slurm", "namespace": "here", "uid": "u"}, "spec": spec})


def test_every_name_of_the_longest_cluster_is_a_label() -> None:
    name = "a" * MANAGED_NAME_LENGTH
    made = [
        make(name)
        for make in (
            naming.controller,
            naming.controller_pod,
            naming.restapi,
            naming.config,
            naming.slurm_key_secret,
            naming.jwt_key_secret,
            naming.node_service,
            naming.disruption_budget,
        )
    ]
    assert len(set(made)) == len(made)
    assert max(map(len, made)) <= 63
    assert len(f"{naming.controller(name)}-{'0' * 10}") <= 63


def test_keys_of_the_users_win() -> None:
    mine = cluster(auth={"slurmKeyRef": {"name": "k", "key": "ring.jwks"}, "jwtKeyRef": {"name": "k"}})
    assert naming.slurm_key(mine) == naming.KeySource("k", "ring.jwks", "slurm.jwks", generated=False)
    assert naming.jwt_key(mine) == naming.KeySource("k", "jwt_hs256.key", "jwt.key", generated=False)
    made = naming.slurm_key(cluster())
    assert made == naming.KeySource("slurm-auth-slurm", "slurm.key", "slurm.key", generated=True)


@pytest.mark.parametrize(
    ("file", "auth", "mounted"),
    [
        (None, {}, ("slurm-auth-slurm", "slurm.key")),
        ("slurm.key", {}, ("slurm-auth-slurm", "slurm.key")),
        ("slurm.jwks", {}, ("slurm-auth-accepted", "slurm.jwks")),
        (None, {"slurmKeyRef": {"name": "k", "key": "ring.jwks"}}, ("slurm-auth-accepted", "slurm.jwks")),
        ("slurm.jwks", {"slurmKeyRef": {"name": "k", "key": "ring.jwks"}}, ("slurm-auth-accepted", "slurm.jwks")),
        # Another form is asked for, and daemons still have this one.
        ("slurm.key", {"slurmKeyRef": {"name": "k", "key": "ring.jwks"}}, ("slurm-auth-accepted", "slurm.key")),
        ("slurm.jwks", {"slurmKeyRef": {"name": "k"}}, ("slurm-auth-accepted", "slurm.jwks")),
    ],
)
def test_pods_mount_the_form_of_the_key_that_daemons_have(
    file: str | None, auth: dict[str, Any], mounted: tuple[str, str]
) -> None:
    given = cluster(auth=auth)
    found = naming.mounted_key(
        given.model_copy(update={"status": given.status.model_copy(update={"slurm_key_file": file})})
    )
    assert found is not None
    assert (found.secret, found.key) == mounted
    assert found.key == found.file


def test_slurmd_finds_its_configuration() -> None:
    assert naming.conf_server(cluster()) == "slurm-controller-0.slurm-controller.here.svc:6817"
    elsewhere = {"server": "http://x:6820/", "token": {"secretRef": "t"}}
    assert naming.conf_server(cluster(**elsewhere)) is None
    given = cluster(**elsewhere, controller={"external": {"host": "fd00::1", "port": 7}})
    assert naming.conf_server(given) == "[fd00::1]:7"
    assert naming.server(given) == "http://x:6820"
