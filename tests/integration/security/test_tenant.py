"""What somebody who may edit one namespace tries against a Cluster of another one, Kubernetes and the operator.

All is tried on a real API server with the rights of the charts. What is tried elsewhere is listed in
docs/development/attacks.md.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from typing import Any

import pytest

from tests.support import service_account
from tests.support.tenants import EDITOR, GROUP, HELLO, OPERATOR, OWN, RBAC, TENANT, VICTIM, Site, made

VERSION = f"{GROUP}/v1alpha1"
READY = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Forged", "message": "forged"}]}}
OF_VICTIM = f"/api/v1/namespaces/{VICTIM}"
RULES = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}

FORBIDDEN: dict[str, tuple[str, str, Any]] = {
    "the status of a Cluster": ("PATCH", f"{OWN}{TENANT}/clusters/mine/status", READY),
    "the status of a NodeSet": ("PATCH", f"{OWN}{TENANT}/nodesets/mine/status", READY),
    "the status of a LoginSet": ("PATCH", f"{OWN}{TENANT}/loginsets/mine/status", READY),
    "the status of a Token": ("PATCH", f"{OWN}{TENANT}/tokens/mine/status", READY),
    "the status of a SlurmJob": ("PATCH", f"{OWN}{TENANT}/slurmjobs/mine/status", {"status": {"jobId": 1}}),
    "finalizers that keep an owner": ("PATCH", f"{OWN}{TENANT}/nodesets/mine/finalizers", {}),
    "the key of a Cluster": ("GET", f"{OF_VICTIM}/secrets/jwt", None),
    "Secrets of another namespace": ("GET", f"{OF_VICTIM}/secrets", None),
    "Secrets of all namespaces": ("GET", "/api/v1/secrets", None),
    "the token of another's Token": ("GET", f"{OF_VICTIM}/secrets/portal", None),
    "another's Cluster": ("GET", f"{OWN}{VICTIM}/clusters/slurm", None),
    "the grants of another's Cluster": ("PATCH", f"{OWN}{VICTIM}/clusters/slurm", {"spec": {"jobs": None}}),
    "the end of another's Cluster": ("DELETE", f"{OWN}{VICTIM}/clusters/slurm", None),
    "a SlurmJob elsewhere": ("POST", f"{OWN}{VICTIM}/slurmjobs", made("SlurmJob", "x", {"clusterName": "slurm"})),
    "the end of another's job": ("PATCH", f"{OWN}{VICTIM}/slurmjobs/hello", {"spec": {"suspend": True}}),
    "output of another's job": ("GET", f"{OF_VICTIM}/pods/hello-logs/log", None),
    "a shell in the operator": ("GET", f"/api/v1/namespaces/{OPERATOR}/pods/x/exec?command=id", None),
    "a pod as the operator": ("POST", f"/api/v1/namespaces/{OPERATOR}/pods", {"metadata": {"name": "x"}}),
    "a token of the operator": (
        "POST",
        f"/api/v1/namespaces/{OPERATOR}/serviceaccounts/slurm-operator/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    ),
    "the Lease of the operator": (
        "PATCH",
        f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR}/leases/slurm-operator",
        {"spec": {"holderIdentity": "me"}},
    ),
    "labels of the own Namespace": (
        "PATCH",
        f"/api/v1/namespaces/{TENANT}",
        {"metadata": {"labels": {"kubernetes.io/metadata.name": VICTIM}}},
    ),
    "a Node": ("PATCH", "/api/v1/nodes/any", {"spec": {"unschedulable": True}}),
    "a Node's status": ("PATCH", "/api/v1/nodes/any/status", {"status": {"capacity": {"slurm.sylabs.io/gpu": "9"}}}),
    "a virtual Node": ("POST", "/api/v1/nodes", {"metadata": {"name": "slurm-site-main"}}),
    "the status of a pod": ("PATCH", f"/api/v1/namespaces/{TENANT}/pods/x/status", {"status": {"phase": "Running"}}),
    "an Event about the operator": ("POST", f"/api/v1/namespaces/{OPERATOR}/events", {"metadata": {"name": "x"}}),
    "a request to drain Nodes": (
        "POST",
        f"/apis/nvsentinel.nvidia.com/v1alpha1/namespaces/{TENANT}/drainrequests",
        {"metadata": {"name": "x"}, "spec": {"nodeName": "any"}},
    ),
    "rights in the own namespace": (
        "POST",
        f"/apis/{RBAC}/v1/namespaces/{TENANT}/rolebindings",
        {
            "metadata": {"name": "x"},
            "roleRef": RULES,
            "subjects": [{"kind": "ServiceAccount", "name": EDITOR, "namespace": TENANT}],
        },
    ),
    "a CRD without rules": ("PATCH", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tokens.{GROUP}", {}),
    "a policy": (
        "DELETE",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/slurm-bridge-gate",
        None,
    ),
}
"""Requests that Kubernetes refuses to an editor: no right of the charts leads there."""


@pytest.mark.parametrize("what", FORBIDDEN)
def test_an_editor_has_no_right_to(site: Site, what: str) -> None:
    answer = site.ask(*FORBIDDEN[what])
    assert answer.status == 403, answer
    assert f"system:serviceaccount:{TENANT}:{EDITOR}" in answer.words


def test_an_editor_cannot_be_the_operator(site: Site) -> None:
    headers = {"Impersonate-User": service_account.user_of(OPERATOR)}
    assert site.editor.get(f"{OF_VICTIM}/secrets/jwt", headers=headers).status_code == 403


THERE = {"clusterName": "slurm", "clusterNamespace": VICTIM}


def job(**spec: Any) -> dict[str, Any]:
    return {**THERE, "script": HELLO, **spec}


def with_option(option: str) -> dict[str, Any]:
    return job(script=f"#!/bin/sh\n#SBATCH {option}\nid\n")


def claim(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


OBJECTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "the user of another namespace": ("SlurmJob", job(user="alice"), "does not grant user alice"),
    "an account": ("SlurmJob", job(account="root"), "'root' is not granted to this namespace"),
    "an account in a line": ("SlurmJob", with_option("--account=root"), "'root' is not granted"),
    "a partition among others": ("SlurmJob", job(partition="main,all"), "'all' is not granted"),
    "a QOS": ("SlurmJob", with_option("--qos=high"), "'high' is not granted"),
    "a user in a line": ("SlurmJob", with_option("--uid=0"), "InvalidSpec"),
    "a group in a line": ("SlurmJob", with_option("--gid=0"), "InvalidSpec"),
    "another Slurm": ("SlurmJob", with_option("--clusters=other"), "InvalidSpec"),
    "the mark of another's job": ("SlurmJob", with_option("--extra=uid"), "InvalidSpec"),
    "a uid by a parameter": ("SlurmJob", job(parameters={"user_id": 0}), "spec.parameters.user_id"),
    "a mark by a parameter": ("SlurmJob", job(parameters={"extra": "x"}), "spec.parameters.extra"),
    "an administrator's comment": ("SlurmJob", job(parameters={"admin_comment": "x"}), "for Slurm's administrators"),
    "what SPANK reads as root": ("SlurmJob", job(parameters={"spank_environment": ["x=1"]}), "as root"),
    "a line by a parameter": ("SlurmJob", job(parameters={"comment": "a\nb"}), "must be one line"),
    "an account by a parameter": ("SlurmJob", job(parameters={"account": "root"}), "spec.parameters.account"),
    "the same in a component": (
        "SlurmJob",
        {
            **THERE,
            "external": {"components": [{"tasks": 1}, {"tasks": 1, "parameters": {"account": "root"}}]},
        },
        "parameters.account",
    ),
    "another partition in a component": (
        "SlurmJob",
        {**THERE, "external": {"components": [{"tasks": 1}, {"tasks": 1, "partition": "all"}]}},
        "'all' is not granted",
    ),
    "a Cluster that is not there": ("SlurmJob", job(clusterName="slurm2"), "ClusterNotFound"),
    "a token of another's user": (
        "Token",
        {"clusterRef": {"name": "keys", "namespace": VICTIM}, "username": "alice"},
        "alice",
    ),
    "a token of root": ("Token", {"clusterRef": {"name": "keys", "namespace": VICTIM}, "username": "root"}, "root"),
    "a token of slurmctld": (
        "Token",
        {"clusterRef": {"name": "keys", "namespace": VICTIM}, "username": "slurm"},
        "slurm",
    ),
    "a token for ever": (
        "Token",
        {"clusterRef": {"name": "keys", "namespace": VICTIM}, "username": "mallory", "lifetime": "87600h"},
        "LifetimeTooLong",
    ),
    "a NodeSet in another's Cluster": ("NodeSet", {"clusterName": "slurm", "replicas": 1}, "ClusterNotFound"),
    "a LoginSet in another's Cluster": ("LoginSet", {"clusterName": "slurm"}, "ClusterNotFound"),
    "whose a pod is": (
        "NodeSet",
        {
            "clusterName": "mine",
            "template": {"metadata": {"labels": {"nodeset.slinky.slurm.net/uid": "0-1"}}},
        },
        "it says whose a pod is",
    ),
    "a Node past the scheduler": (
        "NodeSet",
        {"clusterName": "mine", "template": {"spec": {"nodeName": "any"}}},
        "spec.template.spec.nodeName",
    ),
    "another node by a variable": (
        "NodeSet",
        {
            "clusterName": "mine",
            "template": {"spec": {"containers": [{"name": "slurmd", "env": [{"name": "POD_NAME", "value": "w-0"}]}]}},
        },
        "POD_NAME is the operator's",
    ),
}
"""Objects that the API server takes, and words of the condition with which the operator refuses them."""

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "root": ("SlurmJob", job(user="root"), "must not be root or slurm"),
    "a Cluster by a path": ("SlurmJob", job(clusterNamespace=f"{VICTIM}/x"), "clusterNamespace"),
    "a Cluster by a name with a path": ("NodeSet", {"clusterName": f"{VICTIM}/slurm"}, "clusterName"),
    "a claim by a path": ("SlurmJob", job(results=[{"volume": claim("../x")}]), "claimName"),
    "another's claim": ("SlurmJob", job(results=[{"volume": claim(f"{VICTIM}/data")}]), "claimName"),
    "another's Secret": (
        "SlurmJob",
        job(prepare=[{"volume": {"secret": {"secretName": f"{VICTIM}/jwt"}}, "path": "/tmp/x"}]),
        "secretName",
    ),
    "another's job": ("SlurmJob", job(dependsOn=[{"name": f"{VICTIM}/hello"}]), "dependsOn"),
    "a folder by dots": (
        "SlurmJob",
        job(results=[{"volume": claim("data"), "to": "../../etc"}]),
        "results",
    ),
    "a variable with a line": ("SlurmJob", job(env=[{"name": "A\nB", "value": "x"}]), "env"),
    "a host path": ("SlurmJob", job(prepare=[{"volume": {"hostPath": {"path": "/"}}, "path": "/tmp/x"}]), "volume"),
    "a log pod over its program": (
        "SlurmJob",
        job(logs={"volume": {"claimName": "data", "mountPath": "/usr/lib/../../opt"}}),
        "mountPath",
    ),
    "another's Secret of a Token": (
        "Token",
        {"clusterRef": {"name": "slurm"}, "secretRef": {"name": f"{VICTIM}/jwt", "key": "x"}},
        "secretRef",
    ),
    "a user with a line": ("Token", {"clusterRef": {"name": "slurm"}, "username": "a\nroot"}, "username"),
    "a configuration file by a path": ("Cluster", {"configFiles": {"../slurm.conf": "x"}}, "configFiles"),
    "a script by a path": ("Cluster", {"prologScripts": {"../../etc/x": "#!/bin/sh\n"}}, "prologScripts"),
    "more lists than memory": ("NodeSet", {"clusterName": "mine", "replicas": 10**9}, "replicas"),
    "a name without an end": ("Cluster", {"clusterName": "a" * 300}, "clusterName"),
}
"""Objects that the API server refuses by the kind's schema, and the field that it names."""


