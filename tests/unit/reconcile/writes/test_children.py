"""When an object has to be written again."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.resources import STATEFULSETS
from slinky_operator.reconcile.writes.children import Child, Settled, has_settled, is_current

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


def applied(found: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    entry = {"manager": labels.FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}
    found["metadata"]["managedFields"] = [entry]
    return found


def test_what_we_have_applied_and_no_longer_say_is_written_over() -> None:
    container: dict[str, Any] = {"f:containers": {'k:{"name":"c"}': {"f:image": {}}}}
    theirs: dict[str, Any] = {"f:spec": {"f:template": {"f:spec": container}}}
    assert is_current(WANTED, applied(live(), theirs))
    ours = copy.deepcopy(theirs)
    ours["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"injected"}'] = {}
    assert not is_current(WANTED, applied(live(), ours))


def test_what_an_admission_webhook_makes_of_a_write_is_not_written_over_again() -> None:
    child, found = Child(STATEFULSETS, WANTED), live()
    settled = Settled.of(child, found)
    found["metadata"] |= {"resourceVersion": "7", "managedFields": []}
    found["status"] = {"replicas": 1}
    assert has_settled(child, found, settled)
    assert not has_settled(child, found, None)
    assert not has_settled(Child(STATEFULSETS, {**WANTED, "spec": {}}), found, settled)
    found["spec"]["replicas"] = 2
    assert not has_settled(child, found, settled)
