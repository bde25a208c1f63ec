"""Two namespaces of one operator: one with a Cluster and its users, one whose editor attacks it.

The operator runs as its chart's ServiceAccount with its chart's rights, and who attacks has what the charts and
Kubernetes give to the role edit of a namespace. Slurm is a fake that accepts tokens of the Cluster's key alone; no
kubelet runs.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import yaml

from hack.localkube.kubectl import wait_for
from hack.packaging.render import ROOT, render
from slinky_api.v1alpha1 import JOB_KINDS, KINDS
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.threaded import running as fake_running
from tests.support import deployed_operator, service_account
from tests.support.control_plane import ControlPlane
from tests.support.served import apply_job_crds, wait_until_allowed

OPERATOR, VICTIM, TENANT = "security-operator", "security-victim", "security-tenant"
EDITOR: Final = "editor"
KEY: Final = b"k" * 32
GROUP: Final = "slinky.slurm.net"
OWN: Final = f"/apis/{GROUP}/v1alpha1/namespaces/"
RBAC: Final = "rbac.authorization.k8s.io"
PATIENCE: Final = 120.0
AT_ONCE: Final = 8
HELLO: Final = "#!/bin/sh\nhostname\n"

TENANTS: Final = [
    {"namespaces": [VICTIM], "user": "alice"},
    {"namespaces": [TENANT], "user": "mallory", "accounts": ["physics"], "partitions": ["main"], "qos": ["normal"]},
]
TOKENS: Final = [
    {"namespaces": [VICTIM], "usernames": ["alice"]},
    {"namespaces": [TENANT], "usernames": ["mallory"], "maxLifetime": "8h"},
]


class Answer(NamedTuple):
    """What the API server says."""

    status: int
    body: dict[str, Any]

    @property
    def words(self) -> str:
        """Why it refuses."""
        return str(self.body.get("message", ""))


def plural(kind: str) -> str:
    """Name of a kind of the operator in paths."""
    return f"{kind.lower()}s"


def made(kind: str, name: str, spec: dict[str, Any], **about: Any) -> dict[str, Any]:
    """An object of the operator's kinds."""
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": {"name": name, **about}, "spec": spec}


