"""Two releases of the operator, each a process with the rights of the chart, on a real API server: one works."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from hack.packaging.render import OPERATOR_CHART, helm, render
from slinky_api import labels
from tests.support import control_plane as support
from tests.support import service_account
from tests.support.control_plane import ControlPlane
from tests.support.operator_process import OperatorProcess, operator
from tests.support.served import apply_crds, wait_until_allowed

pytestmark = pytest.mark.long(130)

SOONER = """
from slinky_operator.kube.leadership import legacy_operator, releases
releases.LOOK_EVERY, releases.WORKING_LOOK_EVERY = 0.5, 0.5
legacy_operator.SHORTEST, legacy_operator.MARGIN = 1.0, 2.0
"""
"""Looks more often; the times themselves are tested in `tests/unit/kube/leadership`."""


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One in which no operator of other tests takes a Lease."""
    with support.running("releases") as instance:
        apply_crds(instance.kubectl)
        yield instance


@dataclass
class Release:
    """An installed chart whose pods are processes of this machine."""

    namespace: str
    flags: list[str]
    kubeconfig: Path
    folder: Path

    def run(self) -> Any:
        flags = (*self.flags, "--service-account=slurm-operator")
        return operator(self.kubeconfig, self.namespace, self.folder, *flags, first=SOONER)


def installed(control_plane: ControlPlane, folder: Path, *served: str, **values: Any) -> Release:
    """Install the chart in a namespace of its own; nothing here makes pods for its Deployment."""
    kubectl = control_plane.kubectl
    namespace = f"release-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", namespace)
    objects = render(values={"watchNamespaces": list(served), **values}, namespace=namespace)
    kubectl.apply(objects)
    (deployment,) = [one for one in objects if one["kind"] == "Deployment"]
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    own = (folder / namespace).resolve()
    own.mkdir()
    kubeconfig = service_account.kubeconfig_of(kubectl, control_plane.kubeconfig, namespace, own / "kubeconfig")
    user = service_account.user_of(namespace)
    for place in served or (namespace,):
        wait_until_allowed(kubectl, user, "patch", "nodesets.slinky.slurm.net", place)
    wait_until_allowed(kubectl, user, "create", "leases.coordination.k8s.io", namespace)
    kept = [one for one in arguments if not one.startswith(("--health-port", "--namespaces", "--log-"))]
    return Release(namespace, [*kept, f"--namespaces={','.join(served)}"], kubeconfig, own)


@pytest.fixture
def team(control_plane: ControlPlane) -> str:
    name = f"team-{uuid.uuid4().hex[:8]}"
    control_plane.kubectl("create", "namespace", name)
    return name


def said(control_plane: ControlPlane, release: Release) -> dict[str, str]:
    lease = control_plane.kubectl.get("lease", "slurm-operator", f"--namespace={release.namespace}")
    found: dict[str, str] = lease["metadata"].get("annotations", {})
    return found


async def works(process: OperatorProcess, control_plane: ControlPlane, release: Release) -> None:
    """Wait until a process is ready, and its Lease says that it works: one on standby is ready before that."""
    await process.until_status("/readyz", 200)
    wait_for("its Lease", lambda: said(control_plane, release).get(labels.ANNOTATION_WORKS) == "true", 60)


def events(control_plane: ControlPlane, release: Release) -> list[str]:
    found = control_plane.kubectl.get("events", f"--namespace={release.namespace}")["items"]
    return [one["reason"] for one in found]


async def refuses(process: OperatorProcess, other: Release, serves: str) -> None:
    """Wait until a process says for whom it waits: in its log, and to the kubelet."""
    await process.until(f"(Lease {other.namespace}/slurm-operator) serves {serves}: two releases of this operator must")
    assert (await process.status("/livez"), await process.status("/readyz")) == (200, 503)


async def test_a_second_release_for_all_namespaces_refuses_until_the_first_has_ended(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    first, second = installed(control_plane, tmp_path), installed(control_plane, tmp_path)
    async with first.run() as one:
        await works(one, control_plane, first)
        async with second.run() as two:
            await refuses(two, first, "all namespaces")
            wait_for("an Event", lambda: "OtherOperator" in events(control_plane, first), 60)
            # helm says it before anything is installed.
            command = (
                f"--kubeconfig={control_plane.kubeconfig}",
                *("install", "slurm-operator", str(OPERATOR_CHART), "--skip-crds", f"--namespace={first.namespace}-x"),
                "--dry-run=server",
            )
            third = helm(*command, environment={"KUBECACHEDIR": str(tmp_path)})
            assert third.returncode != 0
            assert "/slurm-operator) serves all namespaces already: two releases of this operator" in third.stderr
            # What was uninstalled, with its rights, could not give its Lease back.
            for release in (first, second):
                control_plane.kubectl("delete", "deployment", "slurm-operator", f"--namespace={release.namespace}")
            third = helm(*command, environment={"KUBECACHEDIR": str(tmp_path)})
            assert third.returncode == 0, third.stderr
            assert await one.status("/readyz") == 200
            assert await one.end() == 0
            await two.until_status("/readyz", 200)
            assert await two.end() == 0


@pytest.mark.full
async def test_a_release_for_a_namespace_sees_the_one_for_all_by_its_lease(
    control_plane: ControlPlane, tmp_path: Path, team: str
) -> None:
    every = installed(control_plane, tmp_path)
    one = installed(control_plane, tmp_path, team, otherOperators=[f"{every.namespace}/slurm-operator"])
    async with every.run() as first:
        await works(first, control_plane, every)
        async with one.run() as second:
            await refuses(second, every, f"namespace {team}")
            assert await first.end() == 0
            await second.until_status("/readyz", 200)
            assert await second.end() == 0


@pytest.mark.full
async def test_a_release_for_all_namespaces_leaves_that_of_another_alone(
    control_plane: ControlPlane, tmp_path: Path, team: str
) -> None:
    one, every = installed(control_plane, tmp_path, team), installed(control_plane, tmp_path)
    async with one.run() as first:
        await works(first, control_plane, one)
        async with every.run() as second:
            await works(second, control_plane, every)
            # Releases of tests before, which did not end by themselves, are left for as long as their Leases last.
            wait_for("the other", lambda: said(control_plane, every).get(labels.ANNOTATION_LEAVES) == team, 60)
            nodeset = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "NodeSet", "metadata": {"name": "a"}}
            about = {"name": "a", "namespace": team}
            control_plane.kubectl.apply([{**nodeset, "metadata": about, "spec": {"clusterName": "none"}}])
            kubectl = control_plane.kubectl
            wait_for(
                "conditions",
                lambda: "status" in kubectl.get("nodesets.slinky.slurm.net", "a", f"--namespace={team}"),
                60,
            )
            assert await first.end() == 0
            wait_for("taken over", lambda: labels.ANNOTATION_LEAVES not in said(control_plane, every), 60)
            await second.until(f"namespace {team} is served by no other release any more")
            assert await second.end() == 0


async def test_two_releases_for_different_namespaces_both_work(
    control_plane: ControlPlane, tmp_path: Path, team: str
) -> None:
    other = f"{team}-other"
    control_plane.kubectl("create", "namespace", other)
    one, two = installed(control_plane, tmp_path, team), installed(control_plane, tmp_path, other)
    async with one.run() as first, two.run() as second:
        await works(first, control_plane, one)
        await works(second, control_plane, two)
        for process in (first, second):
            assert "two releases" not in process.log.read_text()
            assert await process.end() == 0
