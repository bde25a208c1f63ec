"""Charts and manifests of a release are installed from its files, and from a registry, on an empty API server."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
import yaml

from hack.packaging.render import helm, render
from hack.release import version
from hack.release.contents.charts import CONTENT
from tests.support.control_plane import ControlPlane
from tests.support.oci_images import Image, registry
from tests.support.served import wait_until_kinds_are_served

pytestmark = pytest.mark.full

VERSION = version.current()
CHARTS = (
    "slurm",
    "slurm-bridge",
    "slurm-exporter",
    "slurm-jobs",
    "slurm-node-life",
    "slurm-operator",
    "slurm-sylabs-jobs",
    "slurm-virtual-nodes",
)
NEEDED = {"slurm-exporter": {"server": "http://slurmrestd:6820", "tokenSecret": {"name": "token"}}}
"""Values without which a chart is refused."""


def packed(folder: Path, chart: str) -> Path:
    return folder / "charts" / f"{chart}-{VERSION}.tgz"


def blobs(archive: Path) -> Image:
    """Return what a registry would have of an archive."""
    with tarfile.open(archive) as tar:
        content = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        raw = {name: file.read() for name, file in content.items() if file is not None}
    (entry,) = json.loads(raw["index.json"])["manifests"]
    manifest = raw.pop(f"blobs/{entry['digest'].replace(':', '/')}")
    found = {name.removeprefix("blobs/").replace("/", ":"): blob for name, blob in raw.items() if "/" in name}
    return Image(manifest, found)


def test_every_chart_is_there_with_the_version_of_the_project(folder: Path) -> None:
    assert {path.name for path in (folder / "charts").glob("*.tgz")} == {f"{name}-{VERSION}.tgz" for name in CHARTS}
    for name in CHARTS:
        said = yaml.safe_load(helm("show", "chart", str(packed(folder, name))).stdout)
        assert said["version"] == VERSION
        assert said["appVersion"] == (VERSION if name != "slurm" else "26.05")


@pytest.mark.parametrize("chart", CHARTS)
def test_a_packed_chart_renders(folder: Path, chart: str) -> None:
    objects = render(packed(folder, chart), NEEDED.get(chart), release=chart, extra=["--include-crds"])
    images = [
        container["image"]
        for one in objects
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    ]
    assert objects
    assert all(image.endswith(f"/slurm-operator:{VERSION}") for image in images)


@pytest.mark.parametrize("chart", ["slurm-operator", "slurm"])
def test_helm_pulls_a_chart_from_a_registry(folder: Path, tmp_path: Path, chart: str) -> None:
    one = blobs(folder / "charts" / f"{chart}-{VERSION}.oci.tar")
    (layer,) = json.loads(one.manifest)["layers"]
    assert layer["mediaType"] == CONTENT
    with registry({chart: one}) as address:
        pulled = helm(
            *("pull", f"oci://{address}/{chart}", f"--version={VERSION}", "--plain-http"),
            f"--destination={tmp_path}",
            environment={"HELM_REGISTRY_CONFIG": str(tmp_path / "none.json")},
        )
    assert pulled.returncode == 0, pulled.stderr
    assert (tmp_path / f"{chart}-{VERSION}.tgz").read_bytes() == packed(folder, chart).read_bytes()


def test_charts_are_installed_from_their_files(folder: Path, control_plane: ControlPlane) -> None:
    for name in ("slurm-operator", "slurm-jobs", "slurm"):
        done = helm(
            *(f"--kubeconfig={control_plane.kubeconfig}", "install", name, str(packed(folder, name))),
            *("--namespace=released", "--create-namespace"),
            environment={"KUBECACHEDIR": str(control_plane.kubeconfig.parent / "kubectl-cache")},
        )
        assert done.returncode == 0, done.stderr
        wait_until_kinds_are_served(control_plane.kubectl)
    created = control_plane.kubectl.get("nodesets.slinky.slurm.net", "--namespace=released")["items"]
    assert [one["metadata"]["name"] for one in created] == ["compute"]


def test_manifests_are_applied_as_they_are(folder: Path, control_plane: ControlPlane) -> None:
    files = sorted((folder / "manifests").glob("*.yaml"))
    assert [path.name for path in files] == [
        *("slurm-jobs-crds.yaml", "slurm-operator-crds.yaml", "slurm-operator.yaml", "slurm-sylabs-jobs-crds.yaml"),
    ]
    for path in files:
        control_plane.kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(path))
    deployment = control_plane.kubectl.get("deployment", "slurm-operator", "--namespace=slurm-operator")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"].endswith(f"/slurm-operator:{VERSION}")
