"""etcd and an API server on loopback, for tests that need the API and no Node: no root, no namespaces, any number."""

from __future__ import annotations

import datetime
import shutil
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path

from hack.localkube.errors import ServiceFailed
from hack.localkube.host import machine
from hack.localkube.host.machine import Look, Machine
from hack.localkube.paths import ClusterPaths
from hack.localkube.programs import build
from hack.localkube.servers import control_plane, pki
from hack.localkube.servers.control_plane import Endpoints
from hack.machine import ports


def up(name: str) -> ClusterPaths:
    """Start etcd and an API server; a cluster of that name is replaced.

    Raises
    ------
    ServiceFailed
        A server ended or was not ready in time; the error quotes its log.
    """
    build.ensure(build.KUBERNETES)
    down(name)
    paths = ClusterPaths(name)
    authority = pki.Authority(paths.pki, datetime.datetime.now(datetime.UTC))
    control_plane.issue_certificates(authority, paths.pki, [])
    admin = authority.issue("admin", "admin", groups=["system:masters"])
    api_port, etcd_port, peer_port = ports.hold(3)
    endpoints = Endpoints("127.0.0.1", api_port, etcd_port, peer_port)
    host = Machine(paths.machine("control-plane"))
    host.start(Look("control-plane", isolated=False))
    host.run(control_plane.etcd(host.folder, endpoints))
    host.run(control_plane.api_server(host.folder, endpoints, paths.pki, paths.audit_log))
    wait_until_ready(host, endpoints, authority.certificate)
    pki.write_kubeconfig(paths.kubeconfig, endpoints.api, authority.certificate, admin)
    return paths


def down(name: str) -> None:
    """End the servers and remove their files; nothing happens if there are none."""
    paths = ClusterPaths(name)
    machine.end_all(paths.root)
    if paths.root.exists():
        shutil.rmtree(paths.root)


def wait_until_ready(host: Machine, endpoints: Endpoints, authority: Path, timeout: float = 100.0) -> None:
    """Wait until the API server says that it is ready.

    Raises
    ------
    ServiceFailed
        It is not ready in time, or it or etcd keeps ending; the error quotes the log of the culprit.
    """
    context = ssl.create_default_context(cafile=str(authority))
    # Whatever the environment says: it is a server of this machine, and no proxy knows it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    deadline = time.monotonic() + timeout
    reason = "no answer"
    while time.monotonic() < deadline:
        try:
            with opener.open(f"{endpoints.api}/readyz", timeout=2):
                return
        except urllib.error.HTTPError as error:
            reason = f"answers {error.code}"
        except OSError as error:
            reason = str(error)
        for service, report in host.services().items():
            if report["restarts"] > 1:
                raise ServiceFailed(service, "keeps ending", Path(report["log"]))
        time.sleep(0.05)
    raise ServiceFailed("kube-apiserver", f"not ready in {timeout:.0f} s: {reason}", host.folder / "kube-apiserver.log")
