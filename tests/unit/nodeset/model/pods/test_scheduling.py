"""On which Nodes a pod may run."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode, Taint
from slinky_operator.nodeset.model.pods import scheduling
from slinky_operator.nodeset.model.pods.scheduling import Fit

HERE = KubernetesNode("machine", labels={"zone": "here", "disks": "4", "empty": ""})


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        }
    }


def expression(key: str, word: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": word, "values": list(values)}]}


def named(word: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": word, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        (expression("zone", "In", "there", "here"), True),
        (expression("zone", "In", "there"), False),
        (expression("absent", "In", ""), False),
        (expression("empty", "In", ""), True),
        (expression("zone", "NotIn", "there"), True),
        (expression("zone", "NotIn", "here"), False),
        (expression("absent", "NotIn", "here"), True),
        (expression("zone", "Exists"), True),
        (expression("empty", "Exists"), True),
        (expression("absent", "Exists"), False),
        (expression("absent", "DoesNotExist"), True),
        (expression("zone", "DoesNotExist"), False),
        (expression("disks", "Gt", "3"), True),
        (expression("disks", "Gt", "4"), False),
        (expression("disks", "Lt", "5"), True),
        (expression("disks", "Lt", "4"), False),
        (expression("disks", "Gt", "3", "2"), False),
        (expression("zone", "Gt", "3"), False),
        (expression("disks", "Gt", "three"), False),
        (expression("absent", "Lt", "3"), False),
        (expression("zone", "Near", "here"), False),
        (named("In", "other", "machine"), True),
        (named("In", "other"), False),
        (named("NotIn", "other"), True),
        (named("NotIn", "machine"), False),
        ({**expression("zone", "Exists"), **named("In", "machine")}, True),
        ({**expression("zone", "Exists"), **named("In", "other")}, False),
        ({}, False),
    ],
)
def test_a_term_of_the_required_affinity(term: dict[str, Any], matches: bool) -> None:
    assert (scheduling.fit(required(term), HERE) is Fit.RUN) is matches


def test_one_term_is_enough_and_without_any_nothing_matches() -> None:
    assert scheduling.fit(required(expression("absent", "Exists"), expression("zone", "Exists")), HERE) is Fit.RUN
    assert scheduling.fit(required(), HERE) is Fit.NO
    assert scheduling.fit({}, HERE) is Fit.RUN


def test_all_expressions_of_a_term_and_the_selector_must_hold() -> None:
    both = {"matchExpressions": [{"key": key, "operator": "Exists"} for key in ("zone", "absent")]}

    assert scheduling.fit(required(both), HERE) is Fit.NO
    assert scheduling.fit({"nodeSelector": {"zone": "here", "disks": "4"}}, HERE) is Fit.RUN
    assert scheduling.fit({"nodeSelector": {"zone": "here", "disks": "5"}}, HERE) is Fit.NO
    assert scheduling.fit({"nodeSelector": {"zone": "there"}, **required(expression("zone", "Exists"))}, HERE) is Fit.NO


@pytest.mark.parametrize(
    ("toleration", "effect", "fit"),
    [
        ({}, "NoSchedule", Fit.STAY),
        ({}, "NoExecute", Fit.NO),
        ({}, "PreferNoSchedule", Fit.RUN),
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, "NoSchedule", Fit.RUN),
        ({"key": "gpu", "value": "yes"}, "NoExecute", Fit.RUN),
        ({"key": "gpu", "value": "yes", "effect": "NoSchedule"}, "NoExecute", Fit.NO),
        ({"key": "gpu", "value": "no"}, "NoSchedule", Fit.STAY),
        ({"key": "gpu", "operator": "Exists"}, "NoSchedule", Fit.RUN),
        ({"key": "other", "operator": "Exists"}, "NoSchedule", Fit.STAY),
        ({"operator": "Exists"}, "NoExecute", Fit.RUN),
        ({"value": "yes"}, "NoSchedule", Fit.STAY),
    ],
)
def test_taints_and_tolerations(toleration: dict[str, str], effect: str, fit: Fit) -> None:
    tainted = KubernetesNode("machine", taints=(Taint("gpu", "yes", effect),))

    assert scheduling.fit({"tolerations": [toleration]} if toleration else {}, tainted) is fit


@pytest.mark.parametrize(
    ("key", "effect", "fit"),
    [
        ("node.kubernetes.io/unreachable", "NoExecute", Fit.RUN),
        ("node.kubernetes.io/unreachable", "NoSchedule", Fit.STAY),
        ("node.kubernetes.io/disk-pressure", "NoSchedule", Fit.RUN),
        ("node.kubernetes.io/unschedulable", "NoSchedule", Fit.RUN),
    ],
)
def test_what_pods_of_one_node_tolerate(key: str, effect: str, fit: Fit) -> None:
    assert scheduling.fit({}, KubernetesNode("machine", taints=(Taint(key, "", effect),))) is fit


def test_on_a_cordoned_node_a_pod_may_stay() -> None:
    assert scheduling.fit({}, KubernetesNode("machine", cordoned=True)) is Fit.STAY


def test_on_a_node_short_of_disk_a_pod_may_stay_and_none_is_created() -> None:
    # It tolerates the taint, and its kubelet turns it away nevertheless.
    taint = Taint("node.kubernetes.io/disk-pressure", "", "NoSchedule")
    assert scheduling.fit({}, KubernetesNode("machine", taints=(taint,))) is Fit.RUN
    assert scheduling.fit({}, KubernetesNode("machine", taints=(taint,), disk_pressure=True)) is Fit.STAY


def test_a_pin_is_read_back() -> None:
    pinned = required(*scheduling.affinity_to("m")["nodeSelectorTerms"])

    assert scheduling.pinned_to(pinned) == "m"
    assert scheduling.pinned_to(required(expression("zone", "Exists"))) == ""
    assert scheduling.pinned_to(required(named("In", "a"), named("In", "b"))) == ""
    assert scheduling.pinned_to({}) == ""
    assert scheduling.fit(pinned, KubernetesNode("m")) is Fit.RUN
    assert scheduling.fit(pinned, HERE) is Fit.NO
