"""What a field manager has applied, and what of that is no longer wanted."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from slinky_operator.kube.cache.managed_fields import applied_part, fields_of, has_leftovers, inside, keep_fields_of

OURS = "slurm-operator"
CONTAINER: dict[str, Any] = {
    "f:name": {},
    "f:image": {},
    ".": {},
    "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
    "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
    "f:resources": {},
    "f:securityContext": {"f:capabilities": {"f:add": {}}},
}
FIELDS: dict[str, Any] = {
    "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {'v:"f"': {}}},
    "f:spec": {
        "f:containers": {'k:{"name":"c"}': CONTAINER},
        "f:nodeSelector": {},
        "f:volumes": {'k:{"name":"v"}': {".": {}, "f:name": {}, "f:projected": {"f:sources": {}}}},
    },
}
WANTED: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}, "finalizers": ["f"]},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "env": [{"name": "A", "value": "1"}],
                "ports": [{"containerPort": 80}],
                "resources": {},
                "securityContext": {"capabilities": {"add": ["KILL"]}},
            }
        ],
        "nodeSelector": {"disk": "fast"},
        "volumes": [
            {
                "name": "v",
                "projected": {
                    "sources": [{"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}}]
                },
            }
        ],
    },
}


def shown() -> dict[str, Any]:
    """What the API server shows of it: with defaults, and with what others have added."""
    live = copy.deepcopy(WANTED)
    live["metadata"]["labels"]["theirs"] = "x"
    container = live["spec"]["containers"][0]
    container |= {"terminationMessagePath": "/dev/termination-log", "resources": {"limits": {"cpu": "1"}}}
    container["ports"][0]["protocol"] = "TCP"
    container["env"].append({"name": "INJECTED"})
    live["spec"]["containers"].append({"name": "injected"})
    item = live["spec"]["volumes"][0]["projected"]["sources"][0]["downwardAPI"]["items"][0]
    item["fieldRef"]["apiVersion"] = "v1"
    return live


def test_defaults_and_what_others_add_are_no_leftovers() -> None:
    assert not has_leftovers(FIELDS, WANTED, shown())


@pytest.mark.parametrize(
    "remove",
    [
        lambda wanted: wanted["metadata"].pop("labels"),
        lambda wanted: wanted["metadata"]["finalizers"].clear(),
        lambda wanted: wanted["spec"]["containers"].clear(),
        lambda wanted: wanted["spec"]["containers"][0]["env"].clear(),
        lambda wanted: wanted["spec"]["containers"][0]["ports"].clear(),
        lambda wanted: wanted["spec"]["containers"][0].pop("securityContext"),
        lambda wanted: wanted["spec"].pop("nodeSelector"),
        lambda wanted: wanted["spec"].pop("volumes"),
    ],
)
def test_what_was_applied_and_is_no_longer_wanted_is_left_over(remove: Any) -> None:
    wanted = copy.deepcopy(WANTED)
    remove(wanted)
    assert has_leftovers(FIELDS, wanted, shown())


def test_what_is_one_value_to_the_api_server_is_compared_as_one() -> None:
    live = shown()
    live["spec"]["nodeSelector"]["zone"] = "a"
    assert has_leftovers(FIELDS, WANTED, live)
    live = shown()
    item = live["spec"]["volumes"][0]["projected"]["sources"][0]["downwardAPI"]["items"][0]
    item["mode"] = 256
    assert has_leftovers(FIELDS, WANTED, live)


def test_only_what_was_applied_is_kept_of_what_runs() -> None:
    assert applied_part(FIELDS, shown())["spec"]["containers"] == [
        {**WANTED["spec"]["containers"][0], "resources": {"limits": {"cpu": "1"}}}
    ]
    assert applied_part(FIELDS, shown())["metadata"]["labels"] == {"a": "b"}


def test_records_of_others_are_neither_read_nor_kept() -> None:
    ours = {"manager": OURS, "operation": "Apply", "fieldsV1": FIELDS}
    others = [
        {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {}},
        {"manager": OURS, "operation": "Update", "fieldsV1": {"f:x": {}}},
        {"manager": OURS, "operation": "Apply", "subresource": "status", "fieldsV1": {"f:y": {}}},
    ]
    obj = {"metadata": {"managedFields": [*others, ours]}}
    assert fields_of(obj, OURS) == FIELDS
    keep_fields_of(OURS)(obj)
    assert obj["metadata"]["managedFields"] == [ours]
    bare = {"metadata": {"managedFields": others}}
    keep_fields_of(OURS)(bare)
    assert bare == {"metadata": {}}
    assert fields_of(bare, OURS) is None


def test_a_path_is_followed_into_the_record() -> None:
    assert inside(FIELDS, "spec", "nodeSelector") == {}
    assert inside(FIELDS, "metadata", "labels") == {"f:a": {}}
    assert inside(None, "spec") is None
