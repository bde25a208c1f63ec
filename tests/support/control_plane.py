"""A real API server for tests that need no Node."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hack.localkube import control_plane_only
from hack.localkube.host.machine import Machine
from hack.localkube.kubectl import Kubectl
from hack.localkube.servers import control_plane as servers
from hack.machine import ports


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
def running(name: str, *, controllers: bool = False, scheduler: bool = False) -> Iterator[ControlPlane]:
    """Run a control plane named after the test run and this process, so that several run side by side.

    Parameters
    ----------
    controllers
        Whether the controllers of Kubernetes run, too: Jobs, garbage collection, what becomes of Nodes and their pods.
    scheduler
        Whether kube-scheduler runs, too.
    """
    name = f"{name}-{os.getpid()}"
    paths = control_plane_only.up(name)
    try:
        host = Machine(paths.machine("control-plane"))
        more = [servers.controller_manager(host.folder, paths.kubeconfig, paths.pki)] if controllers else []
        more += [servers.scheduler(host.folder, paths.kubeconfig)] if scheduler else []
        for server, port in zip(more, ports.hold(len(more)), strict=True):
            host.run(replace(server, argv=[*server.argv, f"--secure-port={port}"]))
        yield ControlPlane(paths.kubeconfig, Kubectl(paths.kubeconfig), paths.audit_log)
    finally:
        control_plane_only.down(name)
