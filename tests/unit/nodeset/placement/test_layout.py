"""How many pods a NodeSet has, and where."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode, Taint
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.placement import creation
from slinky_operator.nodeset.placement.layout import is_fixed_otherwise, lay_out
from slurm_client.models import Node
from slurm_client.models.node import NodeState

SELECTED = {"slurm": "yes"}


def host(name: str, **values: Any) -> KubernetesNode:
    given: dict[str, Any] = {"node_name": name, "labels": SELECTED, **values}
    return KubernetesNode(name, **given)


def standing(node: str, **values: Any) -> Pod:
    given: dict[str, Any] = {"name": f"a-{node}", "node_name": node, "uid": node, "host": node, "on_node": True}
    return Pod(**(given | {"registered": True, "slurmd": Slurmd.RUNNING} | values))


def snapshot(
    *hosts: KubernetesNode,
    pods: tuple[Pod, ...] = (),
    replicas: int | None = None,
    fixed: str | None = None,
    records: tuple[Node, ...] = (),
    **more: Any,
) -> Snapshot:
    spec: dict[str, Any] = {"clusterName": "c", "template": {"spec": {"nodeSelector": SELECTED}}}
    if replicas is not None:
        spec |= {"replicas": replicas, "scalingMode": "DaemonSet"}
    given: dict[str, Any] = {
        "cluster": ClusterFacts("cu", listed=True, node_sets=frozenset({"set"})),
        "hosts": {one.name: one for one in hosts},
    }
    return Snapshot(
        nodeset=NodeSet.parse(
            {
                "metadata": {"name": "a", "namespace": "ns", "uid": "u"},
                "spec": spec,
                "status": {"scalingMode": fixed} if fixed else {},
            }
        ),
        slurm=SlurmFacts(readable=True, nodes={one.name: one for one in records}, jobs={}),
        revision=Revision("r"),
        pods=pods,
        **({"max_startup": 99} | given | more),
    )


def names(seen: Snapshot) -> list[str]:
    return [place.node for place in lay_out(seen, seen.members).free]


def created(seen: Snapshot) -> tuple[list[str], creation.Creation]:
    found = creation.choose(seen, lay_out(seen, seen.members), seen.members)
    return [place.node for wanted in found.pods for place in wanted.places], found


def test_matching_nodes_are_taken_by_weight_and_then_by_name() -> None:
    seen = snapshot(
        host("c"), host("b", weight=5), host("a"), host("d", weight=-1), host("e", labels={}), host("f", cordoned=True)
    )

    assert names(seen) == ["d", "a", "c", "b"]
    assert lay_out(seen, ()).desired == lay_out(seen, ()).missing == 4
    assert lay_out(seen, ()).free[0] == PodSlot("a-d", "d", None, "d")


def test_an_ordinal_that_is_named_like_a_nodeset_is_passed_over_and_told() -> None:
    pods = (standing("0", node_name="a-0", ordinal=0, on_node=False),)
    known = ClusterFacts("cu", listed=True, node_sets=frozenset({"a", "a-1"}))
    seen = snapshot(pods=pods, fixed="StatefulSet", cluster=known)
    body = {"metadata": {"name": "a", "namespace": "ns", "uid": "u"}, "spec": {"clusterName": "c", "replicas": 3}}
    seen = replace(seen, nodeset=NodeSet.parse({**body, "status": {"scalingMode": "StatefulSet"}}))

    made, found = created(seen)

    assert made == ["a-2"]
    assert "pod a-1 is not created: NodeSet a-1, which existed before" in found.conflicts["a-1"]
    assert found.blocked == found.conflicts
    layout = lay_out(seen, seen.members)
    # It holds up no update, and what was kept for it is still wanted.
    assert (layout.desired, layout.able) == (3, 2)
    assert "a-1" in layout.awaited
    free = replace(seen, cluster=replace(known, node_sets=frozenset({"a"})))
    assert created(free)[0] == ["a-1", "a-2"]


def test_the_name_of_a_nodeset_that_is_being_deleted_is_awaited() -> None:
    """The status of the Cluster lists it no longer, but slurmctld has it until the next configuration is loaded."""
    pods = (standing("0", node_name="a-0", ordinal=0, on_node=False),)
    body = {"metadata": {"name": "a", "namespace": "ns", "uid": "u"}, "spec": {"clusterName": "c", "replicas": 3}}
    for listed in ({"a"}, {"a", "a-1"}):
        known = ClusterFacts("cu", listed=True, node_sets=frozenset(listed), leaving=frozenset({"a-1"}))
        seen = snapshot(pods=pods, fixed="StatefulSet", cluster=known)
        seen = replace(seen, nodeset=NodeSet.parse({**body, "status": {"scalingMode": "StatefulSet"}}))

        made, found = created(seen)

        assert made == ["a-2"]
        assert "slurmctld's configuration still has its name" in found.blocked["a-1"]
        assert (found.conflicts, found.awaited) == ({}, 2)


def test_replicas_limits_them() -> None:
    seen = snapshot(host("c"), host("b", weight=5), host("a"), replicas=2)

    assert created(seen)[0] == ["a", "c"]


def test_no_more_are_made_than_may_be_starting() -> None:
    seen = snapshot(*map(host, "abcd"), pods=(standing("a", registered=False), standing("b")), max_startup=2)

    made, found = created(seen)

    assert made == ["c"]
    assert (found.awaited, found.held) == (1, 1)
    assert created(replace(seen, max_startup=1))[0] == []


def test_a_pod_is_not_moved_to_a_better_node() -> None:
    seen = snapshot(host("a"), host("b", weight=9), pods=(standing("b"),), replicas=1)

    layout = lay_out(seen, seen.members)
    assert (layout.excess, layout.missing, layout.misplaced) == (0, 0, ())


def test_too_many_go_from_the_heaviest_nodes_on() -> None:
    seen = snapshot(
        host("a", weight=1), host("b"), host("c"), pods=(standing("a"), standing("b"), standing("c")), replicas=1
    )

    layout = lay_out(seen, seen.members)
    assert layout.excess == 2
    assert [member.pod.node_name for member in layout.staying] == ["a", "c", "b"]


def test_a_pod_goes_from_a_node_that_no_longer_matches_and_stays_on_one_that_takes_no_new_ones() -> None:
    pods = tuple(map(standing, "abcde"))
    seen = snapshot(
        host("a"),
        host("b", labels={}),
        host("c", taints=(Taint("x", "", "NoSchedule"),)),
        host("d", taints=(Taint("x", "", "NoExecute"),)),
        pods=pods,
    )

    layout = lay_out(seen, seen.members)
    assert [member.pod.node_name for member in layout.misplaced] == ["b", "d", "e"]
    assert layout.desired == 2
    assert layout.missing == 0


def test_one_that_is_leaving_counts_until_it_has_gone() -> None:
    seen = snapshot(host("a", labels={}), host("b"), host("c"), pods=(standing("a"),), replicas=1)

    assert lay_out(seen, seen.members).missing == 0
    assert lay_out(seen, ()).missing == 1


def test_a_pod_that_is_not_bound_yet_holds_its_node() -> None:
    seen = snapshot(host("a"), pods=(standing("a", host="", pinned_to="a", registered=False),))

    assert names(seen) == []
    assert lay_out(seen, seen.members).misplaced == ()


def test_two_nodes_with_one_short_name_are_told_and_the_first_has_it() -> None:
    seen = snapshot(host("m.here", node_name="m"), host("m.there", node_name="m"))

    taken, found = created(seen)
    assert taken == ["m"]
    assert found.conflicts == {"m.there": "Nodes m.here and m.there would both be m in Slurm"}


def test_who_has_the_name_keeps_it() -> None:
    seen = snapshot(
        host("m.here", node_name="m"), host("m.there", node_name="m"), pods=(standing("m", host="m.there"),)
    )

    assert created(seen)[0] == []
    assert "m.here" in created(seen)[1].conflicts


def test_names_that_slurm_does_not_take_are_told() -> None:
    seen = snapshot(host("set"), host("x", node_name="Upper_Case"), host("y", node_name="all"), host("z"))

    taken, found = created(seen)
    assert taken == ["z"]
    assert sorted(found.conflicts) == ["set", "x", "y"]


def test_a_name_of_somebody_else_is_left_and_the_next_node_taken() -> None:
    static = Node(name="s", state=NodeState.from_words(["IDLE"]))
    neighbour = Node(name="n", state=NodeState.from_words(["IDLE", "DYNAMIC_NORM"]), extra="ns/other")
    seen = snapshot(
        host("n"),
        host("p"),
        host("q"),
        host("s"),
        host("z"),
        replicas=1,
        records=(static, neighbour),
        foreign_pods={"a-p": "there is a pod a-p that is not ours"},
        names_of_other_nodesets={"q": "other"},
    )

    taken, found = created(seen)
    assert taken == ["z"]
    assert sorted(found.conflicts) == ["n", "p", "q", "s"]
    assert found.conflicts["q"] == "node q is that of NodeSet other"


def test_without_sight_of_nodes_nothing_is_touched() -> None:
    seen = snapshot(pods=(standing("a"),), hosts=None)

    layout = lay_out(seen, seen.members)
    assert layout.desired is None
    assert (layout.excess, layout.missing, layout.misplaced) == (0, 0, ())


def test_another_mode_than_the_fixed_one_touches_nothing() -> None:
    seen = snapshot(host("a"), replicas=0, fixed="StatefulSet", pods=(standing("a"),))

    assert is_fixed_otherwise(seen.nodeset)
    assert lay_out(seen, seen.members).desired is None


def test_a_number_does_not_change_the_mode() -> None:
    seen = snapshot(host("a"), host("b"), fixed="DaemonSet")
    scaled = seen.nodeset.model_copy(update={"spec": seen.nodeset.spec.model_copy(update={"replicas": 1})})
    seen = dataclasses.replace(seen, nodeset=scaled)

    assert not is_fixed_otherwise(seen.nodeset)
    assert created(seen)[0] == ["a"]


def test_what_is_kept_for_a_pod_is_wanted_while_it_may_come_back() -> None:
    cordoned = snapshot(host("a", cordoned=True), host("b"), pods=(standing("b"),), replicas=1)
    short = snapshot(host("a"), host("b"), replicas=1)

    assert lay_out(cordoned, cordoned.members).awaited == {"a-a"}
    assert lay_out(short, ()).awaited == {"a-a", "a-b"}
    taken = snapshot(host("a"), host("b"), pods=(standing("b"),), replicas=1)
    assert lay_out(taken, taken.members).awaited == set()


def test_an_ordinal_written_with_other_digits_waits_for_the_pod_that_has_it() -> None:
    seen = snapshot()
    spec = seen.nodeset.spec.model_copy(update={"replicas": 1, "ordinal_padding": 2, "scaling_mode": None})
    ending = standing("0", name="a-0", ordinal=0, on_node=False, deleting=True)
    numbered = dataclasses.replace(
        seen, nodeset=seen.nodeset.model_copy(update={"spec": spec}), pods=(ending,), hosts=None
    )

    places, found = dataclasses.replace(numbered, pods=()), creation.choose(numbered, lay_out(numbered, ()), ())

    assert found.blocked == {"a-00": "pod a-0 is still ending"}
    assert found.pods == []
    assert created(places)[0] == ["a-00"]
