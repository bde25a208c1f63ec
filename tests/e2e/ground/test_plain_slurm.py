"""Real Slurm in real pods, without the operator, in both versions."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator

import jwt
import pytest

from hack.images import build as images
from hack.installing.plain.deploy import NODES, PlainSlurm
from hack.localkube.kubectl import Kubectl, wait_for
from hack.machine.progress import say
from tests.support.port_forward import port_forward
from tests.support.web import fetch

pytestmark = [pytest.mark.timeout(900), pytest.mark.alone, pytest.mark.full]

PATIENCE = 240.0
"""Seconds that anything may take on a machine that is busy with other things."""


@pytest.fixture(scope="module", params=["26.05", "24.11"])
def slurm(request: pytest.FixtureRequest, kubectl: Kubectl) -> Iterator[PlainSlurm]:
    """slurmctld, slurmrestd and three nodes."""
    instance = PlainSlurm(kubectl, request.param)
    instance.apply()
    instance.wait(PATIENCE)
    yield instance
    instance.delete()


def test_the_version_is_what_the_image_says(slurm: PlainSlurm) -> None:
    # "slurm-wlm 26.05.5": Debian names its package there.
    assert slurm.exec("slurmctld-0", "slurmctld", "-V").split()[-1] == images.slurm_version(slurm.slurm, say)


def test_nodes_run_on_both_kubernetes_nodes(slurm: PlainSlurm) -> None:
    assert {slurm.pods()[name]["spec"]["nodeName"] for name in NODES} == {"node-1", "node-2"}


def test_srun_reaches_all_three_nodes(slurm: PlainSlurm) -> None:
    assert sorted(slurm.run("srun", "-N3", "hostname").split()) == sorted(NODES)


def test_a_batch_job_completes(slurm: PlainSlurm) -> None:
    job = slurm.run("sbatch", "--parsable", "--output=/tmp/%j.out", "--wrap=hostname").strip()
    wait_for(
        f"job {job} COMPLETED",
        lambda: "JobState=COMPLETED" in slurm.run("scontrol", "show", "job", job),
        PATIENCE,
    )


def test_slurmrestd_answers_with_a_token_only(slurm: PlainSlurm) -> None:
    secret = slurm.kubectl.get("secret", "slurm-keys", "-n", slurm.namespace)
    key = base64.b64decode(secret["data"]["jwt.key"])
    now = int(time.time())
    token = jwt.encode({"sun": "slurm", "iat": now, "exp": now + 60}, key, algorithm="HS256")
    with port_forward(slurm.kubectl, slurm.namespace, "service/slurmrestd", 6820) as port:
        url = f"http://127.0.0.1:{port}/slurm/v0.0.42/nodes/"
        wait_for("slurmrestd's refusal", lambda: is_refused(url), PATIENCE)
        answer = fetch(url, {"X-SLURM-USER-TOKEN": token})
    assert answer.status == 200
    assert {node["name"] for node in json.loads(answer.body)["nodes"]} == set(NODES)


def is_refused(url: str) -> bool:
    """Whether slurmrestd asks for a token: its container runs some time before slurmrestd listens."""
    try:
        return fetch(url).status == 401
    except OSError:
        return False


def test_a_deleted_node_pod_registers_again(slurm: PlainSlurm) -> None:
    before = slurm.pods()["slurmd-2"]["metadata"]["uid"]
    slurm.kubectl("delete", "pod", "-n", slurm.namespace, "slurmd-2", "--wait", timeout=PATIENCE)

    def registered() -> bool:
        pod = slurm.pods().get("slurmd-2", {"metadata": {"uid": before}})
        if pod["metadata"]["uid"] == before or not pod["status"].get("podIP"):
            return False
        # Until then Slurm would send jobs to where its predecessor was.
        return f"NodeAddr={pod['status']['podIP']} " in slurm.run("scontrol", "--oneliner", "show", "node", "slurmd-2")

    wait_for("the record of another pod of that name", registered, PATIENCE)
    wait_for(
        "a job on the replaced node",
        lambda: slurm.run("srun", "-w", "slurmd-2", "--immediate=20", "hostname").strip() == "slurmd-2",
        PATIENCE,
    )
