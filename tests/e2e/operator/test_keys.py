"""Lost and changed keys while jobs run: job ends still arrive, the operator keeps access, and reports what is wrong."""

from __future__ import annotations

import base64
import json

import pytest

from hack.installing.operator import Installation
from hack.localkube.kubectl import Kubectl, wait_for
from tests.support.configuring import edit, wait_live
from tests.support.operator_death import dead
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes
from tests.unit.cluster.parts.keys.key_model import key_set

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]

NODE = "compute-0"
SLURM, JWT, COPY, STAGED = (f"slurm-auth-{what}" for what in ("slurm", "jwt", "copy", "accepted"))
OTHER = key_set("Other").decode()


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    instance = new_slurm("keys")
    instance.create(extraConf="MinJobAge=3600")
    instance.nodeset("compute", 1)
    instance.wait_ready()
    instance.wait_idle([NODE])
    return instance


def keys(slurm: SlurmInKubernetes) -> dict[str, str]:
    """The keys by the names of their files."""
    return {key: value for name in (SLURM, JWT) for key, value in slurm.get("secret", name)["data"].items()}


def ends(slurm: SlurmInKubernetes, job: str) -> None:
    """Let a job end, and wait until Slurm knows."""
    slurm.release(job, NODE)
    slurm.wait_job(job, "COMPLETED")
    slurm.wait_idle([NODE])
    assert not [line for line in slurm.events(slurm.name) if line.startswith("Unauthorized: ")]


def change(slurm: SlurmInKubernetes, seconds: int) -> int:
    """A harmless change of the configuration, which makes slurmctld and slurmds read everything again."""
    return edit(slurm, extraConf=f"MinJobAge=3600\nKillWait={seconds}")


def test_lost_keys_come_back_before_anything_is_loaded(slurm: SlurmInKubernetes) -> None:
    before = keys(slurm)
    for seconds, lost in enumerate(([SLURM, JWT], [SLURM], [JWT]), start=31):
        job = slurm.hold(NODE)
        slurm.kube("delete", "secret", *lost)
        wait_live(slurm, change(slurm, seconds))
        assert keys(slurm) == before
        ends(slurm, job)
    for name in (SLURM, JWT):
        slurm.wait_event(slurm.name, "KeyRestored", f"Secret {name} was gone")
    slurm.wait_ready()


def test_another_key_of_slurm_is_loaded_by_nobody(slurm: SlurmInKubernetes) -> None:
    before = keys(slurm)
    job = slurm.hold(NODE)
    slurm.kube("delete", "secret", SLURM)
    slurm.kube("create", "secret", "generic", SLURM, f"--from-literal=slurm.jwks={OTHER}")
    # Pods mount the accepted key, so that the configuration goes live beside the other one.
    wait_live(slurm, change(slurm, 41))
    slurm.wait_event(slurm.name, "KeyChanged", f"Secret {SLURM} is another one than the daemons run with")
    ends(slurm, job)
    slurm.kube("delete", "secret", SLURM)
    names = ("get", "secrets", "--output=name")
    wait_for("the Secret", lambda: f"secret/{SLURM}" in slurm.kube(*names).split(), PATIENCE)
    slurm.wait_ready()
    assert keys(slurm) == before


def test_a_changed_jwt_key_is_loaded_and_locks_nobody_out(slurm: SlurmInKubernetes) -> None:
    job = slurm.hold(NODE)
    new = base64.b64encode(b"another key of auth/jwt, 32 bytes").decode()
    slurm.kube("patch", "secret", JWT, "--type=merge", f"--patch={json.dumps({'data': {'jwt.key': new}})}")
    wait_live(slurm, change(slurm, 51))
    # slurmctld takes it, so the copy follows.
    wait_for("the copy", lambda: slurm.get("secret", COPY)["data"]["jwt.key"] == new, PATIENCE)
    slurm.wait_ready()
    ends(slurm, job)


@pytest.mark.alone
def test_what_the_message_says_brings_a_key_back_that_nobody_has_kept(
    slurm: SlurmInKubernetes, operator: Installation, kubectl: Kubectl
) -> None:
    before = keys(slurm)
    job = slurm.hold(NODE)
    with dead(operator, kubectl):
        slurm.kube("delete", "secret", SLURM, COPY, STAGED)
    slurm.wait_event(slurm.name, "KeyLost", f"Secret {SLURM} is gone", "cat /etc/slurm-keys/slurm.jwks")
    assert SLURM not in slurm.kube("get", "secrets", "--output=name")
    value = slurm.control("sh", "-c", "base64 -w0 /etc/slurm-keys/slurm.jwks").strip()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SLURM, "namespace": slurm.namespace}}
    kubectl.apply([{**secret, "data": {"slurm.jwks": value}}])
    slurm.wait_ready()
    assert keys(slurm) == before
    ends(slurm, job)
