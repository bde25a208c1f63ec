"""Tokens of programs: used over many renewals without a failed call, and never one that was not granted."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from typing import Any, Self

import httpx
import jwt
import pytest

from hack.localkube.kubectl import Kubectl, wait_for
from tests.support.port_forward import port_forward
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(1200), pytest.mark.long, pytest.mark.usefixtures("operator")]

RENEWALS = 4
LIFETIME = "60s"
USER = "daemon"
"""Somebody who is known in every image."""

KIND = "tokens.slinky.slurm.net"


class Program:
    """Calls slurmrestd as long as it runs, with what is in the Secret of a Token; it never tries a call again."""

    def __init__(self, slurm: SlurmInKubernetes, secret: str, url: str) -> None:
        self.slurm, self.secret, self.url = slurm, secret, url
        self.answers: list[tuple[str, int, str]] = []
        """Of each call the token's time, the status and what was wrong."""
        self.error: BaseException | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(PATIENCE)

    @property
    def tokens(self) -> int:
        """How many tokens were used."""
        if self.error is not None:
            raise self.error
        return len({issued for issued, _, _ in self.answers})

    def _run(self) -> None:
        try:
            with httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False) as http:
                while not self._end.wait(0.2):
                    token = value(self.slurm, self.secret)
                    issued = str(jwt.decode(token, options={"verify_signature": False})["iat"])
                    answer = http.get("/slurm/v0.0.42/nodes/", headers={"X-SLURM-USER-TOKEN": token})
                    wrong = "" if answer.status_code == 200 else answer.text[:300]
                    self.answers.append((issued, answer.status_code, wrong))
        except BaseException as error:  # noqa: BLE001 - raised where the test looks
            self.error = error


def value(slurm: SlurmInKubernetes, secret: str, namespace: str = "") -> str:
    """What a Secret has as its token; empty if it has none."""
    found = slurm.kubectl.get("secret", secret, f"--namespace={namespace or slurm.namespace}")
    return base64.b64decode((found.get("data") or {}).get("auth-token", "")).decode()


def token(slurm: SlurmInKubernetes, name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    ref = {"name": slurm.name, "namespace": slurm.namespace}
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "Token",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterRef": ref, **spec},
    }


def wait_reason(kubectl: Kubectl, namespace: str, name: str, reason: str) -> str:
    """Wait for a reason of the condition Ready, and return its message."""
    message = ""

    def said() -> bool:
        nonlocal message
        status = kubectl.get(KIND, name, f"--namespace={namespace}").get("status") or {}
        found = {one["type"]: one for one in status.get("conditions") or ()}.get("Ready", {})
        message = str(found.get("message"))
        return bool(found.get("reason") == reason)

    wait_for(f"Token {name} {reason}", said, PATIENCE)
    return message


@pytest.fixture(scope="module")
def tenant(new_slurm: NewSlurm) -> str:
    """The namespace of a tenant."""
    return new_slurm("tokens-tenant").namespace


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm, tenant: str) -> SlurmInKubernetes:
    instance = new_slurm("tokens")
    grants = [{"usernames": [USER]}, {"namespaces": [tenant], "usernames": ["*"], "maxLifetime": "10m"}]
    instance.create(auth={"tokens": grants})
    instance.kubectl("create", "namespace", tenant)
    instance.nodeset("compute", 1)
    instance.wait_ready()
    instance.wait_idle(["compute-0"])
    return instance


@pytest.fixture(scope="module")
def program(slurm: SlurmInKubernetes, kubectl: Kubectl) -> Iterator[Program]:
    """Begins to call when the first test asks, and goes on through all of them."""
    kubectl.apply([token(slurm, "portal", slurm.namespace, username=USER, lifetime=LIFETIME)])
    wait_reason(kubectl, slurm.namespace, "portal", "AsExpected")
    with (
        port_forward(kubectl, slurm.namespace, f"service/{slurm.name}-restapi", 6820) as port,
        Program(slurm, "portal", f"http://127.0.0.1:{port}") as running,
    ):
        yield running


@pytest.mark.parametrize("user", ["slurm", "root"])
def test_a_tenant_is_refused_what_no_pattern_grants(
    slurm: SlurmInKubernetes, program: Program, kubectl: Kubectl, tenant: str, user: str
) -> None:
    assert program.error is None
    kubectl.apply([token(slurm, f"as-{user}", tenant, username=user)])
    assert "by its exact name" in wait_reason(kubectl, tenant, f"as-{user}", "NotGranted")
    assert f"as-{user}" not in kubectl("get", "secrets", f"--namespace={tenant}", "--output=name")


def test_a_tenant_overwrites_nothing(slurm: SlurmInKubernetes, program: Program, kubectl: Kubectl, tenant: str) -> None:
    assert program.error is None
    kubectl("create", "secret", "generic", "database", "--from-literal=auth-token=password", f"--namespace={tenant}")
    kubectl.apply([token(slurm, "mine", tenant, username="alice", secretRef={"name": "database"})])
    wait_reason(kubectl, tenant, "mine", "SecretNotOwned")
    assert value(slurm, "database", tenant) == "password"


def test_a_tenant_gets_no_user_of_another_namespace(slurm: SlurmInKubernetes, kubectl: Kubectl, tenant: str) -> None:
    kubectl.apply([token(slurm, "theirs", slurm.namespace, username="alice")])
    assert "does not grant tokens of alice" in wait_reason(kubectl, slurm.namespace, "theirs", "NotGranted")
    kubectl.apply([token(slurm, "alice", tenant, username="alice")])
    wait_reason(kubectl, tenant, "alice", "AsExpected")
    claims = jwt.decode(value(slurm, "alice", tenant), options={"verify_signature": False})
    assert claims["sun"] == "alice"


def test_a_grant_that_ends_takes_the_token_away(slurm: SlurmInKubernetes, kubectl: Kubectl, tenant: str) -> None:
    grants = [{"usernames": [USER]}]
    body = json.dumps({"spec": {"auth": {"tokens": grants}}})
    slurm.kube("patch", "cluster", slurm.name, "--type=merge", f"--patch={body}")
    wait_reason(kubectl, tenant, "alice", "NotGranted")
    assert value(slurm, "alice", tenant) == ""


def test_a_secret_goes_with_its_token(slurm: SlurmInKubernetes, kubectl: Kubectl) -> None:
    kubectl.apply([token(slurm, "short", slurm.namespace, username=USER)])
    wait_reason(kubectl, slurm.namespace, "short", "AsExpected")
    kubectl("delete", KIND, "short", f"--namespace={slurm.namespace}")

    def gone() -> bool:
        return "secret/short" not in slurm.kube("get", "secrets", "--output=name").split()

    wait_for("its Secret gone", gone, PATIENCE)


def test_over_renewals_no_call_fails(program: Program) -> None:
    wait_for(f"{RENEWALS} renewals", lambda: program.tokens > RENEWALS, PATIENCE * 2)
    assert [one for one in program.answers if one[1] != 200] == []
