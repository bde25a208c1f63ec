"""Which commands of kubectl are done without it, and which are left to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import cast

import pytest
from typing_extensions import override

from hack.localkube import commands
from hack.localkube.api_server import ApiServer, Refused
from hack.localkube.objects import Objects, Resource

KINDS = {"pod": "pods", "secret": "secrets", "node": "nodes", "thing.example.com": "things"}
Answer = tuple[int, object]


class Known(Objects):
    """Objects of a Kubernetes that knows some kinds."""

    @override
    def resource(self, kind: str) -> Resource:
        root = "/apis/example.com/v1" if "." in kind else "/api/v1"
        return Resource(root, KINDS[kind.removesuffix(".")], kind != "node")


class Server:
    """Answers requests, and keeps those that change something."""

    def __init__(self, answer: Callable[[str, str], Answer]) -> None:
        self._answer = answer
        self.sent: list[tuple[str, str, object]] = []

    def read(self, path: str, _accept: str = "") -> tuple[int, bytes]:
        status, body = self._answer("GET", path)
        return status, json.dumps(body).encode()

    def write(self, method: str, path: str, body: bytes, _content_type: str) -> tuple[int, bytes]:
        self.sent.append((method, path, json.loads(body)))
        status, answer = self._answer(method, path)
        return status, json.dumps(answer).encode()


def shown(**about: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "1", **about}}


def run(server: Server, *arguments: str, stdin: str | None = None, timeout: float = 10.0) -> str:
    return commands.run(Known(cast("ApiServer", server)), arguments, stdin, timeout)


@pytest.mark.parametrize(
    ("arguments", "path", "body"),
    [
        (("patch", "pod", "p", "-n", "a", "-p", '{"x":1}'), "/api/v1/namespaces/a/pods/p?", {"x": 1}),
        (("-n", "a", "patch", "pod/p", "--type=merge", "--patch={}"), "/api/v1/namespaces/a/pods/p?", {}),
        (("patch", "node", "n", "--subresource=status", "-p", "{}"), "/api/v1/nodes/n/status?", {}),
        (
            ("annotate", "pod", "p", "a/b=c=d", "e-", "--overwrite"),
            "/api/v1/namespaces/default/pods/p?",
            {"metadata": {"annotations": {"a/b": "c=d", "e": None}}},
        ),
        (("label", "node", "n", "x="), "/api/v1/nodes/n?", {"metadata": {"labels": {"x": ""}}}),
        (
            ("scale", "pod/p", "--replicas=3", "--namespace=a"),
            "/api/v1/namespaces/a/pods/p/scale?",
            {"spec": {"replicas": 3}},
        ),
        (
            ("delete", "pod", "p", "--wait=false", "--cascade=foreground", "--grace-period=5"),
            "/api/v1/namespaces/default/pods/p",
            {"propagationPolicy": "Foreground", "gracePeriodSeconds": 5},
        ),
        (
            ("delete", "pod", "p", "--force", "--grace-period=0", "--wait=false"),
            "/api/v1/namespaces/default/pods/p",
            {"propagationPolicy": "Background", "gracePeriodSeconds": 0},
        ),
    ],
)
def test_what_is_simply_said_is_sent(arguments: tuple[str, ...], path: str, body: object) -> None:
    server = Server(lambda *_: (HTTPStatus.OK, shown()))
    run(server, *arguments)
    ((_, asked, sent),) = server.sent
    assert asked.startswith(path)
    assert sent == body


@pytest.mark.parametrize(
    "arguments",
    [
        ("drain", "n"),
        ("get", "pods"),
        ("get", "pods", "--output=wide"),
        ("get", "pods", "--sort-by=.metadata.name", "--output=name"),
        ("patch", "pod", "p"),
        ("patch", "pod", "p", "--patch=a: yaml"),
        ("patch", "pod", "p", "--type=json", "--patch=[]"),
        ("patch", "pod", "p", "--patch={}", "--as=somebody"),
        ("annotate", "pod", "--all", "a=b"),
        ("scale", "pod/p", "--replicas=many"),
        ("delete", "pods", "--all"),
        ("delete", "pods", "--selector=a=b"),
        ("delete", "pods,secrets", "p"),
        ("delete", "pod", "p", "--grace-period=0"),
        ("delete", "pod", "p", "--dry-run=server"),
        ("delete", "-k", "folder"),
        ("create", "secret", "generic", "s", "--from-literal=a=b"),
        ("create", "namespace", "n", "--dry-run=client"),
        ("apply", "--filename=file.yaml"),
    ],
)
def test_what_says_more_is_left_to_kubectl_before_anything_is_sent(arguments: tuple[str, ...]) -> None:
    server = Server(lambda *_: (HTTPStatus.OK, shown()))
    with pytest.raises(commands.LeftToKubectl):
        run(server, *arguments)
    assert server.sent == []


@pytest.mark.parametrize("status", [HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY])
def test_what_is_refused_is_left_to_kubectl_which_says_why(status: int) -> None:
    server = Server(lambda *_: (status, {"kind": "Status"}))
    with pytest.raises(commands.LeftToKubectl):
        run(server, "delete", "pod", "p")
    with pytest.raises(commands.LeftToKubectl):
        run(server, "patch", "pod", "p", "--patch={}")


def test_another_value_is_not_overwritten_unasked() -> None:
    server = Server(lambda *_: (HTTPStatus.OK, shown(labels={"a": "1"})))
    with pytest.raises(commands.LeftToKubectl):
        run(server, "label", "pod", "p", "a=2")
    assert server.sent == []
    assert run(server, "label", "pod", "p", "a=1", "b=2") == "pod/p labeled\n"


def test_a_deletion_waits_until_the_object_is_gone_or_is_another_one() -> None:
    states = iter([(HTTPStatus.OK, shown()), (HTTPStatus.OK, shown()), (HTTPStatus.OK, shown(uid="2"))])
    assert run(Server(lambda *_: next(states)), "delete", "pod", "p") == "pod/p deleted\n"
    assert list(states) == []
    with pytest.raises(TimeoutError):
        run(Server(lambda *_: (HTTPStatus.OK, shown())), "delete", "pod", "p", timeout=0.0)


def test_what_is_not_there_may_be_ignored() -> None:
    server = Server(lambda *_: (HTTPStatus.NOT_FOUND, {"kind": "Status"}))
    assert run(server, "delete", "pod", "p", "--ignore-not-found") == "pod/p deleted\n"


def test_what_is_asked_for_again_and_again_costs_no_kubectl_before_it_is_there() -> None:
    answer = {"reason": "NotFound", "message": 'pods "p" not found'}
    server = Server(lambda *_: (HTTPStatus.NOT_FOUND, answer))
    with pytest.raises(Refused, match=r'Error from server \(NotFound\): pods "p" not found'):
        run(server, "get", "pod", "p", "--output=name")
    assert run(server, "get", "pod", "p", "--output=name", "--ignore-not-found") == ""


def test_each_object_of_a_list_is_applied_in_its_own_version() -> None:
    server = Server(lambda *_: (HTTPStatus.OK, shown()))
    items = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}},
        {"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "t"}},
    ]
    stdin = json.dumps({"kind": "List", "items": items})
    run(server, "apply", "--server-side", "--force-conflicts", "--filename=-", stdin=stdin)
    paths = [path.partition("?")[0] for _, path, _ in server.sent]
    assert paths == ["/api/v1/namespaces/a/pods/p", "/apis/example.com/v2/namespaces/default/things/t"]
