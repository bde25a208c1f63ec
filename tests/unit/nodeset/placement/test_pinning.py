"""Ordinals that return to their Node."""

from __future__ import annotations

from typing import Any

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.pods import scheduling
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.model.pods.scheduling import Fit
from slinky_operator.nodeset.placement import pinning
from slinky_operator.nodeset.pod_spec import builder
from tests.unit.nodeset.pod_spec.test_builder import DEFAULTS, cluster


def nodeset(written: dict[str, str] | None = None, *, pinned: bool = True, **spec: Any) -> NodeSet:
    return NodeSet.parse(
        {
            "metadata": {"name": "a", "namespace": "ns", "uid": "12345678-9"},
            "spec": {"clusterName": "c", "replicas": 3, "pinToNode": pinned, **spec},
            "status": {"scalingMode": "StatefulSet", **({"ordinalToNode": written} if written else {})},
        }
    )


def bound(ordinal: int, host: str) -> Pod:
    return Pod(f"a-{ordinal}", f"a-{ordinal}", f"u-{ordinal}-{host}", ordinal=ordinal, host=host)


def test_the_first_node_is_remembered_and_kept() -> None:
    pods = [bound(10, "x"), bound(2, "y"), bound(1, "")]

    assert pinning.remembered(nodeset(), pods) == {"2": "y", "10": "x"}
    assert pinning.remembered(nodeset({"2": "first", "7": "gone"}), pods) == {"2": "first", "7": "gone", "10": "x"}


def test_without_pinning_all_is_forgotten() -> None:
    assert pinning.remembered(nodeset({"2": "first"}, pinned=False), [bound(2, "y")]) is None
    assert pinning.known(nodeset({"2": "first"}, pinned=False)) == {}


def built(template: dict[str, Any] | None = None) -> dict[str, Any]:
    made = builder.build(
        nodeset(template=template),
        cluster(),
        place=PodSlot("a-0", "a-0", 0, "machine"),
        revision="r",
        guard_uid="g",
        defaults=DEFAULTS,
    )
    spec: dict[str, Any] = made["spec"]
    return spec


def test_a_pinned_pod_goes_nowhere_else() -> None:
    spec = built()

    assert scheduling.pinned_to(spec) == "machine"
    assert scheduling.fit(spec, KubernetesNode("machine")) is Fit.RUN
    assert scheduling.fit(spec, KubernetesNode("other")) is Fit.NO
    assert [one["key"] for one in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


def test_what_the_template_asks_for_must_hold_there_too() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in ("here", "there")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = built({"spec": {"affinity": {"nodeAffinity": required, "podAffinity": {}}}})

    assert scheduling.fit(spec, KubernetesNode("machine", labels={"zone": "there"})) is Fit.RUN
    assert scheduling.fit(spec, KubernetesNode("machine", labels={"zone": "away"})) is Fit.NO
    assert scheduling.fit(spec, KubernetesNode("other", labels={"zone": "here"})) is Fit.NO
    assert "podAffinity" in spec["affinity"]