def name_of(what: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", what.lower()).strip("-")[:40]


@pytest.fixture(scope="module")
def attacked(site: Site) -> dict[str, int]:
    """All objects of the table side by side; gives the status codes."""
    assert site.create(made("Cluster", "mine", {})).status == 201
    bodies = [made(kind, name_of(what), spec) for what, (kind, spec, _) in OBJECTS.items()]
    answers = site.side_by_side(site.create, bodies)
    return {what: answer.status for what, answer in zip(OBJECTS, answers, strict=True)}


@pytest.mark.parametrize("what", OBJECTS)
def test_the_operator_gives_nobody(site: Site, attacked: dict[str, int], what: str) -> None:
    kind, _, words = OBJECTS[what]
    assert attacked[what] == 201
    site.until(words, lambda: words in site.said_of(kind, name_of(what)))
    found = site.find(kind, name_of(what))["status"]
    assert not found.get("jobId")
    assert not found.get("expiresAt")


@pytest.mark.parametrize("what", REFUSED)
def test_the_api_server_takes_no(site: Site, what: str) -> None:
    kind, spec, field = REFUSED[what]
    answer = site.create(made(kind, name_of(what), spec))
    assert answer.status == 422, answer
    assert field in answer.words


def test_a_key_of_ones_own_opens_no_slurm_of_another(site: Site) -> None:
    """A Cluster at the address of the other's Slurm, with a Secret that names no server, and with one that does."""
    data = {"jwt_hs256.key": base64.b64encode(b"m" * 32).decode(), "auth-token": base64.b64encode(b"x").decode()}
    consent = {"cluster.slinky.slurm.net/server": site.slurm.url}
    for name, about in (("silent", {}), ("own", {"annotations": consent})):
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **about}, "data": data}
        assert site.ask("POST", f"/api/v1/namespaces/{TENANT}/secrets", body).status == 201
        spec = {"server": site.slurm.url, "auth": {"jwtKeyRef": {"name": name}}, "jobs": {"tenants": []}}
        assert site.create(made("Cluster", f"with-{name}", spec)).status == 201
    site.until("consent is asked for", lambda: "SecretNotAllowed" in site.said_of("Cluster", "with-silent"))

    def shown() -> dict[str, str]:
        status = site.find("Cluster", "with-own").get("status", {})
        return {one["type"]: one["status"] for one in status.get("conditions", ())}

    site.until("the key is refused", lambda: shown().get("TokenValid") == "False")
    assert not site.find("Cluster", "with-own")["status"].get("isReady")


