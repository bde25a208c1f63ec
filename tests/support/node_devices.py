"""A DRA driver on the Nodes of a local Kubernetes, with devices that are not there.

It is a program of `hack.localkube`, and a plugin of the real kubelet. The containers of a pod see the names of the
devices that it has prepared for the pod in a file.
"""

from __future__ import annotations

from typing import Any, Final

from hack.localkube.cluster import Cluster
from hack.localkube.host.machine import ServiceSpec
from hack.localkube.programs import build, debian

DRIVER: Final = "card.example.com"
"""Of the driver, and of its class of devices."""

FILE: Final = "/devices/names"
"""What containers read: one name a line."""

_SERVICE: Final = "devices"


def start(cluster: Cluster, node: str, count: int) -> None:
    """Start the driver of a Node, which is asked by its kubelet from now on."""
    machine = cluster.machine(node)
    kubeconfig = machine.folder / "kubelet.kubeconfig"
    argv = [
        str(build.tool(_SERVICE)),
        f"--kubeconfig={kubeconfig}",
        f"--node={node}",
        f"--driver={DRIVER}",
        f"--count={count}",
    ]
    log = machine.folder / f"{_SERVICE}.log"
    machine.run(ServiceSpec(_SERVICE, argv, {"PATH": debian.SYSTEM_PATH}, log))


def stop(cluster: Cluster, node: str) -> None:
    """End the driver of a Node; its kubelet removes what it has published half a minute later."""
    cluster.machine(node).stop(_SERVICE)


def device_class() -> dict[str, Any]:
    """The class of these devices."""
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    about = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": DRIVER}}
    return {**about, "spec": {"selectors": [selector]}}


def claim_template(name: str, namespace: str, count: int) -> dict[str, Any]:
    """What claims of pods are made from."""
    exactly = {"deviceClassName": DRIVER, "count": count}
    about = {"name": name, "namespace": namespace}
    spec = {"spec": {"devices": {"requests": [{"name": "cards", "exactly": exactly}]}}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": about, "spec": spec}


def claiming(container: dict[str, Any], template: str) -> dict[str, Any]:
    """The spec of a pod whose container has devices, and sees their names."""
    mount = {"name": "devices", "mountPath": FILE.rpartition("/")[0], "subPathExpr": "$(UID)", "readOnly": True}
    uid = {"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
    resources = {**container["resources"], "claims": [{"name": "cards"}]}
    folder = {"path": f"/var/lib/kubelet/plugins/{DRIVER}/pods"}
    return {
        "resourceClaims": [{"name": "cards", "resourceClaimTemplateName": template}],
        "volumes": [{"name": "devices", "hostPath": folder}],
        "containers": [{**container, "resources": resources, "env": [uid], "volumeMounts": [mount]}],
    }
