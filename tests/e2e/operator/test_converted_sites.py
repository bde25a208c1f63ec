"""Values of a public site, converted and changed for a laptop, become a Cluster that runs a job.

The site with the fewest pods stands for the others here; all six were run by hand (docs/from-slinky.md).
"""

from __future__ import annotations

import pytest

from hack.packaging.render import ROOT, SLURM_CHART, render
from slinky_operator.conversion.command import convert
from tests.support.laptop import for_a_laptop
from tests.support.slurm_in_kubernetes import NewSlurm

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]

SITES = ROOT / "tests" / "unit" / "conversion" / "sites"


@pytest.mark.parametrize("site", ["gke"])
def test_a_converted_site_runs_a_job(new_slurm: NewSlurm, site: str) -> None:
    (draft,), _ = convert([str(SITES / f"{site}.yaml")])
    slurm = new_slurm(f"site-{site}")
    values = for_a_laptop(draft.values())
    slurm.kubectl("create", "namespace", slurm.namespace)
    slurm.kubectl.apply(render(SLURM_CHART, values, release="slurm", namespace=slurm.namespace))
    slurm.wait_ready()
    nodes = [f"{name}-0" for name in values["nodesets"]]
    slurm.wait_idle(nodes)
    for node in nodes:
        job = slurm.submit("--nodelist", node, seconds=0.1, pod=node)
        slurm.wait_job(job, "COMPLETED")
    applied = slurm.condition("cluster", slurm.name, "ConfigApplied")
    assert applied["status"] == "True", applied
