"""What pods cost that Slurm places: many single ones, and one group of as many. Prints, asserts nothing.

A real API server with Kubernetes' controllers and scheduler, a real Slurm 26.05 with slurmrestd, and the operator as
its charts run it; Nodes have no kubelets, so a pod is done once it is bound. The reference of the same run are as many
SlurmJobs without a script, which nobody places. Run it alone: ``pytest tests/bench/bridge --capture=no
--override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from hack.images.rootfs import ensure
from hack.localkube.kubectl import wait_for
from hack.packaging.render import ROOT, render
from slinky_api import labels
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.resources import BATCH_JOBS, PODS, SLURMJOBS, Resource
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.reconcile.text import moment, stamp
from tests.support import audit, control_plane, deployed_operator, service_account
from tests.support.bridged.site import CONF
from tests.support.control_plane import ControlPlane
from tests.support.played_pods import ALIVE
from tests.support.served import apply_crds, apply_job_crds, wait_until_allowed
from tests.support.slurm_host import SlurmHost

MANY: Final = int(os.environ.get("BENCH_PODS", "500"))
CPUS: Final = 64
NODES: Final = 3 * MANY // CPUS + 1
OPERATOR, TEAM = "slurm-operator", "team"
PATIENCE_S: Final = 600
BEAT_S: Final = 10.0
"""Seconds from one sign of life of the Nodes to the next."""


def template(name: str = "") -> dict[str, Any]:
    about = {"name": name, "namespace": TEAM} if name else {}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    return {
        "metadata": {
            **about,
            "labels": {labels.LABEL_BRIDGE_POD: "true"},
            "annotations": {labels.BRIDGE_PREFIX + "partition": "pods"},
        },
        "spec": {
            "schedulingGates": [{"name": labels.GATE_BRIDGE}],
            "restartPolicy": "Never",
            "tolerations": ALIVE,
            "containers": [container],
        },
    }


class Site:
    """A cluster whose Nodes are nodes of a real Slurm."""

    def __init__(self, plane: ControlPlane, slurm: SlurmHost, folder: Path) -> None:
        self.plane, self.slurm, self.kubectl, self.folder = plane, slurm, plane.kubectl, folder
        self.user = service_account.user_of(OPERATOR)
        self._log = folder / "operator.log"
        self._stop = threading.Event()

    def install(self, stack: ExitStack) -> None:
        for namespace in (OPERATOR, TEAM):
            self.kubectl("create", "namespace", namespace)
        apply_crds(self.kubectl)
        apply_job_crds(self.kubectl)
        objects = render(values={"jobs": {"enabled": True}, "bridge": {"clusters": ["*"]}}, namespace=OPERATOR)
        rights = render(ROOT / "helm" / "slurm-bridge", {"tenants": [TEAM]}, release="slurm-bridge")
        self.kubectl.apply([*objects, *rights])
        for verb, resource in (("create", "slurmjobs"), ("patch", "pods"), ("create", "pods/eviction")):
            wait_until_allowed(self.kubectl, self.user, verb, resource, TEAM)
        size = {"cpu": str(CPUS), "memory": "512Gi", "pods": "1000"}
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
        names = [f"k{number}" for number in range(NODES)]
        self.kubectl.apply(
            [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": one, "labels": {"b": "1"}}} for one in names]
        )
        for one in names:
            status = {"status": {"allocatable": size, "capacity": size, "conditions": [ready]}}
            self.kubectl("patch", "node", one, "--subresource=status", "-p", json.dumps(status))
        beating, stop = threading.Thread(target=self._beat, args=(names,)), self._stop.set
        beating.start()
        _ = stack.callback(beating.join), stack.callback(stop)
        consent = {"cluster.slinky.slurm.net/server": self.slurm.url}
        key = {"jwt_hs256.key": base64.b64encode(self.slurm.jwt_key).decode()}
        tenants = [{"namespaces": [TEAM], "user": "daemon", "partitions": ["pods"]}]
        spec = {
            "server": self.slurm.url,
            "auth": {"jwtKeyRef": {"name": "jwt"}},
            "jobs": {"tenants": tenants, "bridge": {"nodeLabels": {"b": "1"}}},
        }
        secret = {"name": "jwt", "namespace": TEAM, "annotations": consent}
        cluster = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "Cluster"}
        self.kubectl.apply(
            [
                {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "data": key},
                {**cluster, "metadata": {"name": "slurm", "namespace": TEAM}, "spec": spec},
            ]
        )
        file = service_account.kubeconfig_of(self.kubectl, self.plane.kubeconfig, OPERATOR, self.folder / "kubeconfig")
        _ = stack.enter_context(
            deployed_operator.running(deployed_operator.arguments_of(objects), file, OPERATOR, self._log)
        )
        self.until(
            "nodes", lambda: self.slurm.run("sinfo", "-h", "-o", "%D", "-p", "pods").stdout.strip() == str(NODES)
        )

    def _beat(self, names: list[str]) -> None:
        """What kubelets do: without it Nodes are not Ready after a while."""
        while not self._stop.wait(BEAT_S):
            for one in names:
                ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": stamp(datetime.now(UTC))}
                status = json.dumps({"status": {"conditions": [ready]}})
                self.kubectl("patch", "node", one, "--subresource=status", "-p", status)

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        try:
            wait_for(what, holds, PATIENCE_S, 0.5)
        except Exception as error:
            raise AssertionError(f"{error}\n{self._log.read_text()[-6000:]}") from error

    def calls(self) -> Counter[str]:
        """What slurmctld has been asked, by kind of message."""
        text = self.slurm.run("sdiag").stdout.split("statistics by message type")[1].split("statistics by user")[0]
        return Counter(
            {name: int(count) for name, count in re.findall(r"(REQUEST_\w+)\s+\(\s*\d+\) count:(\d+)", text)}
        )

    def reads(self) -> int:
        """GETs of single SlurmJobs and Jobs that the API server has answered: nobody but the operator asks for them."""
        shown = self.kubectl("get", "--raw", "/metrics")
        found = 0.0
        for line in shown.splitlines():
            is_count = line.startswith("apiserver_request_total{") and 'verb="GET"' in line
            if is_count and any(f'resource="{one}"' in line for one in ("slurmjobs", "jobs")):
                found += float(line.rpartition(" ")[2])
        return int(found)

    def submitted(self) -> list[datetime]:
        """When slurmctld took each job, by its log."""
        lines = (self.slurm.folder / "slurmctld.log").read_text(errors="replace").splitlines()
        found = {
            m[2]: m[1] for one in lines if (m := re.search(r"\[(\S+)\] _slurm_rpc_submit_batch_job: (JobId=\d+)", one))
        }
        return sorted(datetime.fromisoformat(one) for one in found.values())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        plane = stack.enter_context(control_plane.running("bridge-bench", controllers=True, scheduler=True))
        slurm = stack.enter_context(SlurmHost(ensure("26.05"), extra_conf=CONF, max_nodes=NODES + 8))
        made = Site(plane, slurm, tmp_path)
        made.install(stack)
        yield made


def bound(site: Site) -> dict[str, float]:
    """Seconds from the creation of each pod, in whole ones, to its binding, by the API server's log."""
    shown = json.loads(site.kubectl("get", "pods", "-n", TEAM, "-o", "json"))["items"]
    created = {one["metadata"]["name"]: moment(one["metadata"]["creationTimestamp"]) for one in shown}
    found: dict[str, float] = {}
    for one in audit.writes(site.plane.audit_log):
        if one.resource != "pods/binding" or one.namespace != TEAM or one.code >= 300:
            continue
        at = created.get(one.name)
        if at is not None:
            found[one.name] = (one.at - at).total_seconds()
    return found


