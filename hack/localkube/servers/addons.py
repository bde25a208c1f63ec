"""What a cluster needs besides Kubernetes itself: DNS, and a default StorageClass that provisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hack.localkube.host.machine import ServiceSpec
from hack.localkube.programs import build
from hack.localkube.servers.node import PAUSE_IMAGE

STORAGE_CLASS = "standard"
PROVISIONER = "rancher.io/local-path"


def dns(folder: Path, address: str, domain: str, kubeconfig: Path) -> ServiceSpec:
    """Return CoreDNS on the control plane's address; it answers for the cluster's names only."""
    corefile = folder / "Corefile"
    corefile.write_text(
        f"""\
.:53 {{
    bind {address}
    errors
    health 127.0.0.1:8080
    ready 127.0.0.1:8181
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 5
    }}
    cache 5
}}
"""
    )
    return ServiceSpec("coredns", [str(build.tool("coredns")), "-conf", str(corefile)], {}, folder / "coredns.log")


def volume_provisioner(folder: Path, volumes: Path, kubeconfig: Path) -> ServiceSpec:
    """Return the provisioner of volumes that are folders; it runs a short pod per volume to make and remove them."""
    volumes.mkdir(parents=True, exist_ok=True)
    config = folder / "provisioner"
    config.mkdir(exist_ok=True)
    settings = {"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [str(volumes)]}]}
    (config / "config.json").write_text(json.dumps(settings))
    argv = [
        str(build.tool("local-path-provisioner")),
        "start",
        f"--config={config / 'config.json'}",
        f"--kubeconfig={kubeconfig}",
        f"--helper-image={PAUSE_IMAGE}",
        f"--provisioner-name={PROVISIONER}",
        "--namespace=kube-system",
        "--configmap-name=local-path-config",
        "--service-account-name=default",
    ]
    return ServiceSpec(
        "local-path-provisioner", argv, {"POD_NAMESPACE": "kube-system"}, folder / "local-path-provisioner.log"
    )


def objects(volumes: Path) -> list[dict[str, Any]]:
    """Return the Kubernetes objects of the add-ons."""
    helper_pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "helper-pod"},
        "spec": {
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "helper-pod", "image": PAUSE_IMAGE, "imagePullPolicy": "IfNotPresent"}],
        },
    }
    settings = {"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [str(volumes)]}]}
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": STORAGE_CLASS,
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": PROVISIONER,
            "volumeBindingMode": "WaitForFirstConsumer",
            "reclaimPolicy": "Delete",
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "local-path-config", "namespace": "kube-system"},
            "data": {
                "config.json": json.dumps(settings),
                "setup": '#!/bin/sh\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n',
                "teardown": '#!/bin/sh\nset -eu\nrm -rf "$VOL_DIR"\n',
                "helperPod.yaml": json.dumps(helper_pod),
            },
        },
    ]
