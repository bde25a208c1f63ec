"""A real API server for tests that need no Node."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.localkube import control_plane_only
from hack.localkube.kubectl import Kubectl


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """etcd and kube-apiserver on loopback.

    Attributes
    ----------
    kubeconfig
        Administrator's access.
    kubectl
        Call it with arguments (and ``stdin=``); returns what it prints, raises `KubectlFailed`.
    audit_log
        Every write, one JSON object a line.
    """

    kubeconfig: Path
    kubectl: Kubectl
    audit_log: Path


@contextmanager
def running(name: str) -> Iterator[ControlPlane]:
    """Run a control plane named after the test run and this process, so that several run side by side."""
    name = f"{name}-{os.getpid()}"
    paths = control_plane_only.up(name)
    try:
        yield ControlPlane(paths.kubeconfig, Kubectl(paths.kubeconfig), paths.audit_log)
    finally:
        control_plane_only.down(name)