async def create(plane: ControlPlane, resource: Resource, bodies: Sequence[dict[str, Any]]) -> None:
    """Create objects as fast as the API server takes them: kubectl sends one after the other."""
    async with await Connection.connect(plane.kubeconfig) as connection:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="bench")
        _raise_first(await gather_limited(kube.create(resource, one) for one in bodies))


def _raise_first(answers: Iterable[object]) -> None:
    for one in answers:
        if isinstance(one, BaseException):
            raise one


def measured(site: Site, resource: Resource, bodies: Sequence[dict[str, Any]], holds: Callable[[], bool]) -> list[str]:
    """Cells of a row."""
    written, reads, calls = len(list(audit.writes(site.plane.audit_log))), site.reads(), site.calls()
    taken, before = len(site.submitted()), set(bound(site))
    began = time.monotonic()
    asyncio.run(create(site.plane, resource, bodies))
    created = time.monotonic() - began
    site.until("it is done", holds)
    seconds = time.monotonic() - began
    mine = [
        (one.verb, one.resource)
        for one in list(audit.writes(site.plane.audit_log))[written:]
        if one.user == site.user and one.resource.partition("/")[0] in {"pods", "slurmjobs"}
    ]
    asked = site.calls() - calls
    times = [one for name, one in bound(site).items() if name not in before]
    jobs = site.submitted()[taken:]
    rate = len(jobs) / (jobs[-1] - jobs[0]).total_seconds() if len(jobs) > 1 else float("nan")
    print(f"\n{len(jobs)} jobs in {seconds:.1f} s, created in {created:.1f} s, load {os.getloadavg()[0]:.0f}")
    print(f"writes {dict(Counter(mine))}; Slurm {dict(asked)}")
    shares = [statistics.median(times), statistics.quantiles(times, n=20)[18]] if times else []
    shown = [f"{one:.1f}" for one in shares] or ["–", "–"]
    cells = [f"{one / MANY:.2f}" for one in (len(mine), site.reads() - reads, asked.total())]
    return [f"{rate:.0f}", *shown, *cells]


