"""Where the cluster's domain is read from."""

from __future__ import annotations

from pathlib import Path

import pytest

from slinky_operator.kube.domain import domain_in, own_domain


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("search ops.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\n", "cluster.local"),
        ("nameserver 10.96.0.10\nsearch ops.svc.k8s.corp.example. svc.k8s.corp.example. corp\n", "k8s.corp.example"),
        ("search a.svc.x svc.x\nsearch b.svc.y svc.y\n", "y"),
        ("search corp.example\nnameserver 1.1.1.1\n", ""),
        ("# search svc.x\n", ""),
        ("", ""),
    ],
)
def test_the_domain_is_what_a_kubelet_wrote(text: str, domain: str) -> None:
    assert domain_in(text) == domain


def test_outside_a_pod_there_is_none(tmp_path: Path) -> None:
    assert own_domain(tmp_path / "absent") == ""
