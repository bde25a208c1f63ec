"""The message of a NodeSet without its Cluster: a Cluster that can be applied unchanged."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.report import troubles


def message(*args: str, **spec: Any) -> str:
    template = {"spec": {"containers": [{"name": "slurmd", "args": list(args)}]}}
    metadata = {"name": "a", "namespace": "hpc", "uid": "u"}
    spec = {"clusterName": "slurm", "template": template, **spec}
    return troubles.missing_cluster(NodeSet.parse({"metadata": metadata, "spec": spec}))


def manifest(text: str) -> dict[str, Any]:
    """The Cluster below the first line, as somebody pastes it."""
    found: dict[str, Any] = yaml.safe_load(text.partition("\n")[2])
    return found


@pytest.mark.parametrize(
    "args", [["--conf-server", "lab-1-controller:6817"], ["-Z", "--conf-server=lab-1-controller.hpc.svc:6817"]]
)
def test_of_a_nodeset_of_slinkys_chart_all_is_known(args: list[str]) -> None:
    text = message(*args)

    assert text.startswith(
        "there is no Cluster slurm in namespace hpc. If Slurm runs already, apply this Cluster; "
        "for a Slurm that the operator is to run, leave out spec:\n"
    )
    assert manifest(text) == {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "slurm", "namespace": "hpc"},
        "spec": {"server": "http://lab-1-restapi.hpc:6820", "token": {"secretRef": "lab-1-token-slurm"}},
    }


@pytest.mark.parametrize("args", [[], ["--conf-server", "10.0.0.1:6817"], ["--conf-server"]])
def test_of_any_other_the_address_is_to_be_filled_in(args: list[str]) -> None:
    text = message(*args)

    assert "with the address of slurmrestd and the Secret" in text.splitlines()[0]
    spec = manifest(text)["spec"]
    assert spec["server"] == "http://SLURMRESTD:6820"
    # Somebody has to say where slurmctld is: the template, or the Cluster.
    assert ("controller" in spec) is not bool(args)


def test_what_is_given_is_a_cluster_and_so_is_one_without_spec() -> None:
    for text in (message(), message("--conf-server", "x-controller:1"), message(template=None)):
        body = manifest(text)
        body["metadata"]["uid"] = "cu"
        for part in ("SECRET", "SLURMRESTD", "SLURMCTLD"):
            body = yaml.safe_load(yaml.safe_dump(body).replace(part, part.lower()))
        assert Cluster.parse(body).spec.external
        assert not Cluster.parse({**body, "spec": {}}).spec.external


def test_a_template_of_another_shape_is_not_read() -> None:
    assert manifest(message(template={"spec": {"containers": "x"}}))["kind"] == "Cluster"
