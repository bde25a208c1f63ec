"""Whether the API server reaches the kubelet API, by its own word and with the rights of the chart. Needs root."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hack.localkube.kubectl import wait_for
from hack.machine import ports
from hack.packaging.render import ROOT, render
from slinky_api.v1alpha1.cluster.status import KubeletApiStatus
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.virtual_nodes.nodes.model.reachability import Way
from slinky_operator.virtual_nodes.nodes.reachability_poll import PATIENCE_S, ReachabilityPoll
from tests.support import service_account
from tests.support.control_plane import ControlPlane
from tests.support.host_address import host_address
from tests.support.kubelet_callers import Api, kubelet_api, objects_of_slurm, until

NAMESPACE, POD = "vn-reach", "slurm-operator-1"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with host_address() as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def pod(control_plane: ControlPlane, address: str) -> None:
    """The operator's pod, which has that address, and its account, without rights yet."""
    kubectl = control_plane.kubectl
    kubectl("create", "namespace", NAMESPACE)
    kubectl("create", "serviceaccount", service_account.NAME, "-n", NAMESPACE)
    spec = {"serviceAccountName": service_account.NAME, "containers": [{"name": "operator", "image": "x"}]}
    kubectl.apply(
        [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD, "namespace": NAMESPACE}, "spec": spec}]
    )
    status = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
    kubectl("patch", "pod", POD, "-n", NAMESPACE, "--subresource=status", "-p", json.dumps(status))


@pytest.fixture
async def operator(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[KubeClient]:
    """A client with the rights of the operator's account."""
    kubeconfig = service_account.kubeconfig_of(
        control_plane.kubectl, control_plane.kubeconfig, NAMESPACE, tmp_path / "kubeconfig"
    )
    async with await Connection.connect(kubeconfig) as connection:
        yield KubeClient(connection, fence=OpenFence(), field_manager="test", timeout=PATIENCE_S)


@pytest.fixture
async def api(operator: KubeClient, address: str) -> AsyncIterator[Api]:
    async with kubelet_api(operator, objects_of_slurm(), host=address) as running:
        yield running


async def shown(operator: KubeClient, way: Way) -> KubeletApiStatus:
    """What a first question comes to."""

    async def at_once(_: float) -> None:
        """A second try needs no pause here."""

    poll = ReachabilityPoll(operator, way, Store(), sleep=at_once)
    task = asyncio.create_task(poll.run())
    try:
        poll.ask()
        await until(lambda: poll.known is not None or task.done(), "no answer of the API server")
    finally:
        task.cancel()
        await asyncio.wait({task})
    assert poll.known is not None
    return poll.known


async def test_it_is_not_known_without_the_right(operator: KubeClient, api: Api, address: str) -> None:
    found = await shown(operator, Way(NAMESPACE, POD, address, api.port, "mark"))
    assert (found.reachable, found.reason) == (None, "Forbidden")
    assert 'cannot get resource "pods/proxy"' in found.message
    assert f"get on pods/proxy in namespace {NAMESPACE}" in found.message


@pytest.fixture(scope="module")
def right(control_plane: ControlPlane) -> None:
    """What the chart grants in the operator's namespace."""
    values = {"operator": {"namespace": NAMESPACE, "serviceAccount": service_account.NAME}}
    objects = render(ROOT / "helm" / "slurm-virtual-nodes", values, release="slurm-virtual-nodes")
    control_plane.kubectl.apply([one for one in objects if one["metadata"].get("namespace") == NAMESPACE])
    asked = ("auth", "can-i", "get", "pods", "--subresource=proxy", f"--as={service_account.user_of(NAMESPACE)}")
    wait_for("the right", lambda: control_plane.kubectl(*asked, "-n", NAMESPACE).strip() == "yes", 240)


@pytest.mark.usefixtures("right")
async def test_the_api_server_arrives(operator: KubeClient, api: Api, address: str) -> None:
    found = await shown(operator, Way(NAMESPACE, POD, address, api.port, "mark"))
    assert (found.reachable, found.reason, found.message) == (True, "AsExpected", "")


@pytest.mark.usefixtures("right")
async def test_another_process_at_the_address_is_not_taken_for_this_one(
    operator: KubeClient, api: Api, address: str
) -> None:
    found = await shown(operator, Way(NAMESPACE, POD, address, api.port, "mark of another"))
    assert found.reachable is False
    assert "something else than the operator answers there" in found.message


@pytest.mark.usefixtures("right")
async def test_a_closed_port_is_named(operator: KubeClient, address: str) -> None:
    (port,) = ports.hold(1)
    found = await shown(operator, Way(NAMESPACE, POD, address, port, "mark"))
    assert (found.reachable, found.reason) == (False, "KubeletApiUnreachable")
    assert f"does not reach {address}:{port}, the operator's pod {NAMESPACE}/{POD}: " in found.message
    assert f"dial tcp {address}:{port}: connect: connection refused" in found.message
    assert f"TCP connections to port {port} of the operator's pods" in found.message


@pytest.mark.usefixtures("right")
async def test_a_listener_without_tls_is_not_the_operator(operator: KubeClient, address: str) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(hang_up, address, 0) as server:
        port = server.sockets[0].getsockname()[1]
        found = await shown(operator, Way(NAMESPACE, POD, address, port, "mark"))
    assert found.reachable is False
    assert f"does not reach {address}:{port}" in found.message


@pytest.mark.usefixtures("right")
async def test_a_name_that_no_pod_has_leaves_it_unknown(operator: KubeClient, address: str) -> None:
    found = await shown(operator, Way(NAMESPACE, "nobody", address, 10350, "mark"))
    assert (found.reachable, found.reason) == (None, "RequestRefused")
    assert 'pods "nobody" not found' in found.message
