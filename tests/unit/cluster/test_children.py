"""When an object has to be written again."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from slinky_operator.cluster.children import is_current

WANTED: dict[str, Any] = {
    "metadata": {"name": "x", "labels": {"a": "b"}},
    "spec": {
        "replicas": 1,
        "template": {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "0.5"}}}]}},
    },
}


def live() -> dict[str, Any]:
    found = copy.deepcopy(WANTED)
    found["metadata"]["uid"] = "u"
    found["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    containers = found["spec"]["template"]["spec"]["containers"]
    containers[0]["resources"]["limits"]["cpu"] = "500m"
    containers[0]["terminationMessagePath"] = "/dev/termination-log"
    containers.insert(0, {"name": "injected"})
    return found


def test_defaults_and_what_others_add_are_not_ours() -> None:
    assert is_current(WANTED, live())


@pytest.mark.parametrize(
    "change",
    [
        lambda obj: obj["spec"].update(replicas=2),
        lambda obj: obj["metadata"]["labels"].update(a="c"),
        lambda obj: obj["spec"]["template"]["spec"]["containers"].pop(1),
        lambda obj: obj["spec"]["template"]["spec"]["containers"][1].update(image="j"),
        lambda obj: obj["spec"]["template"]["spec"]["containers"][1]["resources"]["limits"].update(cpu="501m"),
        lambda obj: obj.pop("spec"),
    ],
)
def test_what_is_ours_is_looked_at(change: Any) -> None:
    found = live()
    change(found)
    assert not is_current(WANTED, found)


def test_a_file_that_is_no_longer_wanted_counts() -> None:
    assert not is_current({"data": {"a": "1"}}, {"data": {"a": "1", "b": "2"}})
    assert not is_current({"data": {"a": "1"}}, {"data": {"a": "2"}})
    assert is_current({"data": {"a": "1"}}, {"data": {"a": "1"}, "metadata": {}})