@dataclass
class Site:
    """All of it, while it runs."""

    plane: ControlPlane
    slurm: FakeSlurmrestd
    log: Path
    url: str = ""
    """Of the operator's health server."""
    admin: httpx.Client = field(default_factory=httpx.Client)
    editor: httpx.Client = field(default_factory=httpx.Client)
    """Who may edit the attacking namespace, and nothing else."""

    def ask(self, method: str, path: str, body: Any = None, *, who: httpx.Client | None = None) -> Answer:
        """Send a request, by default as the editor."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        content = None if body is None else json.dumps(body).encode()
        answer = (who or self.editor).request(method, path, content=content, headers={"Content-Type": kind})
        return Answer(answer.status_code, answer.json())

    def create(self, body: dict[str, Any], namespace: str = TENANT, *, dry: bool = False) -> Answer:
        """Create an object of the operator's kinds as the editor."""
        return self.ask("POST", f"{OWN}{namespace}/{plural(body['kind'])}{'?dryRun=All' if dry else ''}", body)

    def find(self, kind: str, name: str, namespace: str = TENANT) -> dict[str, Any]:
        """An object as it is now; empty if there is none."""
        answer = self.ask("GET", f"{OWN}{namespace}/{plural(kind)}/{name}", who=self.admin)
        return answer.body if answer.status == 200 else {}

    def items(self, path: str) -> list[dict[str, Any]]:
        """A list, read as an administrator."""
        found: list[dict[str, Any]] = self.ask("GET", path, who=self.admin).body["items"]
        return found

    def side_by_side(self, work: Callable[[Any], Any], things: Iterable[Any]) -> list[Any]:
        """Do something with each thing, some at a time."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(work, things))

    def until(self, what: str, holds: Callable[[], Any]) -> Any:
        """Wait for something that is true; what the operator has said is in the failure."""
        deadline = time.monotonic() + PATIENCE
        while not (found := holds()):
            assert time.monotonic() < deadline, f"{what}\n{self.log.read_text()[-6000:]}"
            time.sleep(0.1)
        return found

    def said_of(self, kind: str, name: str) -> str:
        """Wait for conditions of an object of the attacker, and give their reasons and messages."""
        status = self.until(f"{kind} {name} has conditions", lambda: self.find(kind, name).get("status"))
        return " ".join(f"{one['reason']} {one.get('message', '')}" for one in status.get("conditions", ()))


def _clients(plane: ControlPlane) -> tuple[httpx.Client, httpx.Client]:
    config = yaml.safe_load(plane.kubeconfig.read_text())
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    folder = plane.kubeconfig.parent
    names = ("ca", "certificate", "key")
    values = server["certificate-authority-data"], user["client-certificate-data"], user["client-key-data"]
    files = {name: folder / f"security-{name}.pem" for name in names}
    for name, value in zip(names, values, strict=True):
        files[name].write_bytes(base64.b64decode(value))
    token = plane.kubectl("create", "token", EDITOR, f"--namespace={TENANT}").strip()
    trust, known = (ssl.create_default_context(cafile=str(files["ca"])) for _ in range(2))
    known.load_cert_chain(files["certificate"], files["key"])
    common: dict[str, Any] = {"base_url": server["server"], "timeout": 60, "trust_env": False}
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(verify=known, **common), httpx.Client(verify=trust, headers=headers, **common)


def _roles() -> list[dict[str, Any]]:
    """What the role edit of Kubernetes gets from the charts, and who has it; its aggregation has no controller here."""
    rendered = [*render(), *render(ROOT / "helm" / "slurm-jobs", release="slurm-jobs")]
    charts = [
        one for one in rendered if one["kind"] == "ClusterRole" and one["metadata"]["name"].endswith(("-edit", "-view"))
    ]
    names = [one["metadata"]["name"] for one in charts]
    assert len(names) == 4
    subject = {"kind": "ServiceAccount", "name": EDITOR, "namespace": TENANT}
    bindings = [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name.replace(":", "-"), "namespace": TENANT},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        }
        for name in (*names, "system:aggregate-to-edit", "system:aggregate-to-view")
    ]
    return [*charts, *bindings]


def _victim(url: str) -> list[dict[str, Any]]:
    consent = {"cluster.slinky.slurm.net/server": url}
    data = {"jwt_hs256.key": base64.b64encode(KEY).decode()}
    about: dict[str, Any] = {"name": "jwt", "namespace": VICTIM, "annotations": consent}
    cluster = {
        "server": url,
        "auth": {"jwtKeyRef": {"name": "jwt"}},
        "jobs": {"tenants": TENANTS},
    }
    hello = {"clusterName": "slurm", "script": HELLO}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": data},
        made("Cluster", "slurm", cluster, namespace=VICTIM),
        # Only a Cluster that the operator runs signs tokens of its own; its daemons need not run for that.
        made("Cluster", "keys", {"auth": {"tokens": TOKENS}}, namespace=VICTIM),
        made("SlurmJob", "hello", hello, namespace=VICTIM),
        made("Token", "portal", {"clusterRef": {"name": "keys"}, "username": "alice"}, namespace=VICTIM),
    ]


@contextmanager
def running(plane: ControlPlane, folder: Path) -> Iterator[Site]:
    """Run all of it, until the job and the token of the Cluster's own user are there."""
    kubectl = plane.kubectl
    apply_job_crds(kubectl)
    values = {"watchNamespaces": [VICTIM, TENANT], "otherOperators": [], "jobs": {"enabled": True}}
    charts = render(values=values, namespace=OPERATOR)
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in (OPERATOR, VICTIM, TENANT)
    ]
    accounts = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        for name, namespace in (("default", VICTIM), ("default", TENANT), (EDITOR, TENANT))
    ]
    kubectl.apply([*namespaces, *accounts, *charts, *_roles()])
    user = service_account.user_of(OPERATOR)
    for namespace in (VICTIM, TENANT):
        wait_until_allowed(kubectl, user, "create", "pods", namespace)
    wait_until_allowed(kubectl, f"system:serviceaccount:{TENANT}:{EDITOR}", "create", f"slurmjobs.{GROUP}", TENANT)
    kubeconfig = service_account.kubeconfig_of(kubectl, plane.kubeconfig, OPERATOR, folder / "kubeconfig")
    log = folder / "operator.log"
    with (
        fake_running(key=KEY) as slurm,
        deployed_operator.running(deployed_operator.arguments_of(charts), kubeconfig, OPERATOR, log) as url,
    ):
        slurm.world.add_partition("main")
        slurm.add_node("w-0", cpus=8)
        wait_for(
            "the operator is ready", lambda: deployed_operator.fetch(f"{url}/readyz").rstrip().endswith("\nok"), 120
        )
        kubectl.apply(_victim(slurm.url))
        admin, editor = _clients(plane)
        with admin, editor:
            site = Site(plane, slurm, log, url, admin, editor)
            for kind, name, field_ in (("SlurmJob", "hello", "jobId"), ("Token", "portal", "expiresAt")):
                site.until(f"{kind} {name}", lambda: site.find(kind, name, VICTIM).get("status", {}).get(field_))  # noqa: B023
            yield site
            # Nothing of it is left for other tests of this API server, also not what waits for its Slurm.
            # Clusters last.
            for kind in sorted((one.kind for one, _ in (*KINDS, *JOB_KINDS)), reverse=True):
                for namespace in (TENANT, VICTIM):
                    place = f"{OWN}{namespace}/{plural(kind)}"
                    _ = site.ask("DELETE", place, who=admin)
                    for obj in site.items(place):
                        path = f"{place}/{obj['metadata']['name']}"
                        _ = site.ask("PATCH", path, {"metadata": {"finalizers": None}}, who=admin)
