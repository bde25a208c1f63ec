"""The servers of the control plane and their command lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.localkube.host.machine import ServiceSpec
from hack.localkube.host.network import API_SERVICE_ADDRESS, POD_NETWORK, SERVICE_NETWORK
from hack.localkube.programs import build
from hack.localkube.servers import pki

CLUSTER_DOMAIN = "cluster.local"

MEMORY_FOR_TIME = {"GOGC": "400"}
"""Garbage is collected a quarter as often: memory is there, and processors are what tests wait for."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the servers listen: `address` is what clients use, ports are free ones for a control plane alone."""

    address: str
    api_port: int = 6443
    etcd_port: int = 2379
    etcd_peer_port: int = 2380
    domain: str = CLUSTER_DOMAIN
    """What the names of the cluster's Services end in."""

    @property
    def api(self) -> str:
        """The API server's URL."""
        return f"https://{self.address}:{self.api_port}"


def audit_policy(target: Path) -> Path:
    """Write the audit policy: who did what to which object, for writes; reads and Events would drown them."""
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "resources": [{"group": "", "resources": ["events"]}, {"group": "events.k8s.io"}]},
            # The holder of a Lease is in its body, and who held it when is what tests ask.
            {
                "level": "Request",
                "verbs": ["create", "update", "patch"],
                "resources": [{"group": "coordination.k8s.io"}],
            },
            {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
            {"level": "None"},
        ],
    }
    target.write_text(json.dumps(policy))
    return target


def etcd(folder: Path, endpoints: Endpoints) -> ServiceSpec:
    """Return the data store, told not to wait for the disk: its content need not outlive the machine."""
    client = f"http://127.0.0.1:{endpoints.etcd_port}"
    peer = f"http://127.0.0.1:{endpoints.etcd_peer_port}"
    return _service(
        "etcd",
        folder,
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )


def api_server(folder: Path, endpoints: Endpoints, keys: Path, audit_log: Path) -> ServiceSpec:
    """Return the API server: RBAC, the admission that production has, an audit log."""
    return _service(
        "kube-apiserver",
        folder,
        f"--etcd-servers=http://127.0.0.1:{endpoints.etcd_port}",
        f"--bind-address={endpoints.address}",
        f"--advertise-address={endpoints.address}",
        f"--secure-port={endpoints.api_port}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        f"--client-ca-file={keys / 'ca.crt'}",
        f"--tls-cert-file={keys / 'apiserver.crt'}",
        f"--tls-private-key-file={keys / 'apiserver.key'}",
        f"--kubelet-certificate-authority={keys / 'ca.crt'}",
        f"--kubelet-client-certificate={keys / 'kubelet-client.crt'}",
        f"--kubelet-client-key={keys / 'kubelet-client.key'}",
        f"--service-account-key-file={keys / 'sa.pub'}",
        f"--service-account-signing-key-file={keys / 'sa.key'}",
        f"--service-account-issuer=https://kubernetes.default.svc.{endpoints.domain}",
        # Nobody resolves the Nodes' names outside their pods.
        "--kubelet-preferred-address-types=InternalIP",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
        "--allow-privileged=true",
        f"--audit-policy-file={audit_policy(folder / 'audit-policy.json')}",
        f"--audit-log-path={audit_log}",
        "--audit-log-maxsize=200",
        "--event-ttl=2h",
        # A test that deletes a NodeSet should not wait for a cache that polls.
        "--watch-cache=true",
        "--profiling=false",
    )


def controller_manager(folder: Path, kubeconfig: Path, keys: Path) -> ServiceSpec:
    """Return the controllers (garbage collection, StatefulSets, evictions and so on)."""
    return _service(
        "kube-controller-manager",
        folder,
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--service-account-private-key-file={keys / 'sa.key'}",
        f"--root-ca-file={keys / 'ca.crt'}",
        f"--cluster-cidr={POD_NETWORK}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--profiling=false",
    )


def scheduler(folder: Path, kubeconfig: Path) -> ServiceSpec:
    """Return the scheduler."""
    return _service(
        "kube-scheduler",
        folder,
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        "--profiling=false",
    )


def issue_certificates(
    authority: pki.Authority, folder: Path, hosts: Sequence[str], domain: str = CLUSTER_DOMAIN
) -> None:
    """Issue what the API server needs; `hosts` are the names and addresses it is reached by."""
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{domain}"]
    authority.issue(
        "apiserver", "kube-apiserver", hosts=[*names, "localhost", "127.0.0.1", API_SERVICE_ADDRESS, *hosts]
    )
    authority.issue("kubelet-client", "kube-apiserver-kubelet-client", groups=["system:masters"])
    pki.service_account_key(folder)


def _service(name: str, folder: Path, *flags: str) -> ServiceSpec:
    return ServiceSpec(name, [str(build.tool(name)), *flags], MEMORY_FOR_TIME, folder / f"{name}.log")
