"""``srun --container`` in pods: oci.conf from the operator, crun as the user of the job, no capability more."""

from __future__ import annotations

import pytest

from slinky_operator.slurm.pod_templates import security
from tests.support.image_registry import PROGRAMS
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("operator")]

AS_USER = ("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "env", "HOME=/home/user", "sh", "-ec")

BUNDLE = f"""\
cd /home/user
umoci init --layout images
umoci new --image images:test
umoci unpack --rootless --image images:test bundle
root=bundle/rootfs
{PROGRAMS}"""
"""An image without files, unpacked, with programs of the node in it: there is no registry here."""

STEP = """\
cd /home/user
code=0
srun --quiet --container=$PWD/bundle /bin/sh -c '[ ! -e /etc/slurm ] && id -u; : > /home/user/made; exit 5' || code=$?
echo "$code $(stat -c %u made)"
"""


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with one node whose jobs may start containers."""
    instance = new_slurm("containers")
    instance.create(containers={"mounts": ["/home"]})
    instance.nodeset("compute", 1, image=instance.image("slurmd-oci"), containers="Rootless")
    instance.wait_ready()
    instance.wait_idle(["compute-0"])
    return instance


def test_a_user_runs_a_container_in_a_pod_with_the_usual_capabilities(slurm: SlurmInKubernetes) -> None:
    (container,) = slurm.slurmd_pods()["compute-0"]["spec"]["containers"]
    assert container["securityContext"]["capabilities"] == security.slurmd()["capabilities"]
    slurm.run(*AS_USER, BUNDLE)
    assert slurm.run(*AS_USER, STEP).split() == ["0", "5", "1000"]
