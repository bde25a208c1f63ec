"""Tokens of programs: used over renewals and rotations without a failed call, never one that was not granted."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import jwt
import pytest
from typing_extensions import override

from hack.localkube.kubectl import Kubectl, KubectlFailed, wait_for
from hack.machine.progress import say
from slinky_operator.slurm.tokens import signing_keys
from slinky_operator.token import jwts
from tests.support.configuring import edit, wait_live
from tests.support.port_forward import port_forward
from tests.support.rsa_keys import rsa_key
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes
from tests.support.token_programs import KIND, Program, token, value, wait_reason

pytestmark = [pytest.mark.timeout(1200), pytest.mark.long(380), pytest.mark.usefixtures("operator")]

RENEWALS = 4
LIFETIME = "60s"
LOGIN = "--selector=app.kubernetes.io/component=login"
USER = "daemon"
"""Somebody who is known in every image."""


@pytest.fixture(scope="module")
def tenant(new_slurm: NewSlurm) -> str:
    """The namespace of a tenant."""
    return new_slurm("tokens-tenant").namespace


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm, tenant: str) -> SlurmInKubernetes:
    instance = new_slurm("tokens")
    grants = [{"usernames": [USER]}, {"namespaces": [tenant], "usernames": ["*"], "maxLifetime": "10m"}]
    auth = {"signingKeyRef": {"name": "signing"}, "jwksRef": {"name": "issuer"}, "tokens": grants}
    login = [{"name": "front", "image": instance.image("login")}]
    instance.create(auth={"slurmKeyRef": {"name": "site", "key": "slurm.jwks"}, **auth}, login=login)
    put_key(instance, "first")
    instance.kube("create", "configmap", "issuer", f"--from-literal=jwks.json={issuer()['jwks.json']}")
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


class Submits(Program):
    """Submits jobs that never start, instead of looking at nodes."""

    @override
    def ask(self, http: httpx.Client, token: str) -> httpx.Response:
        job = {"name": "loop", "current_working_directory": "/tmp", "environment": ["PATH=/bin"], "hold": True}
        body = {"job": {**job, "script": "#!/bin/sh\ntrue\n"}}
        return http.post("/slurm/v0.0.42/job/submit", headers={"X-SLURM-USER-TOKEN": token}, json=body)


def key_id(token: str) -> str:
    return str(jwt.get_unverified_header(token).get("kid"))


def test_both_keys_of_tokens_are_replaced_under_a_running_job_and_no_call_fails(
    slurm: SlurmInKubernetes, program: Program
) -> None:
    job = slurm.hold("compute-0")
    began, first, second = len(program.answers), *(signing_keys.private(rsa_key(name)) for name in ("first", "second"))
    with Submits(slurm, "portal", program.url) as submits:
        secret = {"jwt.key": base64.b64encode(secrets.token_bytes(32)).decode()}
        slurm.kube("patch", "secret", f"{slurm.name}-auth-jwt", "--type=merge", patch({"data": secret}))
        put_key(slurm, "second")

        def goes_on() -> bool:
            late = (one[0] for running in (program, submits) for one in running.answers[-10:])
            return program.tokens > 0 and submits.tokens > 0 and {key_id(token) for token in late} == {second.key_id}

        wait_for("calls with tokens of the new key", goes_on, PATIENCE)
        wait_for(
            "the secret of auth/jwt",
            lambda: slurm.get("secret", f"{slurm.name}-auth-copy")["data"]["jwt.key"] == secret["jwt.key"],
            PATIENCE,
        )
        seen = len(submits.answers)
        wait_for("more calls", lambda: submits.tokens > 0 and len(submits.answers) > seen + 10, PATIENCE)
    answers = [*program.answers[began:], *submits.answers]
    assert {key_id(used) for used, _, _, _ in answers} == {first.key_id, second.key_id}
    failed = [one for one in answers if one[1] != 200]
    submitted = len(submits.answers)
    say(f"{len(answers)} calls while both keys were replaced, {submitted} of them submits: {len(failed)} failed")
    assert failed == []
    assert slurm.get("cluster", slurm.name)["status"]["signingKeyId"] == second.key_id
    slurm.run("scancel", "--name=loop")
    slurm.release(job, "compute-0")
    slurm.wait_job(job, "COMPLETED")


@pytest.mark.full
def test_over_renewals_no_call_fails(program: Program) -> None:
    # Each of the two keys that were replaced may have brought a token, too.
    wait_for(f"{RENEWALS} renewals", lambda: program.tokens > RENEWALS + 2, PATIENCE * 2)
    assert [one for one in program.answers if one[1] != 200] == []


@pytest.mark.full
def test_users_of_another_issuer_are_let_in_and_a_bad_key_set_locks_nobody_out(
    slurm: SlurmInKubernetes, program: Program
) -> None:
    theirs = signing_keys.private(rsa_key("theirs"))

    def status() -> int:
        now = datetime.now(UTC) - timedelta(seconds=5)
        token = jwts.make(jwts.Claims(USER, now, now + timedelta(minutes=5)), theirs)
        headers = {"X-SLURM-USER-TOKEN": token}
        return httpx.get(
            f"{program.url}/slurm/v0.0.42/nodes/", headers=headers, timeout=60, trust_env=False
        ).status_code

    assert status() == 200
    data = {"data": {"jwks.json": '{"keys": []}'}}
    slurm.kube("patch", "configmap", "issuer", "--type=merge", patch(data))
    slurm.wait_event(slurm.name, "ConfigRefused", "spec.auth.jwksRef: jwks.json of ConfigMap issuer: it has no RSA key")
    assert status() == 200
    slurm.kube("patch", "configmap", "issuer", "--type=merge", patch({"data": issuer()}))
    wait_for(
        "the configuration",
        lambda: slurm.condition("cluster", slurm.name, "ConfigApplied")["status"] == "True",
        PATIENCE,
    )


@pytest.mark.full
def test_a_signing_key_that_is_deleted_is_reported_and_tokens_go_on(slurm: SlurmInKubernetes, program: Program) -> None:
    began = len(program.answers)
    slurm.kube("delete", "secret", "signing")
    slurm.wait_event(
        slurm.name, "SecretNotFound", "there is no Secret signing; tokens are still signed with the key in use"
    )
    wait_for("more calls", lambda: program.tokens > 0 and len(program.answers) > began + 10, PATIENCE)
    assert {status for _, status, _, _ in program.answers[began:]} == {200}
    put_key(slurm, "second")
    slurm.wait_ready()


def put_key(slurm: SlurmInKubernetes, name: str) -> None:
    """Give the Cluster a private key for tokens."""
    about = {"name": "signing", "namespace": slurm.namespace}
    data = {"signing.pem": base64.b64encode(rsa_key(name)).decode()}
    slurm.kubectl.apply([{"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": data}])


def issuer() -> dict[str, str]:
    """A key set as identity providers publish them."""
    public = signing_keys.public_of(rsa_key("theirs"))
    keys = [{"kty": "EC", "crv": "P-256"}, {"kty": "RSA", "kid": public.kid, "n": public.n, "e": public.e}]
    return {"jwks.json": json.dumps({"keys": keys})}


def patch(body: dict[str, Any]) -> str:
    return f"--patch={json.dumps(body)}"


def rotate(slurm: SlurmInKubernetes, job: str, step: int, keys: list[dict[str, Any]]) -> None:
    """Give all daemons a key set, as the documentation says, and wait until they work with it beside a running job."""
    text = json.dumps({"keys": keys})
    body = {"data": {"slurm.jwks": base64.b64encode(text.encode()).decode()}}
    slurm.kube("patch", "secret", "site", "--type=merge", f"--patch={json.dumps(body)}")
    wait_until_it_is(partial(accepted, slurm), text, "what the operator has accepted")
    for pod, (container, folder) in key_folders(slurm).items():
        # A kubelet looks again when a pod changes.
        slurm.kube("annotate", "pod", pod, f"touched={step}", "--overwrite")
        read = ("exec", pod, f"--container={container}", "--", "cat", f"{folder}/slurm.jwks")
        wait_until_it_is(partial(slurm.kube, *read), text, f"what {pod} has mounted")
    wait_live(slurm, edit(slurm, extraConf=f"KillWait={30 + step}"))
    # slurmd acts on slurmctld's word, and slurmctld on slurmd's.
    assert slurm.run("srun", "--overlap", f"--jobid={job}", "hostname").strip() == "compute-0"
    # And users in login pods on that of sackd, which has read the set by itself.
    login = ("exec", login_pod(slurm), "--container=login", "--")
    command = (*login, "srun", "--overlap", f"--jobid={job}", "hostname")
    wait_for("srun from the login pod", lambda: runs_on_node(slurm, *command), PATIENCE)
    assert slurm.job_state(job) == "RUNNING"


def wait_until_it_is(look: Callable[[], str], wanted: str, what: str) -> None:
    wait_for(what, lambda: look() == wanted, PATIENCE)


def key_folders(slurm: SlurmInKubernetes) -> dict[str, tuple[str, str]]:
    """By pod, the container and the folder that has the key set."""
    controller = {f"{slurm.name}-controller-0": ("slurmctld", "/etc/slurm-keys")}
    return {"compute-0": ("slurmd", "/etc/slurm"), login_pod(slurm): ("sackd", "/etc/slurm"), **controller}


def runs_on_node(slurm: SlurmInKubernetes, *command: str) -> bool:
    """Whether a command in a pod starts a step on the node; while sackd is started again it may fail."""
    try:
        return slurm.kube(*command).strip() == "compute-0"
    except KubectlFailed:
        return False


def login_pod(slurm: SlurmInKubernetes) -> str:
    (pod,) = slurm.get("pods", LOGIN)["items"]
    return str(pod["metadata"]["name"])


def test_the_key_of_slurm_is_rotated_under_a_running_job(slurm: SlurmInKubernetes) -> None:
    wait_for("the login pod", lambda: bool(slurm.get("pods", LOGIN)["items"]), PATIENCE)
    uids = {pod: uid(slurm, pod) for pod in key_folders(slurm)}
    (first,) = json.loads(base64.b64decode(slurm.get("secret", "site")["data"]["slurm.jwks"]))["keys"]
    second = auth_key("second")
    job = slurm.hold("compute-0")
    # Added, made the default, the earlier one dropped once it has expired; never in one step.
    rotate(slurm, job, 1, [first, second])
    rotate(slurm, job, 2, [{**first, "exp": int(time.time()) + 15}, {**second, "use": "default"}])
    rotate(slurm, job, 3, [{**second, "use": "default"}])
    slurm.release(job, "compute-0")
    slurm.wait_job(job, "COMPLETED")
    assert {pod: uid(slurm, pod) for pod in uids} == uids


@pytest.mark.full
def test_pods_that_start_beside_a_refused_key_set_have_the_accepted_one(slurm: SlurmInKubernetes) -> None:
    before = slurm.get("secret", "site")["data"]["slurm.jwks"]
    refused = json.dumps({"keys": [auth_key("third")]}).encode()
    put = f"--patch={json.dumps({'data': {'slurm.jwks': base64.b64encode(refused).decode()}})}"
    slurm.kube("patch", "secret", "site", "--type=merge", put)
    slurm.kube("delete", "pod", "compute-0", login_pod(slurm), "--grace-period=5")

    def login() -> str:
        """Whether a user's job starts, by sackd and slurmd of new pods."""
        try:
            command = ("exec", login_pod(slurm), "--container=login", "--", "srun", "hostname")
            return slurm.kube(*command).strip()
        except (KubectlFailed, ValueError):
            return ""

    wait_for("srun from a new login pod on a new slurmd", lambda: login() == "compute-0", PATIENCE)
    wait_live(slurm, edit(slurm, extraConf="KillWait=40"))
    slurm.wait_event(slurm.name, "KeyChanged", "daemons and new pods go on with the key that was accepted before")
    slurm.kube("patch", "secret", "site", "--type=merge", f"--patch={json.dumps({'data': {'slurm.jwks': before}})}")
    slurm.wait_ready()


def uid(slurm: SlurmInKubernetes, pod: str) -> str:
    """The pod, and how often its containers were started."""
    found = slurm.get("pod", pod)
    restarts = sum(one["restartCount"] for one in found["status"]["containerStatuses"])
    return f"{found['metadata']['uid']} {restarts}"


def auth_key(name: str) -> dict[str, Any]:
    value = base64.b64encode(secrets.token_bytes(32)).decode()
    return {"kid": name, "kty": "oct", "alg": "HS256", "k": value}


def accepted(slurm: SlurmInKubernetes) -> str:
    """What pods mount."""
    return base64.b64decode(slurm.get("secret", f"{slurm.name}-auth-accepted")["data"]["slurm.jwks"]).decode()
