"""kubectl logs through a real API server, to the operator's kubelet API, to a real job log server. Needs root."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hack.localkube.kubectl import KubectlFailed
from hack.localkube.programs import build
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.slurm import naming
from slinky_operator.virtual_nodes.kubelet.answers import Limits
from slinky_operator.virtual_nodes.kubelet.certificate import self_signed
from tests.support.control_plane import ControlPlane
from tests.support.job_logs import Node, node
from tests.support.kubelet_callers import NODE, Api, ask, caller, kubelet_api, objects_of_slurm, until

NAMESPACE = "vn-logs"
UPGRADE = "Upgrade: SPDY/3.1\r\nConnection: Upgrade\r\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """A job log server, in the place of one beside a slurmd."""
    with node() as running:
        monkeypatch.setattr(naming, "JOB_OUTPUT_FOLDER", str(running.output))
        monkeypatch.setattr(naming, "JOB_LOGS_PORT", running.port)
        yield running


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        yield KubeClient(connection, fence=OpenFence(), field_manager="test", timeout=30)


@pytest.fixture
def keys(control_plane: ControlPlane, tmp_path: Path) -> Path:
    """The cluster's certificates, and among them a pair for 127.0.0.1 as a mounted Secret has it."""
    found = next(control_plane.kubeconfig.parent.rglob("kubelet-client.crt")).parent
    for name in ("crt", "key"):
        shutil.copy(found / f"apiserver.{name}", tmp_path / f"tls.{name}")
    return found


@pytest.fixture
async def api(kube: KubeClient, keys: Path, tmp_path: Path, server: Node) -> AsyncIterator[Api]:
    async with kubelet_api(kube, objects_of_slurm(), certificate_folder=tmp_path) as running:
        yield running


@pytest.fixture
async def pods(control_plane: ControlPlane, api: Api) -> AsyncIterator[Api]:
    """Pods q1 (waits) and r1 on a Node whose kubelet is the operator."""
    own = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": api.port}},
        },
    }
    about = {"name": "default", "namespace": NAMESPACE}
    made = [
        own,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about},
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "x"}]},
            }
            for name in ("q1", "r1")
        ),
    ]
    await asyncio.to_thread(
        control_plane.kubectl,
        "apply",
        "-f",
        "-",
        stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}),
    )
    try:
        yield api
    finally:
        await asyncio.to_thread(
            control_plane.kubectl, "delete", "pods", "--all", "-n", NAMESPACE, "--grace-period=0", "--force"
        )
        await asyncio.to_thread(control_plane.kubectl, "delete", "node", NODE)


async def logs(control_plane: ControlPlane, pod: str, *more: str) -> str:
    return await asyncio.to_thread(control_plane.kubectl, "logs", "-n", NAMESPACE, pod, *more)


async def failure(control_plane: ControlPlane, *arguments: str) -> str:
    with pytest.raises(KubectlFailed) as failed:
        await asyncio.to_thread(control_plane.kubectl, *arguments)
    return failed.value.stderr


async def test_kubectl_shows_the_output_of_a_job(control_plane: ControlPlane, pods: Api, server: Node) -> None:
    content = b"".join(b"line %d\n" % number for number in range(20_000))
    path = server.write("a.out", content)
    pods.table.put(NAMESPACE, "r1", str(path))
    assert await logs(control_plane, "r1") == content.decode()
    assert await logs(control_plane, "r1", "--tail=2") == "line 19998\nline 19999\n"
    assert await logs(control_plane, "r1", "--limit-bytes=6") == "line 0"
    assert await logs(control_plane, "r1", "--since-time=2020-01-01T00:00:00Z", "--tail=1") == "line 19999\n"