def test_forged_objects_change_nothing_of_another_namespace(site: Site) -> None:
    """Pods, Secrets and ConfigMaps that say that they belong to the Cluster of another namespace."""
    cluster = site.find("Cluster", "slurm", VICTIM)
    uid = cluster["metadata"]["uid"]
    owner = {"apiVersion": VERSION, "kind": "Cluster", "name": "slurm", "uid": uid, "controller": True}
    about = {
        "name": "forged",
        "labels": {
            "app.kubernetes.io/managed-by": "slurm-operator",
            "cluster.slinky.slurm.net/name": "slurm",
            "cluster.slinky.slurm.net/uid": uid,
            "nodeset.slinky.slurm.net/uid": uid,
        },
        "ownerReferences": [owner],
        "finalizers": ["cluster.slinky.slurm.net/daemons"],
    }
    pod = {"containers": [{"name": "slurmd", "image": "x"}]}
    for path, body in (("pods", {"spec": pod}), ("secrets", {}), ("configmaps", {"data": {"slurm.conf": "x"}})):
        assert site.ask("POST", f"/api/v1/namespaces/{TENANT}/{path}", {"metadata": about, **body}).status == 201
    # The operator has seen the pod once it has seen what was made after it.
    assert site.create(made("SlurmJob", "after-forged", job(user="bob"))).status == 201
    assert "bob" in site.said_of("SlurmJob", "after-forged")
    # Jobs of others come and go meanwhile.
    now, before = ({**one["status"], "jobs": None} for one in (site.find("Cluster", "slurm", VICTIM), cluster))
    assert now == before
    for path in ("pods", "secrets", "configmaps"):
        found = site.ask("GET", f"/api/v1/namespaces/{TENANT}/{path}/forged").body
        assert "deletionTimestamp" not in found["metadata"]


