"""The servers of a Node and their configuration files: containerd, kubelet, kube-proxy, the pod network."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from hack.localkube.host.machine import Look, ServiceSpec
from hack.localkube.host.network import POD_NETWORK, Fabric
from hack.localkube.programs import build, debian
from hack.localkube.servers import pki
from hack.localkube.servers.control_plane import MEMORY_FOR_TIME, Endpoints

PAUSE_IMAGE = "localhost/slinky/busybox:1"
ENVIRONMENT = {"PATH": debian.SYSTEM_PATH, **MEMORY_FOR_TIME}
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
BINDS = {
    "containerd": "/var/lib/containerd",
    "kubelet": "/var/lib/kubelet",
    "cni": "/etc/cni/net.d",
    "cni-state": "/var/lib/cni",
    "logs": "/var/log",
}
"""Folder of the machine and where its programs look for it."""


@dataclass(frozen=True, slots=True)
class Node:
    """One Node: its place in the cluster and its files."""

    name: str
    index: int
    folder: Path
    cgroup: str

    def look(self) -> Look:
        """Return what the Node's machine looks like from inside."""
        binds = []
        for source, target in BINDS.items():
            (self.folder / source).mkdir(parents=True, exist_ok=True)
            binds.append((str(self.folder / source), target))
        return Look(self.name, isolated=True, binds=binds, tmpfs=["/run"])

    def services(self, fabric: Fabric, endpoints: Endpoints, authority: pki.Authority) -> list[ServiceSpec]:
        """Write the Node's files and return its servers in the order of their start."""
        self._write_cni(fabric)
        return [
            self._containerd(),
            self._kubelet(fabric, endpoints, authority),
            self._kube_proxy(endpoints, authority),
        ]

    def _write_cni(self, fabric: Fabric) -> None:
        bridge = {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": str(fabric.pods(self.index))}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
        config = {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, portmap]}
        (self.folder / "cni" / "10-pods.conflist").write_text(json.dumps(config))

    def _containerd(self) -> ServiceSpec:
        config = self.folder / "containerd.toml"
        # restrict_oom_score_adj: without CAP_SYS_RESOURCE runc may not lower it and every sandbox would die.
        config.write_text(
            f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  max_container_log_line_size = -1
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""
        )
        program = debian.which("containerd") or "containerd"
        return ServiceSpec(
            "containerd",
            [program, "--config", str(config)],
            ENVIRONMENT,
            self.folder / "containerd.log",
        )

    def _kubelet(self, fabric: Fabric, endpoints: Endpoints, authority: pki.Authority) -> ServiceSpec:
        address = fabric.node(self.index)
        client = authority.issue(f"{self.name}-kubelet", f"system:node:{self.name}", groups=["system:nodes"])
        serving = authority.issue(f"{self.name}-serving", self.name, hosts=[self.name, address])
        kubeconfig = pki.write_kubeconfig(
            self.folder / "kubelet.kubeconfig", endpoints.api, authority.certificate, client
        )
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority.certificate)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(serving.certificate),
            "tlsPrivateKeyFile": str(serving.key),
            "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.cgroup}",
            "clusterDNS": [fabric.control_plane],
            "clusterDomain": endpoints.domain,
            "resolvConf": "",
            "failSwapOn": False,
            "maxPods": 250,
            "oomScoreAdj": 0,
            "serializeImagePulls": False,
            # The Nodes share one disk with everything else of the machine: only a really full one counts.
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "5s",
            "shutdownGracePeriod": "0s",
        }
        file = self.folder / "kubelet.json"
        file.write_text(json.dumps(config))
        argv = [
            str(build.tool("kubelet")),
            f"--config={file}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={self.name}",
            f"--node-ip={address}",
            f"--node-labels=topology.kubernetes.io/zone={self.name}",
        ]
        return ServiceSpec("kubelet", argv, ENVIRONMENT, self.folder / "kubelet.log")

    def _kube_proxy(self, endpoints: Endpoints, authority: pki.Authority) -> ServiceSpec:
        client = authority.issue(f"{self.name}-proxy", "system:kube-proxy")
        kubeconfig = pki.write_kubeconfig(
            self.folder / "kube-proxy.kubeconfig", endpoints.api, authority.certificate, client
        )
        config = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "mode": "iptables",
            "clusterCIDR": POD_NETWORK,
            "hostnameOverride": self.name,
            "oomScoreAdj": 0,
            # The connection table is the host's, and not ours to resize.
            "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }
        file = self.folder / "kube-proxy.json"
        file.write_text(json.dumps(config))
        argv = [str(build.tool("kube-proxy")), f"--config={file}"]
        return ServiceSpec("kube-proxy", argv, ENVIRONMENT, self.folder / "kube-proxy.log")
