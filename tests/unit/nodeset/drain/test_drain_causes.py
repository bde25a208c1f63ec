"""Why nodes are drained: cordons, and which pods are too many while Slurm does not answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_operator.nodeset.drain import drain_causes
from slinky_operator.nodeset.model.drain_requests import STATE_LABEL, DrainRequest
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Slurmd
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.placement.layout import lay_out
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from tests.unit.nodeset.builders import NOW, a_pod, joined, node, nodeset

REQUEST = DrainRequest("nv", "one", "u", "host", "[NVSentinel] 79")


def seen(**values: Any) -> Snapshot:
    of = nodeset(replicas=1)
    return replace(
        Snapshot(of, ClusterFacts("c", listed=True), SlurmFacts(readable=False), Revision(revision.of(of))), **values
    )


@pytest.mark.parametrize(
    ("pod", "host", "causes"),
    [
        (False, False, set()),
        (True, False, {Cause.CORDON}),
        (False, True, {Cause.NODE_CORDON}),
        (True, True, {Cause.CORDON, Cause.NODE_CORDON}),
    ],
)
def test_a_cordoned_pod_or_node_is_a_cause(pod: bool, host: bool, causes: set[Cause]) -> None:
    hosts = {"host": KubernetesNode("host", cordoned=host)}

    assert drain_causes.cordons(seen(hosts=hosts), Member(a_pod(cordoned=pod))) == causes


def test_a_pod_on_a_node_that_nobody_watches_has_its_own_cordon_alone() -> None:
    assert drain_causes.cordons(seen(hosts=None), Member(a_pod(cordoned=True))) == {Cause.CORDON}


@pytest.mark.parametrize(
    ("requests", "causes"),
    [(None, {Cause.DRAIN_REQUEST}), ({}, set()), ({"host": REQUEST}, {Cause.DRAIN_REQUEST})],
    ids=["not known yet", "gone", "in force"],
)
def test_what_is_drained_for_a_request_stays_so_until_requests_are_known(
    requests: dict[str, DrainRequest] | None, causes: set[Cause]
) -> None:
    held = node("IDLE+DRAIN+DYNAMIC_NORM", reason=drains.reason({Cause.DRAIN_REQUEST}, "ns/a", "[NVSentinel] 79"))
    member = joined(a_pod(), held)

    assert drain_causes.cordons(seen(drain_requests=requests), member) == causes
    if requests is None:
        other = joined(a_pod(), node("IDLE+DRAIN+DYNAMIC_NORM", reason=drains.reason({Cause.CORDON}, "ns/a")))
        assert drain_causes.cordons(seen(drain_requests=None), other) == set()


@pytest.mark.parametrize("requests", [{}, {"another": REQUEST}], ids=["no request", "that of another Node"])
def test_what_is_drained_for_a_request_that_was_deleted_stays_so_while_nvsentinel_works_on_the_node(
    requests: dict[str, DrainRequest],
) -> None:
    """It deletes a request once it is complete, and then has the machine rebooted."""
    held = node("IDLE+DRAIN+DYNAMIC_NORM", reason=drains.reason({Cause.DRAIN_REQUEST}, "ns/a", "[NVSentinel] 79"))
    in_work = {"host": KubernetesNode("host", labels={STATE_LABEL: "remediating"})}
    snapshot = seen(drain_requests=requests, hosts=in_work)

    assert drain_causes.cordons(snapshot, joined(a_pod(), held)) == {Cause.DRAIN_REQUEST}
    assert drain_causes.cordons(snapshot, joined(a_pod(), node("IDLE+DYNAMIC_NORM"))) == set()
    assert drain_causes.cordons(seen(drain_requests=requests), joined(a_pod(), held)) == set()


def test_without_slurm_only_pods_that_never_ran_are_too_many_the_highest_ordinals_first() -> None:
    fresh = [
        a_pod(name=f"a-{number}", ordinal=number, uid=str(number), slurmd=Slurmd.NEVER, registered=False, host="")
        for number in (1, 2, 3)
    ]
    snapshot = seen(pods=(a_pod(), *fresh))
    layout = lay_out(snapshot, snapshot.members)

    chosen = drain_causes.scale_in_victims(snapshot, layout, NOW)

    assert [member.name for member in chosen] == ["a-3", "a-2", "a-1"]
