"""Tokens of programs: used over renewals without a failed call, never one that was not granted; keys rotated."""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

import httpx
import jwt
import pytest

from hack.localkube.kubectl import Kubectl, wait_for
from hack.progress import say
from tests.support.configuring import edit, wait_live
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
        self.answers: list[tuple[str, int, str, float]] = []
        """Of each call the token, the status, what was wrong, and when it ended (monotonic seconds)."""
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
        return len({used for used, _, _, _ in self.answers})

    def _run(self) -> None:
        try:
            with httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False) as http:
                while not self._end.wait(0.2):
                    token = value(self.slurm, self.secret)
                    answer = http.get("/slurm/v0.0.42/nodes/", headers={"X-SLURM-USER-TOKEN": token})
                    wrong = "" if answer.status_code == 200 else answer.text[:300]
                    self.answers.append((token, answer.status_code, wrong, time.monotonic()))
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
    instance.create(auth={"tokens": grants, "slurmKeyRef": {"name": "site", "key": "slurm.jwks"}})
    keys = json.dumps({"keys": [auth_key("first")]})
    instance.kube("create", "secret", "generic", "site", f"--from-literal=slurm.jwks={keys}")
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


def test_another_key_of_jwt_under_a_running_job_costs_a_program_seconds(
    slurm: SlurmInKubernetes, program: Program
) -> None:
    job = slurm.hold("compute-0")
    new = secrets.token_bytes(32)
    body = json.dumps({"data": {"jwt.key": base64.b64encode(new).decode()}})
    began = len(program.answers)
    slurm.kube("patch", "secret", f"{slurm.name}-auth-jwt", "--type=merge", f"--patch={body}")

    def is_new(token: str) -> bool:
        try:
            jwt.decode(token, new, algorithms=["HS256"], options={"verify_iat": False})
        except jwt.InvalidSignatureError:
            return False
        return True

    def goes_on() -> bool:
        assert program.error is None
        return sum(is_new(used) and status == 200 for used, status, _, _ in program.answers[began:]) > 10

    wait_for("calls with tokens of the new key", goes_on, PATIENCE)
    answers = program.answers[began:]
    assert {status for used, status, _, _ in answers if is_new(used)} == {200}
    failed = [at for _, status, _, at in answers if status != 200]
    say(f"calls failed for {failed[-1] - failed[0] if failed else 0:.1f} s, {len(failed)} of them")
    slurm.release(job, "compute-0")
    slurm.wait_job(job, "COMPLETED")


def rotate(slurm: SlurmInKubernetes, job: str, step: int, keys: list[dict[str, Any]]) -> None:
    """Give all daemons a key set, as the documentation says, and wait until they work with it beside a running job."""
    text = json.dumps({"keys": keys})
    body = {"data": {"slurm.jwks": base64.b64encode(text.encode()).decode()}}
    slurm.kube("patch", "secret", "site", "--type=merge", f"--patch={json.dumps(body)}")
    for pod, (container, folder) in key_folders(slurm).items():
        # A kubelet looks again when a pod changes.
        slurm.kube("annotate", "pod", pod, f"touched={step}", "--overwrite")
        read = ("exec", pod, f"--container={container}", "--", "cat", f"{folder}/slurm.jwks")
        wait_until_it_is(partial(slurm.kube, *read), text, f"what {pod} has mounted")
    wait_until_it_is(partial(copied, slurm), text, "what the operator has accepted")
    wait_live(slurm, edit(slurm, extraConf=f"KillWait={30 + step}"))
    # slurmd acts on slurmctld's word, and slurmctld on slurmd's.
    assert slurm.run("srun", "--overlap", f"--jobid={job}", "hostname").strip() == "compute-0"
    assert slurm.job_state(job) == "RUNNING"


def wait_until_it_is(look: Callable[[], str], wanted: str, what: str) -> None:
    wait_for(what, lambda: look() == wanted, PATIENCE)


def key_folders(slurm: SlurmInKubernetes) -> dict[str, tuple[str, str]]:
    """By pod, the container and the folder that has the key set."""
    return {"compute-0": ("slurmd", "/etc/slurm"), f"{slurm.name}-controller-0": ("slurmctld", "/etc/slurm-keys")}


def test_the_key_of_slurm_is_rotated_under_a_running_job(slurm: SlurmInKubernetes) -> None:
    uids = {pod: slurm.pod_uid(pod) for pod in key_folders(slurm)}
    (first,) = json.loads(base64.b64decode(slurm.get("secret", "site")["data"]["slurm.jwks"]))["keys"]
    second = auth_key("second")
    job = slurm.hold("compute-0")
    # Added, made the default, the earlier one dropped once it has expired; never in one step.
    rotate(slurm, job, 1, [first, second])
    rotate(slurm, job, 2, [{**first, "exp": int(time.time()) + 15}, {**second, "use": "default"}])
    rotate(slurm, job, 3, [{**second, "use": "default"}])
    slurm.release(job, "compute-0")
    slurm.wait_job(job, "COMPLETED")
    assert {pod: slurm.pod_uid(pod) for pod in uids} == uids


def auth_key(name: str) -> dict[str, Any]:
    value = base64.b64encode(secrets.token_bytes(32)).decode()
    return {"kid": name, "kty": "oct", "alg": "HS256", "k": value}


def copied(slurm: SlurmInKubernetes) -> str:
    """What the operator says that the daemons run with."""
    return base64.b64decode(slurm.get("secret", f"{slurm.name}-auth-copy")["data"]["slurm.key"]).decode()
