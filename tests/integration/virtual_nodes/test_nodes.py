"""Virtual Nodes on a real API server: one call registers them, a second pass writes nothing, Leases are theirs."""

from __future__ import annotations

import asyncio
import contextlib
import uuid

from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, LEASES, NAMESPACES, VIRTUAL_NODES
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.virtual_nodes.directory import CACHE
from slinky_operator.virtual_nodes.nodes.controller import VirtualNodesReconciler
from slinky_operator.virtual_nodes.nodes.leases import NAMESPACE, NodeLeases
from slinky_operator.virtual_nodes.nodes.observation import KubeletAddress, Observation
from slinky_operator.virtual_nodes.nodes.partition_poll import PartitionPoll
from slinky_operator.virtual_nodes.nodes.reachability_poll import ReachabilityPoll
from tests.support.control_plane import ControlPlane
from tests.unit.virtual_nodes.nodes.worlds import Slurm, condition


class Told:
    """Events."""

    def warning(self, obj: Object, reason: str, message: str) -> None:
        raise AssertionError(message)

    def normal(self, obj: Object, reason: str, message: str) -> None:
        assert reason in {"VirtualNodeCreated", "VirtualNodeRemoved"}


async def test_nodes_are_registered_in_one_call_and_settle(control_plane: ControlPlane) -> None:
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="test")
        host = f"h{uuid.uuid4().hex[:8]}"
        names = [f"slurm-{host}-{one}" for one in ("debug", "gpu")]
        _ = await kube.create(NAMESPACES, {"metadata": {"name": host}})
        with contextlib.suppress(errors.AlreadyExists):
            _ = await kube.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        spec = {"jobs": {"virtualNodes": {"host": host, "zone": "z"}}}
        body = {
            "apiVersion": CLUSTERS.api_version,
            "kind": "Cluster",
            "metadata": {"name": "slurm", "namespace": host},
            "spec": spec,
        }
        made = await kube.create(CLUSTERS, body, host)
        clusters, nodes, slurm, poll = Store(), Store(), Slurm(), PartitionPoll()
        slurm.get = lambda _: slurm  # type: ignore[assignment, method-assign]
        leases = NodeLeases(kube.apart(10), nodes)
        observation = Observation(nodes, slurm, poll, KubeletAddress("10.0.0.7", 10350))
        reconciler = VirtualNodesReconciler(
            kube,
            Told(),
            ClusterReader(clusters),
            observation,
            poll,
            ReachabilityPoll(kube, None, clusters),
            leases,
            ["*"],
        )
        answered = asyncio.Event()
        poll.subscribe(lambda _: answered.set())
        task = asyncio.create_task(poll.run())

        async def step() -> dict[str, str]:
            clusters.put(await kube.get(CLUSTERS, "slurm", host))
            listing = await kube.list(VIRTUAL_NODES, label_selector=CACHE.label_selector)
            for obj in listing.items:
                nodes.put(obj)
            _ = await reconciler.reconcile((host, "slurm"))
            found = await kube.list(VIRTUAL_NODES, label_selector=CACHE.label_selector)
            return {str(one["metadata"]["name"]): str(one["metadata"]["resourceVersion"]) for one in found.items}

        try:
            _ = await step()
            async with asyncio.timeout(120):
                _ = await answered.wait()
            assert set(names) <= (await step()).keys()
            ready = condition(await kube.get(VIRTUAL_NODES, names[1]), "Ready")
            assert ready["status"] == "True"
            before = await step()
            for _ in range(3):
                after = await step()
                assert {name: after[name] for name in names} == {name: before[name] for name in names}
            assert await leases.renew()
            assert await leases.renew()
            lease = await kube.get(LEASES, names[0], NAMESPACE)
            assert lease["spec"]["holderIdentity"] == names[0]
            slurm.away()
            _ = await step()
            away = await kube.get(VIRTUAL_NODES, names[0])
            assert condition(away, "SlurmReachable")["status"] == "False"
            assert condition(away, "Ready")["status"] == "True"
            shown = await kube.get(CLUSTERS, "slurm", host)
            assert shown["status"]["virtualNodes"]["reason"] == "SlurmUnreachable"
        finally:
            _ = task.cancel()
            for name in names:
                _ = await kube.delete(VIRTUAL_NODES, name, uid=None)
            _ = await kube.delete(CLUSTERS, "slurm", host, uid=str(made["metadata"]["uid"]))
