"""What is read without kubectl is what kubectl shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.localkube.kubectl import KubectlFailed, wait_for
from tests.support import control_plane as support
from tests.support.control_plane import ControlPlane


def both(control_plane: ControlPlane, *arguments: str) -> tuple[Any, Any]:
    """What is read, and what kubectl prints."""
    kubectl = control_plane.kubectl
    return kubectl.get(*arguments), json.loads(kubectl("get", *arguments, "--output=json"))


def names(shown: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in shown["items"]]


@pytest.mark.parametrize(
    "arguments",
    [
        ("namespaces",),
        ("ns", "--field-selector=metadata.name=default"),
        ("services,endpointslices", "--namespace=default"),
        ("clusterroles", "--selector=kubernetes.io/bootstrapping=rbac-defaults"),
        ("clusterroles.rbac.authorization.k8s.io",),
        ("pc",),
        ("pdb", "--all-namespaces"),
    ],
)
def test_lists_are_those_of_kubectl(control_plane: ControlPlane, arguments: tuple[str, ...]) -> None:
    read, shown = both(control_plane, *arguments)
    assert names(read) == names(shown)


def test_an_object_is_that_of_kubectl(control_plane: ControlPlane) -> None:
    read, shown = both(control_plane, "namespace", "default")
    assert read == shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("configmap", "nosuch"), r'Error from server \(NotFound\): configmaps "nosuch" not found'),
        (("nosuch",), 'the server doesn\'t have a resource type "nosuch"'),
    ],
)
def test_what_is_not_there_is_told_in_the_words_of_kubectl(
    control_plane: ControlPlane, arguments: tuple[str, ...], words: str
) -> None:
    with pytest.raises(KubectlFailed, match=words):
        control_plane.kubectl.get(*arguments)
    with pytest.raises(KubectlFailed, match=words):
        control_plane.kubectl("get", *arguments)


def test_a_kind_is_known_as_soon_as_it_is_served_and_no_longer() -> None:
    with support.running("kinds") as own:
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                ],
            },
        }
        own.kubectl.apply([crd])
        wait_for("the kind", lambda: own.kubectl.get("things")["items"] == [], 240)
        own.kubectl("delete", "crd", "things.example.com")

        def is_gone() -> bool:
            try:
                own.kubectl.get("things")
            except KubectlFailed as error:
                return "things" in str(error)
            return False

        wait_for("its end", is_gone, 240)
        assert own.kubectl.get("namespace", "default")["kind"] == "Namespace"