async def test_kubectl_follows_to_the_end_of_the_job(control_plane: ControlPlane, pods: Api, server: Node) -> None:
    path = server.write("a.out", b"one\n")
    pods.table.put(NAMESPACE, "r1", str(path))
    kubectl = await asyncio.create_subprocess_exec(
        str(build.tool("kubectl")),
        f"--kubeconfig={control_plane.kubeconfig}",
        *("logs", "-f", "-n", NAMESPACE, "r1"),
        stdout=subprocess.PIPE,
    )
    assert kubectl.stdout is not None
    assert await kubectl.stdout.readline() == b"one\n"
    with path.open("ab") as file:
        file.write(b"two\n")
    assert await kubectl.stdout.readline() == b"two\n"
    with path.open("ab") as file:
        file.write(b"three\n")
    pods.table.put(NAMESPACE, "r1", str(path), state="Succeeded")
    assert await kubectl.stdout.read() == b"three\n"
    assert await kubectl.wait() == 0
    await until(lambda: not len(pods.answers.streams), "the stream still has its place")


async def test_a_follower_that_goes_leaves_nothing_behind(control_plane: ControlPlane, pods: Api, server: Node) -> None:
    pods.table.put(NAMESPACE, "r1", str(server.write("a.out", b"one\n")))
    kubectl = await asyncio.create_subprocess_exec(
        str(build.tool("kubectl")),
        f"--kubeconfig={control_plane.kubeconfig}",
        *("logs", "-f", "-n", NAMESPACE, "r1"),
        stdout=subprocess.PIPE,
    )
    assert kubectl.stdout is not None
    assert await kubectl.stdout.readline() == b"one\n"
    assert len(pods.answers.streams) == 1
    kubectl.kill()
    await kubectl.wait()
    await until(lambda: not len(pods.answers.streams), "the stream still has its place")


async def test_what_cannot_be_shown_is_said_in_a_sentence(control_plane: ControlPlane, pods: Api, server: Node) -> None:
    own = ("logs", "-n", NAMESPACE)
    pods.table.put(NAMESPACE, "q1")
    assert 'container "main" in pod "q1" is waiting to start: Queued' in await failure(control_plane, *own, "q1")
    pods.table.put(NAMESPACE, "r1", str(server.write("a.out", b"one\n")))
    for option, words in (
        ("--previous", 'previous terminated container "main" in pod "r1" not found'),
        ("--timestamps", "the output of a Slurm job has no time of each line"),
        ("--since=1s", "a time before the start of the job (2026-11-27T10:00:00Z) shows all of it"),
    ):
        assert words in await failure(control_plane, *own, "r1", option)
    pods.table.put(NAMESPACE, "r1", "/home/alice/slurm-7.out")
    said = await failure(control_plane, *own, "r1")
    assert "the job writes its output to /home/alice/slurm-7.out on node w-0, where no job log server serves it" in said
    pods.leads[0] = False
    assert "this replica of the operator does not lead" in await failure(control_plane, *own, "r1")


async def test_another_users_file_is_not_shown(control_plane: ControlPlane, pods: Api, server: Node) -> None:
    pods.table.put(NAMESPACE, "r1", str(server.write("a.out", b"secret\n", uid=20002)))
    said = await failure(control_plane, "logs", "-n", NAMESPACE, "r1")
    assert "the job log server answered 403" in said
    assert "secret" not in said


async def test_exec_attach_and_port_forward_say_why_they_cannot(
    control_plane: ControlPlane, pods: Api, server: Node, keys: Path
) -> None:
    pods.table.put(NAMESPACE, "r1", str(server.write("a.out", b"")))
    for arguments, words in (
        (("exec", "r1", "--", "true"), "kubectl exec and kubectl cp cannot reach a pod on a virtual Node"),
        (("attach", "r1"), "kubectl attach cannot reach a pod on a virtual Node"),
    ):
        assert words in await failure(control_plane, *arguments[:1], "-n", NAMESPACE, *arguments[1:])
    # The API server's own way there (nodes/proxy) leads to no loopback address.
    status, words = await ask(pods.port, "/metrics", caller(keys / "kubelet-client.crt", keys / "kubelet-client.key"))
    assert status == 501
    assert "serves the output of containers, and nothing else" in words