def test_arguments_are_words_and_no_commands(site: Site) -> None:
    words = ["$(echo forged)", "`echo forged`", "; echo forged", "a'b", "#SBATCH --uid=0"]
    spec = {**THERE, "command": ["printf", "<%s>"], "args": words, "env": [{"name": "X", "value": "$(echo forged)"}]}
    assert site.create(made("SlurmJob", "words", spec)).status == 201
    site.until("it has a number", lambda: site.find("SlurmJob", "words").get("status", {}).get("jobId"))
    sent = next(one.body for one in site.slurm.calls("post_job_submit") if "<%s>" in json.dumps(one.body))
    script = sent.get("script") or sent["job"]["script"]
    run = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=True)
    assert run.stdout == "".join(f"<{word}>" for word in words)


def test_what_was_tried_has_given_nothing(site: Site, attacked: dict[str, int]) -> None:
    """The last one: the other namespace is as it was, and Slurm has seen nobody else."""
    hello = site.find("SlurmJob", "hello", VICTIM)
    assert hello["status"]["jobId"]
    assert not hello["spec"].get("suspend")
    assert site.find("Cluster", "slurm", VICTIM)["metadata"]["generation"] == 1
    users = {one.user for one in site.slurm.world.jobs.values()}
    assert users == {"alice", "mallory"}
    for secret in site.items(f"/api/v1/namespaces/{TENANT}/secrets"):
        for value in secret.get("data", {}).values():
            parts = base64.b64decode(value).split(b".")
            if len(parts) == 3:
                claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=="))
                assert claims["sun"] == "mallory"
    log = site.log.read_text()
    assert "Traceback" not in log
    assert "eyJ" not in log
    assert base64.b64encode(b"k" * 32).decode() not in log