@pytest.mark.timeout(1800)
def test_many_pods(site: Site) -> None:
    job = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "SlurmJob"}
    asked = {"external": {}, "clusterName": "slurm", "partition": "pods", "features": "bridge", "cpusPerTask": 1}
    given = {**asked, "parameters": {"memory_per_cpu": 64}}
    jobs = [{**job, "metadata": {"name": f"job-{number}", "namespace": TEAM}, "spec": given} for number in range(MANY)]

    def running() -> bool:
        path = "jsonpath={.items[*].status.state}"
        shown = site.kubectl("get", "slurmjobs", "-n", TEAM, "-o", path).split().count("Running")
        return shown > 2 * MANY

    def bound_of(many: int) -> Callable[[], bool]:
        path = "jsonpath={.items[*].spec.nodeName}"
        return lambda: len(site.kubectl("get", "pods", "-n", TEAM, "-o", path).split()) >= many

    pod, batch = {"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "batch/v1", "kind": "Job"}
    pods = [{**pod, **template(f"pod-{number}")} for number in range(MANY)]
    spec = {"completions": MANY, "parallelism": MANY, "completionMode": "Indexed", "template": template()}
    group = [{**batch, "metadata": {"name": "gang", "namespace": TEAM}, "spec": spec}]
    # Nothing is deleted in between: there is room for all.
    rows: dict[str, tuple[Resource, list[dict[str, Any]], Callable[[], bool]]] = {
        "single pods": (PODS, pods, bound_of(MANY)),
        "one group": (BATCH_JOBS, group, bound_of(2 * MANY)),
        "SlurmJobs without a script (reference)": (SLURMJOBS, jobs, running),
    }
    cells = {}
    for name, (resource, bodies, holds) in rows.items():
        cells[name] = measured(site, resource, bodies, holds)
        print(name, *cells[name], sep=", ", flush=True)
    times = ("submissions a second", "created to bound, median, s", "95 %, s")
    print(f"\n| {MANY} at once | {' | '.join((*times, 'writes each', 'reads each', 'Slurm calls each'))} |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, row in cells.items():
        print(f"| {name} | {' | '.join(row)} |")