async def test_only_those_who_may_use_a_kubelet_are_answered(
    control_plane: ControlPlane, pods: Api, server: Node, keys: Path
) -> None:
    pods.table.put(NAMESPACE, "r1", str(server.write("a.out", b"one\n")))
    path, nobody = f"/containerLogs/{NAMESPACE}/r1/main", caller()
    create = ("create", "-n", NAMESPACE)
    await asyncio.to_thread(control_plane.kubectl, *create, "serviceaccount", "monitor")
    token = (await asyncio.to_thread(control_plane.kubectl, *create, "token", "monitor")).strip()
    assert (await ask(pods.port, path, nobody))[0] == 401
    assert (await ask(pods.port, path, nobody, token="wrong"))[0] == 401
    status, words = await ask(pods.port, path, nobody, token=token)
    assert status == 403
    assert f"system:serviceaccount:{NAMESPACE}:monitor may not get nodes/proxy of Node {NODE}" in words
    kubelet = caller(keys / "kubelet-client.crt", keys / "kubelet-client.key")
    assert await ask(pods.port, path, kubelet) == (200, "4\r\none\n\r\n0\r\n\r\n")
    assert (await ask(pods.port, f"/containerLogs/{NAMESPACE}/other/main", kubelet))[0] == 404
    assert (await ask(pods.port, f"/containerLogs/{NAMESPACE}/r1/other", kubelet))[0] == 404
    assert (await ask(pods.port, path, kubelet, method="DELETE"))[0] in {403, 405}
    assert (await ask(pods.port, f"/exec/{NAMESPACE}/r1/main", kubelet, method="POST", headers=UPGRADE))[0] == 501
    assert (await ask(pods.port, f"/exec/{NAMESPACE}/r1/main", nobody, method="POST", headers=UPGRADE))[0] == 401
    rule = ("create", "clusterrole", "vn-proxy", "--verb=get", "--resource=nodes/proxy", f"--resource-name={NODE}")
    account = f"--serviceaccount={NAMESPACE}:monitor"
    await asyncio.to_thread(control_plane.kubectl, *rule)
    await asyncio.to_thread(
        control_plane.kubectl, "create", "clusterrolebinding", "vn-proxy", "--clusterrole=vn-proxy", account
    )
    try:
        # What was refused counts for half a minute.
        pods.answers._callers._refused._known.clear()
        async with asyncio.timeout(120):
            while (await ask(pods.port, path, nobody, token=token))[0] != 200:
                pods.answers._callers._refused._known.clear()
        assert (await ask(pods.port, "/containerLogs/other/other/main", nobody, token=token))[0] == 403
    finally:
        for kind in ("clusterrole", "clusterrolebinding"):
            await asyncio.to_thread(control_plane.kubectl, "delete", kind, "vn-proxy")


async def test_a_certificate_of_another_authority_ends_at_the_handshake(pods: Api, tmp_path: Path) -> None:
    pair = self_signed(("127.0.0.1",), datetime.now(UTC))
    (tmp_path / "own.crt").write_bytes(pair.certificate)
    (tmp_path / "own.key").write_bytes(pair.key)
    context = caller(tmp_path / "own.crt", tmp_path / "own.key")
    with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
        await ask(pods.port, f"/containerLogs/{NAMESPACE}/r1/main", context)


