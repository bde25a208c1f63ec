"""The plugin as an editor of a namespace: a real API server, and a real slurmctld and slurmrestd behind its proxy.

The operator's part, a Token with its Secret and the status of a Cluster, is written here; the Token controller has
tests of its own.
"""

from __future__ import annotations

import base64
import json
import tarfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.images.rootfs import ensure
from hack.localkube.kubectl import wait_for
from hack.localkube.programs import build
from hack.packaging.render import render
from kubectl_slurm import cli, errors
from tests.support import served
from tests.support.control_plane import ControlPlane
from tests.support.host_relay import relay
from tests.support.slurm_host import SlurmHost

API = "slinky.slurm.net/v1alpha1"
EDITOR = "system:serviceaccount:{}:editor"
ROLES = ("system:aggregate-to-edit", "system:aggregate-to-view", "slurm-operator-edit", "slurm-operator-view")
"""What the role edit is made of; making it is the controller manager's, which does not run here."""

CONDITIONS = [
    {"type": "Ready", "status": "True", "reason": "AsExpected", "message": ""},
    {"type": "Degraded", "status": "True", "reason": "PodNotStarted", "message": "slurmdbd: \x1b[31mImagePullBackOff"},
]

Run = Callable[..., str]

USERS = ("nobody", "slurm")
"""Slurm users with a Token of their name."""


def token(namespace: str, user: str) -> dict[str, Any]:
    spec = {"clusterRef": {"name": "slurm"}, "username": user}
    return {"apiVersion": API, "kind": "Token", "metadata": {"name": user, "namespace": namespace}, "spec": spec}


def secret(namespace: str, user: str, value: str) -> dict[str, Any]:
    data = {"auth-token": base64.b64encode(value.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": user, "namespace": namespace}, "data": data}


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmHost]:
    with SlurmHost(ensure("26.05")) as host:
        host.add_node("w-0", cpus=1)
        host.add_node("w-1", cpus=2)
        yield host


@pytest.fixture(scope="module")
def namespace(control_plane: ControlPlane, slurm: SlurmHost) -> Iterator[str]:
    """A namespace with a Cluster whose Service leads to the real slurmrestd, and an editor."""
    name, kubectl = f"plugin-{uuid.uuid4().hex[:8]}", control_plane.kubectl
    kubectl("create", "namespace", name)
    kubectl("create", "serviceaccount", "editor", f"--namespace={name}")
    kubectl.apply([one for one in render() if "aggregate" in str(one["metadata"].get("labels"))])
    for role in ROLES:
        binding = role.replace(":", "-")
        subject = f"--serviceaccount={name}:editor"
        kubectl("create", "rolebinding", binding, f"--clusterrole={role}", subject, f"--namespace={name}")
    with relay(slurm.rest_port) as (address, port):
        meta = {"name": "slurm-restapi", "namespace": name}
        ports = [{"name": "slurmrestd", "port": 6820, "targetPort": port}]
        kubectl.apply(
            [
                {"apiVersion": API, "kind": "Cluster", "metadata": {"name": "slurm", "namespace": name}, "spec": {}},
                {
                    "apiVersion": API,
                    "kind": "NodeSet",
                    "metadata": {"name": "w", "namespace": name},
                    "spec": {"clusterName": "slurm", "replicas": 2},
                },
                *(token(name, user) for user in USERS),
                *(secret(name, user, slurm.token(user)) for user in USERS),
                {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports}},
                {
                    "apiVersion": "v1",
                    "kind": "Endpoints",
                    "metadata": meta,
                    "subsets": [
                        {
                            "addresses": [
                                {"ip": address, "targetRef": {"kind": "Pod", "name": "restapi", "namespace": name}}
                            ],
                            "ports": [{"name": "slurmrestd", "port": port}],
                        }
                    ],
                },
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "restapi", "namespace": name},
                    "spec": {"serviceAccountName": "editor", "containers": [{"name": "slurmrestd", "image": "none"}]},
                },
            ]
        )
        ready = [{**CONDITIONS[0], "lastTransitionTime": "2026-11-27T12:00:00Z"}]
        conditions = [{**one, "lastTransitionTime": "2026-11-27T12:00:00Z"} for one in CONDITIONS]
        # The API server passes requests on to addresses of pods only.
        pod = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        for kind, thing, status in (
            ("pods", "restapi", pod),
            ("clusters", "slurm", {"isReady": True, "conditions": conditions}),
            ("nodesets", "w", {"desired": 2, "readyReplicas": 1, "summary": "1 of 2 nodes ready"}),
            *(("tokens", user, {"username": user, "conditions": ready}) for user in USERS),
        ):
            kubectl(
                "patch",
                f"{kind}/{thing}" if kind == "pods" else f"{kind}.slinky.slurm.net/{thing}",
                f"--namespace={name}",
                "--subresource=status",
                "--type=merge",
                f"--patch={json.dumps({'status': status})}",
            )
        served.wait_until_allowed(kubectl, EDITOR.format(name), "get", "services/proxy", name)
        served.wait_until_allowed(kubectl, EDITOR.format(name), "list", "tokens.slinky.slurm.net", name)
        yield name


