"""NodeSets of Google's Cluster Toolkit: they apply as they are, and what keeps them from running says what to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from slinky_operator.kube.resources import NODESETS, PODS
from slinky_operator.slurm.pod_templates import first_process
from tests.integration.nodeset.conftest import Site
from tests.integration.nodeset.machines import Machines

MANIFEST = Path(__file__).parent / "manifests" / "cluster-toolkit" / "gke-nodeset.yaml"
SCRIPT = 4
"""Place of the script among the arguments."""

WRITTEN = 'mkdir -p /usr/local/lib/slurm\nexec /usr/local/bin/entrypoint.sh "$@"\n'
OPTIONS = ("-Z", "--conf-server", "cluster-controller:6825")


def manifest() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    return found


async def apply(site: Site, body: dict[str, Any]) -> None:
    body["metadata"]["namespace"] = site.namespace
    await site.kube.apply(NODESETS, body, field_manager="user")


async def says(site: Site, reason: str) -> bool:
    return bool((await site.condition("Degraded")).get("reason") == reason)


async def conflicts(site: Site) -> bool:
    return bool((await site.condition("NameConflict")).get("status") == "True")


async def test_its_script_is_refused_with_what_to_write_and_runs_with_that(site: Site, machines: Machines) -> None:
    await apply(site, manifest())
    await site.until(lambda: says(site, "InvalidSpec"), "it is refused")
    told = (await site.condition("Degraded"))["message"]
    at = f"spec.template.spec.containers[0].args[{SCRIPT}]"
    assert f'{at}: must pass its arguments on to slurmd: write "$@" in it' in told
    assert f"{at}: -N is the operator's: it names the node. Leave it out" in told
    assert told.count("args[") == 2
    assert await site.names() == []

    await site.add_host("m", labels={"cloud.google.com/gke-nodepool": "compute"})
    body = manifest()
    slurmd = body["spec"]["template"]["spec"]["containers"][0]
    slurmd["args"] = [*slurmd["args"][:SCRIPT], WRITTEN, *OPTIONS]
    await apply(site, body)
    await site.until(lambda: site.ready(2), "two nodes are ready")
    (pod, _) = (await site.kube.list(PODS, site.namespace)).items
    made = pod["spec"]["containers"][0]
    wanted = first_process.before(["tini", "-g", "--", "bash", "-c", WRITTEN])
    assert (*made["command"], *made["args"])[: len(wanted)] == wanted
    assert [word for word in made["args"] if word in OPTIONS] == list(OPTIONS)
    assert pod["spec"]["hostNetwork"] is True


async def test_nodes_that_its_slurm_conf_has_are_named_with_what_to_do(site: Site, machines: Machines) -> None:
    """The toolkit writes `NodeName=… State=CLOUD` for them, and a slurmd with -Z and --conf does not start then."""
    for number in range(2):
        site.slurm.add_node(f"a-{number}", state="IDLE+CLOUD", dynamic=False)
    machines.silent = {"a-0", "a-1"}
    body = manifest()
    slurmd = body["spec"]["template"]["spec"]["containers"][0]
    slurmd["args"] = [*slurmd["args"][:SCRIPT], WRITTEN, *OPTIONS]
    await site.add_host("m", labels={"cloud.google.com/gke-nodepool": "compute"})
    await apply(site, body)
    await site.until(lambda: conflicts(site), "the names are taken")
    told = (await site.condition("NameConflict"))["message"]
    assert "Slurm has a node a-0 that is not ours: it is a static node" in told
    assert "collect the nodes of pods by NodeSet=… Feature=…" in told
    assert await site.names() == []

    # Once they are out of slurm.conf the pods come.
    for number in range(2):
        site.slurm.remove_node(f"a-{number}")
    machines.silent = set()
    await site.until(lambda: site.ready(2), "two nodes are ready")
