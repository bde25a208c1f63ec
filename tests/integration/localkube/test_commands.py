"""What is done without kubectl is what kubectl does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hack.localkube.kubectl import Kubectl, KubectlFailed
from tests.support.control_plane import ControlPlane

NAMESPACES = QUICK, PROCESS = "commands-quick", "commands-process"
Run = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl(control_plane: ControlPlane) -> Kubectl:
    """One with a namespace for each way."""
    for namespace in NAMESPACES:
        control_plane.kubectl.process("create", "namespace", namespace)
    return control_plane.kubectl


def config_map(namespace: str, **data: str) -> str:
    about = {"name": "a", "namespace": namespace, "labels": {"a": "1"}}
    return json.dumps({"items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": data}]})


def list_of(namespace: str) -> str:
    listed = json.loads(config_map(namespace, x="1", y="2"))
    return json.dumps({"apiVersion": "v1", "kind": "List", **listed})


def story(run: Run, namespace: str) -> list[str]:
    """Do everything once; return what was printed, and the object as it is in between."""
    where, apply = ("--namespace", namespace), ("apply", "--server-side", "--force-conflicts", "--filename=-")
    told = list[str]()

    def do(*arguments: str, stdin: str | None = None) -> None:
        told.append(run(*where, *arguments, stdin=stdin))
        shown = json.loads(run(*where, "get", "configmap", "a", "--output=json"))
        about = {name: shown["metadata"].get(name) for name in ("labels", "annotations", "name")}
        told.append(json.dumps([about, shown.get("data")], sort_keys=True))

    do(*apply, stdin=list_of(namespace))
    do("patch", "configmap", "a", "--type=merge", '--patch={"data": {"x": null, "z": "3"}}')
    do("patch", "configmap/a", "-p", '{"data": {"y": "4"}}')
    do(*apply, stdin=list_of(namespace))
    do("annotate", "configmap", "a", "note=one")
    do("annotate", "configmap/a", "--overwrite", "note=two", "other=")
    do("label", "configmap", "a", "a-", "b=2")
    told.append(run(*where, "get", "configmaps", "--field-selector=metadata.name=a", "--output=name"))
    told.append(run(*where, "get", "configmaps", "--field-selector=metadata.name=none", "--output=name"))
    told.append(run(*where, "get", "configmap", "none", "--ignore-not-found", "--output=name"))
    run(*where, "delete", "configmap", "a")
    told.append(run(*where, "get", "configmaps", "--field-selector=metadata.name=a", "--output=name"))
    run(*where, "delete", "configmap", "a", "none", "--ignore-not-found")
    return told


def test_each_command_does_and_prints_what_kubectl_does(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    by_process = story(kubectl.process, PROCESS)

    def never(*arguments: str, **_: Any) -> str:
        raise AssertionError(arguments)

    monkeypatch.setattr(kubectl, "process", never)
    assert story(kubectl, QUICK) == by_process


def test_an_applied_field_belongs_to_kubectl(kubectl: Kubectl) -> None:
    """What the one way applies, the other takes back."""
    bare = json.loads(list_of(QUICK))
    del bare["items"][0]["data"]["y"]
    kubectl.apply(json.loads(list_of(QUICK))["items"])
    kubectl.process("apply", "--server-side", "--filename=-", stdin=json.dumps(bare))
    assert kubectl.get("configmap", "a", f"--namespace={QUICK}")["data"] == {"x": "1"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("delete", "configmap", "none"), r'Error from server \(NotFound\): configmaps "none" not found'),
        (("patch", "configmap", "none", "--type=merge", "--patch={}"), "NotFound"),
        (("create", "namespace", QUICK), "AlreadyExists"),
        (("label", "namespace", QUICK, "a b=c"), "invalid"),
    ],
)
def test_a_refusal_has_the_words_of_kubectl(kubectl: Kubectl, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(KubectlFailed, match=words) as quick:
        kubectl(*arguments)
    with pytest.raises(KubectlFailed) as process:
        kubectl.process(*arguments)
    assert quick.value.stderr == process.value.stderr


def test_an_unknown_field_is_refused_as_by_kubectl(kubectl: Kubectl) -> None:
    item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": QUICK}, "spec": {"nosuch": 1}}
    with pytest.raises(KubectlFailed, match="nosuch"):
        kubectl.apply([item])