def kubeconfig_of(control_plane: ControlPlane, namespace: str, account: str, file: Path) -> Path:
    config: dict[str, Any] = yaml.safe_load(control_plane.kubeconfig.read_text())
    token = control_plane.kubectl("create", "token", account, f"--namespace={namespace}").strip()
    config["users"][0]["user"] = {"token": token}
    file.write_text(yaml.safe_dump(config))
    return file


@pytest.fixture
def run(
    control_plane: ControlPlane,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """The plugin as the editor of the namespace, or as another account; returns what it prints."""
    monkeypatch.setenv("KUBECTL", str(build.tool("kubectl")))
    monkeypatch.delenv("SLURM_JWT", raising=False)

    def call(*arguments: str, account: str = "editor", code: int = errors.OK) -> str:
        kubeconfig = kubeconfig_of(control_plane, namespace, account, tmp_path / account)
        found = cli.main([*arguments, f"--namespace={namespace}", f"--kubeconfig={kubeconfig}"])
        printed = capsys.readouterr()
        assert found == code, printed.out + printed.err
        return printed.out + printed.err

    return call


def test_status_shows_the_cluster_its_nodes_and_the_queue(run: Run, slurm: SlurmHost) -> None:
    slurm.run("scontrol", "update", "nodename=w-0", "state=drain", "reason=new fans")
    try:
        shown = run("status")
        assert "Cluster slurm in namespace plugin-" in shown
        assert ": Slurm 26.05" in shown
        assert "Degraded" in shown
        assert r"slurmdbd: \x1b[31mImagePullBackOff" in shown
        assert "1 of 2 nodes ready" in shown
        assert "IDLE+DRAIN" in shown
        assert "new fans" in shown
        assert "Slurm was not asked" not in shown
        (seen,) = json.loads(run("status", "-o", "json"))
        assert {node["name"] for node in seen["slurm"]["nodes"]} == {"w-0", "w-1"}
    finally:
        slurm.run("scontrol", "update", "nodename=w-0", "state=undrain")


def test_explain_says_which_nodes_miss_by_one_thing(run: Run, slurm: SlurmHost) -> None:
    held = slurm.sbatch("sleep 600", "-w", "w-1", "-n", "2", "-N", "1")
    job = slurm.sbatch("sleep 1", "-n", "2", "-N", "1")
    try:
        wait_for("the first runs", lambda: slurm.job_state(held) == "RUNNING", 240)
        wait_for("the second waits", lambda: "Resources" in run("explain", f"job/{job}"), 240)
        shown = run("explain", f"job/{job}")
        assert f"Job {job} (sbatch)" in shown
        assert "w-0: has 1, the job needs 2" in shown
        assert "w-1: 0 of 2 free, the job needs 2" in shown
        shown = run("explain", "node/w-1")
        assert str(held) in shown
        assert "Node w-1: ALLOCATED" in shown
        assert "there is no" not in run("explain", f"job/{held}")
        assert "Slurm knows no job" in run("explain", "job/999999", code=errors.NOT_FOUND)
        assert "neither Slurm nor namespace" in run("explain", "node/nosuch", code=errors.NOT_FOUND)
    finally:
        slurm.run("scancel", str(held), str(job))


def test_a_drain_says_who_and_an_undrain_ends_it(run: Run, slurm: SlurmHost, namespace: str) -> None:
    assert "1 node drained: w-0" in run("drain", "w-[0]", "--reason", "new fans")
    shown = slurm.run("scontrol", "show", "node", "w-0").stdout
    assert f"Reason=new fans (system:serviceaccount:{namespace}:editor)" in shown
    assert "drained already by" in run("drain", "w-0", "--reason", "again")
    assert "w-0 was drained by" in run("undrain", "w-0")
    assert "DRAIN" not in slurm.run("scontrol", "show", "node", "w-0").stdout
    assert "no node nosuch" in run("drain", "w-0,nosuch", "--reason", "x", code=errors.NOT_FOUND)


def test_a_script_becomes_a_job(run: Run, slurm: SlurmHost, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH --hold --job-name=from-kubectl\ntrue\n")
    job = json.loads(run("submit", str(script), "--sbatch=--time=1", "--as", "slurm", "-o", "json"))["id"]
    try:
        assert "held by its user" in run("explain", f"job/{job}")
    finally:
        slurm.run("scancel", str(job))


def test_a_conformance_run_ends_in_a_table_and_an_exit_code(run: Run, slurm: SlurmHost) -> None:
    wait_for("both nodes are idle", lambda: slurm.run("sinfo", "-h", "-o", "%t").stdout.split() == ["idle"], 240)
    results = {one["name"]: one for one in json.loads(run("verify", "-o", "json"))}
    found = {name: one["verdict"] for name, one in results.items()}
    assert "FAILED" not in found.values(), results
    assert found["a job sees no more CPUs than it has"] == "skipped"
    assert found["a job runs in partition all"] == "passed"
    assert found["a user may not drain a node"] == "passed"
    assert found["a node is drained and undrained"] == "passed"
    assert "DRAIN" not in slurm.run("sinfo", "-h", "-o", "%T").stdout.upper()


def test_a_preflight_stores_nothing_and_shows_what_the_api_server_refuses(
    run: Run, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "nodeset.yaml"
    live = {"apiVersion": API, "kind": "NodeSet", "metadata": {"name": "w"}}
    file.write_text(yaml.safe_dump({**live, "spec": {"clusterName": "slurm", "replicas": 1}}))
    assert "NodeSet w: accepted" in run("preflight", "-f", str(file))
    stored = control_plane.kubectl.get("nodesets.slinky.slurm.net", "w", f"--namespace={namespace}")
    assert stored["spec"]["replicas"] == 2
    file.write_text(yaml.safe_dump({**live, "spec": {"clusterName": "slurm", "replicas": -1}}))
    shown = run("preflight", "-f", str(file), code=errors.FAILED)
    assert "NodeSet w: refused" in shown
    assert "spec.replicas" in shown


def test_a_report_has_what_helps_and_no_secret(run: Run, slurm: SlurmHost, tmp_path: Path) -> None:
    file = tmp_path / "report.tar.gz"
    assert "Not in it" in run("report", "--to", str(file))
    with tarfile.open(file) as archive:
        texts = {name: archive.extractfile(name) for name in archive.getnames()}
        content = {name: text.read().decode() for name, text in texts.items() if text is not None}
    assert "none of 2 nodes" in content["slurm-report/slurm/status.txt"]
    assert "w-0" in content["slurm-report/slurm/status.json"]
    assert '"nodesets"' not in content["slurm-report/missing.txt"]
    assert "eyJ" not in "".join(content.values())
    assert "exists" in run("report", "--to", str(file), code=errors.FAILED)


def test_who_lacks_a_right_is_told_which_and_what_to_ask_for(
    run: Run, control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.kubectl("create", "serviceaccount", "stranger", f"--namespace={namespace}")
    shown = run("status", account="stranger", code=errors.FORBIDDEN)
    assert f"may not list clusters.slinky.slurm.net in namespace '{namespace}'" in shown
    assert f"--clusterrole=view --serviceaccount={namespace}:stranger" in shown

    kubectl = control_plane.kubectl
    kubectl("create", "serviceaccount", "viewer", f"--namespace={namespace}")
    for role in ("system:aggregate-to-view", "slurm-operator-view"):
        subject = f"--serviceaccount={namespace}:viewer"
        binding = f"viewer-{role.replace(':', '-')}"
        kubectl("create", "rolebinding", binding, f"--clusterrole={role}", subject, f"--namespace={namespace}")
    viewer = f"system:serviceaccount:{namespace}:viewer"
    served.wait_until_allowed(kubectl, viewer, "list", "tokens.slinky.slurm.net", namespace)
    # Who may only look sees what the operator has reported, and which right the rest needs.
    shown = run("status", account="viewer")
    assert "Slurm was not asked" in shown
    assert "may not get secrets" in shown
    assert "1 of 2 nodes ready" in shown
