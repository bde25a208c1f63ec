"""Refusals of the API server name verb, resource, namespace and remedy; tokens come from the least that gives one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from kubectl_slurm import errors
from kubectl_slurm.access import kubernetes, tokens
from kubectl_slurm.access.kinds import CLUSTERS, NODESETS, SECRETS
from kubectl_slurm.access.kubectl import Kubectl, checked_namespace
from kubectl_slurm.access.kubectl import last as last_of
from kubectl_slurm.access.kubernetes import Kubernetes
from kubectl_slurm.commands.logs.command import of_daemon
from kubectl_slurm.facts import reading
from kubectl_slurm.facts.objects import ClusterFacts
from tests.unit.kubectl_slurm.samples import CLUSTER, NOW

JSON = dict[str, Any]


def kube(answer: Callable[[httpx.Request], httpx.Response]) -> Kubernetes:
    return Kubernetes(httpx.MockTransport(answer), "slurm")


def refused(code: int, message: str) -> Kubernetes:
    return kube(lambda _: httpx.Response(code, json={"kind": "Status", "message": message}))


def test_a_missing_right_says_what_to_ask_for() -> None:
    api = refused(403, 'clusters.slinky.slurm.net is forbidden: User "dev" cannot list resource "clusters"')
    with pytest.raises(errors.MissingRight) as caught:
        api.objects(CLUSTERS)
    assert str(caught.value) == (
        "user 'dev' may not list clusters.slinky.slurm.net in namespace 'slurm'. Ask an administrator of the Kubernetes"
        " cluster for the role 'view' in this namespace: kubectl create rolebinding slurm-view --clusterrole=view"
        " --user=dev --namespace=slurm"
    )
    assert caught.value.code == 4


def test_secrets_need_the_role_of_an_editor_and_service_accounts_are_named_as_such() -> None:
    api = refused(403, 'secrets "x" is forbidden: User "system:serviceaccount:ci:bot" cannot get resource "secrets"')
    with pytest.raises(errors.MissingRight, match="--clusterrole=edit --serviceaccount=ci:bot"):
        api.get(SECRETS, "x")


def test_advice_repeats_the_context_and_quotes_names() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(403, json={"message": 'x is forbidden: User "https://idp/#a b" cannot get'})

    api = Kubernetes(httpx.MockTransport(answer), "slurm", "my prod")
    with pytest.raises(errors.MissingRight) as caught:
        api.get(SECRETS, "x")
    assert str(caught.value).endswith("--user='https://idp/#a b' --namespace=slurm --context='my prod'")


def test_missing_kinds_and_objects_are_told_apart() -> None:
    with pytest.raises(errors.KindMissing, match="CRDs are not installed"):
        refused(404, "the server could not find the requested resource").objects(NODESETS)
    with pytest.raises(errors.ObjectNotFound, match="there is no clusters"):
        refused(404, 'clusters "x" not found').get(CLUSTERS, "x")


@pytest.mark.parametrize("name", ["../secrets/x", "a b", "x?y", "", "-"])
def test_a_name_never_becomes_another_path(name: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError(request.url)

    with pytest.raises(errors.ObjectNotFound, match="no name of an object"):
        kube(answer).log(name, "slurmd", lines=1)
    with pytest.raises(errors.KubectlFailed):
        checked_namespace(name)


def test_of_a_long_log_the_newest_lines_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "LARGEST_LOG", 100)
    text = "".join(f"line {number:04}\n" for number in range(1000))

    def answer(request: httpx.Request) -> httpx.Response:
        assert "limitBytes" not in request.url.params
        return httpx.Response(200, content=iter([text[:5000].encode(), text[5000:].encode()]))

    found = kube(answer).log("w-0", "slurmd", lines=1000)
    assert found[-1] == "line 0999"
    assert found[0] == "line 0991"
    assert len(kube(lambda _: httpx.Response(200, text=text[:50])).log("w-0", "slurmd", lines=5)) == 5


def test_a_pod_that_cannot_be_read_does_not_hide_the_others() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("/pods"):
            return httpx.Response(200, json={"items": [{"metadata": {"name": name}} for name in ("a", "b")]})
        if "/a/" in path:
            return httpx.Response(400, json={"message": "container is waiting to start"})
        return httpx.Response(200, text="hello\n")

    found = list(of_daemon(kube(answer), "slurm", "slurmctld", 10))
    assert found[0] == "==> a <=="
    assert found[1].startswith("a cannot be read: the API server refused")
    assert "waiting to start" in found[1]
    assert found[2:] == ["==> b <==", "hello"]


def test_lists_are_read_by_pages_up_to_a_limit() -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(dict(request.url.params))
        return httpx.Response(200, json={"items": [{"n": n} for n in range(500)], "metadata": {"continue": "more"}})

    assert len(kube(answer).objects(NODESETS, most=1200)) == 1200
    assert len(asked) == 3


class TokenServer:
    """The API server's and the operator's part in Tokens.

    Parameters
    ----------
    granted
        Whether the operator makes tokens; None if nobody looks.
    existing
        Users of Tokens that are there.
    """

    def __init__(self, *, granted: bool | None = True, existing: tuple[str, ...] = ()) -> None:
        self.granted = granted
        self.tokens = {user: self.token(user, user) for user in existing}
        self.deleted: list[str] = []

    def token(self, name: str, user: str) -> JSON:
        ready = {"type": "Ready", "status": str(self.granted), "reason": "NotGranted", "message": "not granted"}
        return {
            "metadata": {"name": name, "namespace": "slurm"},
            "spec": {"clusterRef": {"name": "slurm"}, "username": user, "refresh": False},
            "status": {"conditions": [ready], "username": user, "expiresAt": "2026-11-27T12:04:00Z"},
        }

    def __call__(self, request: httpx.Request) -> httpx.Response:
        *_, kind, name = request.url.path.split("/")
        if kind == "secrets":
            value = base64.b64encode(f"jwt-{name}".encode()).decode()
            return httpx.Response(200, json={"data": {"auth-token": value}})
        if request.method == "GET" and name == "tokens":
            return httpx.Response(200, json={"items": list(self.tokens.values())})
        if request.method == "POST":
            made = json.loads(request.content)
            assert made["spec"] == {**made["spec"], "lifetime": "5m", "refresh": False}
            self.tokens["made"] = self.token("made", made["spec"]["username"])
            return httpx.Response(201, json=self.tokens["made"])
        if request.method == "DELETE":
            self.deleted.append(name)
            return httpx.Response(200, json=self.tokens.pop(name))
        return httpx.Response(200, json=self.tokens[name])


def acquired(server: TokenServer, user: str, kubectl: Kubectl, cluster: ClusterFacts = CLUSTER) -> str:
    clock = tokens.Clock(lambda: NOW, lambda _: None)
    with ExitStack() as stack:
        return stack.enter_context(tokens.acquire(kube(server), kubectl, cluster, user, clock, namespace="slurm"))


NO_KUBECTL = Kubectl("/no/such/kubectl")


def test_a_token_that_is_there_is_used_and_none_is_made() -> None:
    server = TokenServer(existing=("alice", "nobody"))
    assert acquired(server, "nobody", NO_KUBECTL) == "jwt-nobody"
    assert server.deleted == []


def test_otherwise_one_is_made_for_this_call_and_deleted_after_it() -> None:
    server = TokenServer(existing=("alice",))
    assert acquired(server, "nobody", NO_KUBECTL) == "jwt-made"
    assert server.deleted == ["made"]


def test_a_user_who_is_not_granted_is_told_what_to_do_and_nothing_is_left() -> None:
    server = TokenServer(granted=False)
    with pytest.raises(errors.NoToken, match=r"user 'alice'.*not granted.*spec\.auth\.tokens"):
        acquired(server, "alice", NO_KUBECTL)
    assert server.deleted == ["made"]


def test_only_an_administrator_may_come_from_scontrol(tmp_path: Any) -> None:
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\necho "$@" > "$0.log"\necho SLURM_JWT=jwt-of-scontrol\n')
    program.chmod(0o755)
    assert acquired(TokenServer(granted=False), "slurm", Kubectl(str(program))) == "jwt-of-scontrol"
    asked = (tmp_path / "kubectl.log").read_text()
    assert "exec --namespace=slurm slurm-controller-0 --container=slurmctld -- scontrol token" in asked
    with pytest.raises(errors.NoToken):
        acquired(TokenServer(granted=False), "alice", Kubectl(str(program)))
    with pytest.raises(errors.NoToken, match="not on the PATH"):
        acquired(TokenServer(granted=False), "slurm", NO_KUBECTL)


def test_no_token_is_asked_for_that_the_cluster_is_seen_not_to_grant(tmp_path: Any) -> None:
    """The operator warns of each: sixteen Events came of one run of `verify`."""
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho SLURM_JWT=jwt-of-scontrol\n")
    program.chmod(0o755)
    server = TokenServer(granted=False)
    assert acquired(server, "slurm", Kubectl(str(program))) == "jwt-of-scontrol"
    assert server.deleted == []
    with pytest.raises(errors.NoToken, match="Cluster slurm does not grant tokens of root to namespace slurm"):
        acquired(server, "root", NO_KUBECTL)
    spec = {"auth": {"tokens": [{"usernames": ["slurm"]}, {"namespaces": ["team-b"]}]}}
    granting = reading.cluster({"metadata": {"name": "slurm", "namespace": "slurm"}, "spec": spec})
    assert granting.grants == (("slurm", "slurm"), ("team-b", "nobody"))
    assert acquired(TokenServer(), "slurm", NO_KUBECTL, granting) == "jwt-made"


def test_while_the_operator_is_away_one_can_still_look(tmp_path: Any) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho SLURM_JWT=jwt-of-scontrol\n")
    program.chmod(0o755)
    silent = TokenServer(granted=None)
    assert acquired(silent, "nobody", Kubectl(str(program))) == "jwt-of-scontrol"
    with pytest.raises(errors.NoToken, match="the operator made no token within 10 s"):
        acquired(silent, "alice", Kubectl(str(program)))
    # What the Cluster does not grant is not got around.
    with pytest.raises(errors.NoToken, match="not granted"):
        acquired(TokenServer(granted=False), "nobody", Kubectl(str(program)))


def test_a_proxy_that_does_not_start_says_why(tmp_path: Any) -> None:
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\necho "error: context \\"x\\" does not exist" >&2\nexit 1\n')
    program.chmod(0o755)
    with pytest.raises(errors.KubectlFailed, match="context"), Kubectl(str(program)).proxy():
        pass


def test_objects_of_another_form_are_read_as_far_as_they_go() -> None:
    strange: JSON = {"metadata": None, "spec": [], "status": {"conditions": ["x", {"type": 3}], "jobs": {}}}
    assert reading.cluster(strange).name == ""
    assert reading.nodeset({"status": {"desired": "many"}}).desired == 0
    assert reading.keys({"data": {"slurm.jwks": "%%%", "other": "x"}}) == ()
    jwks = base64.b64encode(json.dumps({"keys": [{"kid": "a", "k": "secret", "exp": 1800000000}]}).encode()).decode()
    (key,) = reading.keys({"metadata": {"name": "s"}, "data": {"slurm.jwks": jwks}})
    assert (key.name, "secret" in repr(key)) == ("s/slurm.jwks a", False)


def test_a_refusal_that_kubectl_passes_on_names_the_right_without_what_was_sent() -> None:
    patch = '{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"' + "x" * 2000 + '"}}}'
    said = f"""Error from server (Forbidden): error when applying patch:
{patch}
to:
Resource: "slinky.slurm.net/v1alpha1, Resource=clusters", GroupVersionKind: "slinky.slurm.net/v1alpha1, Kind=Cluster"
Name: "lab", Namespace: "slurm"
for: "STDIN": error when patching "STDIN": clusters.slinky.slurm.net "lab" is forbidden: User "eve" cannot patch \
resource "clusters" in API group "slinky.slurm.net" in the namespace "slurm"
"""
    text = last_of(said)
    assert "last-applied" not in text
    right = refused(403, "").missing_right(text)
    assert str(right).startswith("user 'eve' may not patch clusters.slinky.slurm.net in namespace 'slurm'. Ask an")
    assert refused(403, "").missing_right("exceeded quota") is None