async def test_an_api_server_that_verifies_says_so(control_plane: ControlPlane, pods: Api, kube: KubeClient) -> None:
    async with kubelet_api(kube, objects_of_slurm()) as own:
        patch = {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": own.port}}}}
        await asyncio.to_thread(
            control_plane.kubectl, "patch", "node", NODE, "--subresource=status", "-p", json.dumps(patch)
        )
        own.table.put(NAMESPACE, "q1")
        arguments = ("logs", "-n", NAMESPACE, "q1")
        assert "certificate signed by unknown authority" in await failure(control_plane, *arguments)
        said = await failure(control_plane, *arguments, "--insecure-skip-tls-verify-backend")
        assert "is waiting to start: Queued" in said


async def test_a_renewed_certificate_is_used_without_a_restart(pods: Api, tmp_path: Path) -> None:
    before = await served(pods.port)
    pair = self_signed(("127.0.0.1",), datetime.now(UTC))
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    await pods.service.look()
    assert any("cannot be used" in one for one in pods.told)
    assert await served(pods.port) == before
    (tmp_path / "tls.key").write_bytes(pair.key)
    await pods.service.look()
    assert await served(pods.port) == ssl.PEM_cert_to_DER_cert(pair.certificate.decode())


async def test_a_certificate_that_ends_is_told_of(control_plane: ControlPlane, pods: Api, tmp_path: Path) -> None:
    for age, verb in ((360, "ends"), (366, "ended")):
        pair = self_signed(("127.0.0.1",), datetime.now(UTC) - timedelta(days=age))
        (tmp_path / "tls.crt").write_bytes(pair.certificate)
        (tmp_path / "tls.key").write_bytes(pair.key)
        await pods.service.look()
        (said,) = [one for one in pods.told if f" {verb} {pair.ends:%Y-%m-%dT%H:%M:%SZ}, " in one]
        assert said.endswith("renew the Secret in virtualNodes.certificateSecret of the operator's chart")
    pods.table.put(NAMESPACE, "q1")
    assert "certificate has expired" in await failure(control_plane, "logs", "-n", NAMESPACE, "q1")


async def served(port: int) -> bytes:
    """The certificate that a new connection gets."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=caller())
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return found


async def test_the_outputs_of_one_namespace_do_not_keep_out_another(pods: Api, server: Node, keys: Path) -> None:
    path = str(server.write("a.out", b"one\n"))
    kubelet = caller(keys / "kubelet-client.crt", keys / "kubelet-client.key")
    for namespace in ("flood", NAMESPACE):
        pods.table.put(namespace, "r1", path)
    followed = "/containerLogs/flood/r1/main?follow=true"
    flood = [asyncio.create_task(ask(pods.port, followed, kubelet)) for _ in range(60)]
    # One address may have 64 connections whose callers are not known yet.
    await until(lambda: sum(one.done() for one in flood) == 60 - 32, "those beyond the share are answered at once")
    turned_away = {one.result() for one in flood if one.done()}
    assert {status for status, _ in turned_away} == {500}
    assert all(
        "too many outputs of pods in namespace flood are being shown: 32 of 32" in words for _, words in turned_away
    )
    assert (await ask(pods.port, f"/containerLogs/{NAMESPACE}/r1/main", kubelet))[0] == 200
    for one in flood:
        one.cancel()
    await asyncio.gather(*flood, return_exceptions=True)
    await until(lambda: not len(pods.answers.streams), "streams still have places")


async def test_those_who_say_nothing_are_shown_out(pods: Api, keys: Path) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", pods.port) for _ in range(150)]
    unknown = pods.service._listener.unknown
    await until(lambda: 0 < len(unknown) <= 64, "one address has more than its share")
    for _, writer in silent:
        writer.close()
    await until(lambda: not len(unknown), "places are not given back")
    kubelet = caller(keys / "kubelet-client.crt", keys / "kubelet-client.key")
    assert (await ask(pods.port, "/containerLogs/a/b/c", kubelet))[0] == 404


async def test_one_who_takes_nothing_is_dropped(kube: KubeClient, server: Node, keys: Path) -> None:
    kubelet = caller(keys / "kubelet-client.crt", keys / "kubelet-client.key")
    path = str(server.write("a.out", b"x" * 64 * 2**20))
    async with kubelet_api(kube, objects_of_slurm(), limits=Limits(taking=0.5)) as own:
        own.table.put(NAMESPACE, "r1", path)
        reader, writer = await asyncio.open_connection("127.0.0.1", own.port, ssl=kubelet, limit=1024)
        writer.write(f"GET /containerLogs/{NAMESPACE}/r1/main HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await until(lambda: len(own.answers.streams) == 1, "nothing is sent")
        await until(lambda: not len(own.answers.streams), "it still has its place")
        with pytest.raises((ConnectionError, ssl.SSLError, asyncio.IncompleteReadError)):
            await reader.readexactly(64 * 2**20)
        writer.close()
