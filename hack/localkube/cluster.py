"""A whole cluster: bring it up, take it down, say how it is."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from hack.images import build as images
from hack.localkube.control_plane_only import wait_until_ready
from hack.localkube.errors import LocalKubeError, NoSpace, NotRoot, NotRunning, last_lines
from hack.localkube.host import cgroups, machine, network, sysctls
from hack.localkube.host.machine import Look, Machine
from hack.localkube.kubectl import Kubectl, wait_for
from hack.localkube.paths import ClusterPaths, state_root
from hack.localkube.programs import build, debian
from hack.localkube.servers import addons, control_plane, pki
from hack.localkube.servers.control_plane import CLUSTER_DOMAIN, Endpoints
from hack.localkube.servers.node import CONTAINERD_SOCKET, Node
from hack.machine.progress import say, step

CONTROL_PLANE = "control-plane"
NEEDS_MIB = 2000
PATIENCE = 240.0
"""Seconds for a part of a cluster to come up. It takes a few; but others may use the machine, and two clusters start at
a time."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One local cluster, up or not."""

    name: str

    @property
    def paths(self) -> ClusterPaths:
        """Where its files are."""
        return ClusterPaths(self.name)

    @property
    def kubectl(self) -> Kubectl:
        """kubectl for this cluster."""
        return Kubectl(self.paths.kubeconfig)

    def node_names(self) -> list[str]:
        """Return the Nodes' names, as recorded by `up`; none for a control plane alone."""
        if not self.paths.record.exists():
            return []
        names: list[str] = self._record()["nodes"]
        return names

    def machine(self, name: str) -> Machine:
        """Return the machine of a Node, or of the control plane."""
        return Machine(self.paths.machine(name))

    @property
    def domain(self) -> str:
        """What the names of its Services end in, as recorded by `up`."""
        return str(self._record()["domain"])

    def up(self, nodes: int = 2, domain: str = CLUSTER_DOMAIN) -> None:
        """Bring the cluster up, or leave it alone if it is up with as many Nodes and that DNS domain.

        A half-made cluster (a killed `up`, a rebooted machine) is cleaned away first.

        Raises
        ------
        LocalKubeError
            One of its kinds, with words for the user.
        """
        check_host()
        if self._is_healthy(nodes, domain):
            say(f"  ok   the cluster {self.name!r} is up already")
            return
        debian.ensure()
        build.ensure(build.KUBERNETES, build.PROVISIONER, build.HELM)
        archives = images.ensure(["busybox"], say)["busybox"]
        self.down(quiet=True)
        self._check_space()
        start = time.monotonic()
        with step(f"start Kubernetes {build.KUBERNETES_VERSION} with {nodes} Nodes"):
            self._start(nodes, domain, archives)
        say(f"  ok   the cluster {self.name!r} is up after {time.monotonic() - start:.1f} s")

    def _start(self, nodes: int, domain: str, archives: Sequence[Path]) -> None:
        paths = self.paths
        paths.root.mkdir(parents=True)
        names = [f"node-{index}" for index in range(1, nodes + 1)]
        master = self.machine(CONTROL_PLANE)
        with _one_at_a_time():
            fabric = network.choose(paths.mark)
            # Written before anything of the host changes, so that `down` can put it back whatever happens next.
            originals = sysctls.originals(sorted(state_root().glob(f"*/{paths.record.name}")))
            record = {"nodes": names, "domain": domain, "fabric": str(fabric.subnet), "sysctls": originals}
            # Whole or not at all: `down` reads it also after a crash, and after the disk was full.
            fresh = paths.record.with_suffix(".fresh")
            fresh.write_text(json.dumps(record))
            fresh.replace(paths.record)
            master.start(Look(CONTROL_PLANE, isolated=True))
            network.wire_control_plane(fabric, master)
        endpoints = Endpoints(fabric.control_plane, domain=domain)
        authority = pki.Authority(paths.pki, datetime.datetime.now(datetime.UTC))
        control_plane.issue_certificates(authority, paths.pki, [fabric.control_plane], domain)
        admin = authority.issue("admin", "admin", groups=["system:masters"])
        master.run(control_plane.etcd(master.folder, endpoints))
        master.run(control_plane.api_server(master.folder, endpoints, paths.pki, paths.audit_log))
        kubeconfig = pki.write_kubeconfig(paths.kubeconfig, endpoints.api, authority.certificate, admin)
        members = [
            Node(name, index, paths.machine(name), f"{paths.cgroup}/{name}")
            for index, name in enumerate(names, start=1)
        ]
        for member in members:
            with _one_at_a_time():
                cgroups.create(member.cgroup)
            host = Machine(member.folder)
            host.start(member.look())
            network.wire_node(fabric, master, host, member.index, nodes)
            containerd, *rest = member.services(fabric, endpoints, authority)
            host.run(containerd)
            self._load(host, archives)
            for service in rest:
                host.run(service)
        wait_until_ready(master, endpoints, authority.certificate)
        for name in ("kube-controller-manager", "kube-scheduler"):
            pair = authority.issue(name, f"system:{name}")
            config = pki.write_kubeconfig(
                master.folder / f"{name}.kubeconfig", endpoints.api, authority.certificate, pair
            )
            if name == "kube-scheduler":
                master.run(control_plane.scheduler(master.folder, config))
            else:
                master.run(control_plane.controller_manager(master.folder, config, paths.pki))
        master.run(addons.dns(master.folder, fabric.control_plane, domain, kubeconfig))
        kubectl = self.kubectl
        kubectl.apply(addons.objects(paths.volumes))
        master.run(addons.volume_provisioner(master.folder, paths.volumes, kubeconfig))
        try:
            wait_for("all Nodes Ready", lambda: len(self._ready_nodes()) == nodes, timeout=PATIENCE)
        except LocalKubeError as error:
            # What is below the cluster's folder goes with it, and with that what a kubelet has to say.
            logs = [member.folder / "kubelet.log" for member in members]
            told = "\n".join(f"last lines of {log}:\n{last_lines(log)}" for log in logs)
            raise LocalKubeError(f"{error}\n{told}") from error
        wait_for(
            "the default service account",
            lambda: bool(kubectl("get", "serviceaccount", "default", "--output=name")),
            timeout=PATIENCE,
        )

    def plug_in(self, name: str, process: int) -> str:
        """Plug the network of a process in as that of a machine outside Kubernetes; returns its address.

        Raises
        ------
        NotRunning
            The cluster is not up.
        """
        self.require_up()
        fabric = network.Fabric(self.paths.mark, IPv4Network(self._record()["fabric"]))
        return network.wire_outsider(fabric, self.machine(CONTROL_PLANE), name, process)

    def down(self, *, quiet: bool = False) -> None:
        """End the cluster and put back what `up` changed; nothing happens if there is none.

        Only what this cluster started is ended: its machines are known by their folder, its cgroups by its name.
        """
        paths = self.paths
        if not paths.root.exists() and not machine.find(paths.root):
            if not quiet:
                say(f"  ok   the cluster {self.name!r} is not up")
            return
        with step(f"end the cluster {self.name!r}"):
            machine.end_all(paths.root)
            with _one_at_a_time():
                cgroups.remove(paths.cgroup)
                if paths.record.exists() and not self._is_beside_another():
                    sysctls.put_back(self._record()["sysctls"])
                # The record has gone before another cluster looks for one.
                paths.record.unlink(missing_ok=True)
            shutil.rmtree(paths.root, ignore_errors=False)

    def _is_beside_another(self) -> bool:
        """Whether another cluster with Nodes runs, whose kubelets go on counting on their settings."""
        others = {ClusterPaths(folder.relative_to(state_root()).parts[0]) for folder in machine.find(state_root())}
        return any(other.record.exists() for other in others - {self.paths})

    def load_images(self, archives: Sequence[Path]) -> None:
        """Load image archives into every Node.

        Raises
        ------
        NotRunning
            The cluster is not up.
        """
        self.require_up()
        for name in self.node_names():
            self._load(self.machine(name), archives)

    def _load(self, host: Machine, archives: Sequence[Path]) -> None:
        socket = Path(f"/proc/{host.pid}/root") / CONTAINERD_SOCKET.removeprefix("/")
        wait_for(f"containerd of {host.name}", socket.exists, timeout=PATIENCE, poll=0.05)
        for archive in archives:
            command = host.inside(
                debian.which("ctr") or "ctr", "--namespace=k8s.io", "images", "import", "--no-unpack", str(archive)
            )
            deadline = time.monotonic() + PATIENCE
            while True:
                run = subprocess.run(command, capture_output=True, text=True, check=False)
                if run.returncode == 0:
                    break
                # The socket is there a moment before the service answers.
                if time.monotonic() > deadline or "connection refused" not in run.stderr:
                    raise LocalKubeError(f"loading {archive.name} into {host.name}: {run.stderr.strip()}")
                time.sleep(0.1)

    def require_up(self) -> None:
        """Raise `NotRunning` unless the cluster is up."""
        if not self.paths.kubeconfig.exists() or not machine.find(self.paths.root):
            raise NotRunning(self.name)

    def status(self) -> dict[str, Any]:
        """Return the state of all machines and their services, and which Nodes are Ready."""
        self.require_up()
        names = [CONTROL_PLANE, *self.node_names()]
        return {
            "name": self.name,
            "kubeconfig": str(self.paths.kubeconfig),
            "machines": {name: self.machine(name).services() for name in names},
            "ready": self._ready_nodes(),
        }

    def memory_mib(self) -> dict[str, int]:
        """Return the resident memory of each machine's processes (containers included) in MiB."""
        totals = dict.fromkeys([CONTROL_PLANE, *self.node_names()], 0)
        namespaces = {str(Path(f"/proc/{self.machine(name).pid}/ns/pid").readlink()): name for name in totals}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                owner = namespaces.get(str((entry / "ns/pid").readlink()))
                if owner is not None:
                    resident = int((entry / "statm").read_text().split()[1])
                    totals[owner] += resident * os.sysconf("SC_PAGE_SIZE") // 2**20
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # it ended while we looked, or is none of ours
        return totals

    def _ready_nodes(self) -> list[str]:
        nodes = self.kubectl.get("nodes")["items"]
        return [
            node["metadata"]["name"]
            for node in nodes
            if any(c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", []))
        ]

    def _is_healthy(self, nodes: int, domain: str) -> bool:
        if not self.paths.kubeconfig.exists() or not self.paths.record.exists():
            return False
        found = {folder.name for folder in machine.find(self.paths.root)}
        names = self.node_names()
        if len(names) != nodes or self._record().get("domain") != domain or found != {CONTROL_PLANE, *names}:
            return False
        try:
            return len(self._ready_nodes()) == nodes
        except LocalKubeError:
            return False

    def _record(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self.paths.record.read_text())
        return record

    def _check_space(self) -> None:
        folder = self.paths.root.parent
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free // 2**20
        if free < NEEDS_MIB:
            raise NoSpace(folder, free, NEEDS_MIB)


def check_host() -> None:
    """Check, before minutes go into programs and images, that this machine can run Nodes.

    Raises
    ------
    NotRoot
        This process may not make namespaces and mounts.
    Unsupported
        The kernel lacks controllers that a kubelet needs.
    """
    if os.geteuid() != 0:
        raise NotRoot("a cluster with Nodes")
    cgroups.check()


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Keep other clusters from looking at the host while it is changed.

    Until a cluster has its route there, another one would choose the same addresses; and one that ends removes the
    group above its own if it is empty, while one that begins is about to make its own in it.
    """
    # The folder itself is locked: a file for that would be left behind.
    state_root().mkdir(parents=True, exist_ok=True)
    folder = os.open(state_root(), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
