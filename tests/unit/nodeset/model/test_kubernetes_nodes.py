"""The facts about a Kubernetes Node, and which of them trigger a pass."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_operator.nodeset.model import kubernetes_nodes
from slinky_operator.nodeset.model.kubernetes_nodes import (
    MOST_CONDITIONS,
    HostChange,
    Hosts,
    NodeCondition,
    Taint,
)
from slinky_operator.reconcile.cached.indexes import prune_node


def machine(*, heartbeat: str = "10:00", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "machine",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"zone": "here"},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            "managedFields": [{"manager": "kubelet"}],
        },
        "spec": {"podCIDR": "10.0.0.0/24", **spec},
        "status": {
            "images": [{"names": ["a" * 100]}],
            "conditions": [
                {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": heartbeat},
                {
                    "type": "DiskPressure",
                    "status": "True",
                    "message": "the disk\nis  full",
                    "reason": "Full",
                    "lastTransitionTime": "2026-01-01T10:00:00Z",
                },
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting"},
            ],
        },
    }


def test_pruning_changes_nothing_that_is_read() -> None:
    whole = machine(unschedulable=True, taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
    pruned = copy.deepcopy(whole)
    prune_node(pruned)

    assert kubernetes_nodes.read(pruned) == kubernetes_nodes.read(whole)
    assert kubernetes_nodes.read(pruned).conditions == kubernetes_nodes.read(whole).conditions
    assert kubernetes_nodes.read(whole).taints == (Taint("a", "b", "NoSchedule"),)
    assert "images" not in pruned["status"]
    assert "managedFields" not in pruned["metadata"]


def test_a_heartbeat_means_nothing_and_a_cordon_does() -> None:
    known = Hosts()

    assert known.observe(None, machine()) is not None
    assert known.observe(machine(), machine(heartbeat="10:05")) is None
    assert known.observe(machine(), machine(unschedulable=True)) is not None


def test_bad_conditions_matter_only_under_a_cordon() -> None:
    well, ill = machine(), machine()
    well["status"]["conditions"] = []
    ill["status"]["conditions"][1]["type"] = "PIDPressure"

    assert kubernetes_nodes.read(well) == kubernetes_nodes.read(ill)


def test_a_node_short_of_disk_is_another_one() -> None:
    short = machine()
    assert kubernetes_nodes.read(short).disk_pressure
    well = machine()
    well["status"]["conditions"][1]["status"] = "False"
    assert not kubernetes_nodes.read(well).disk_pressure
    known = Hosts()
    _ = known.observe(None, well)
    assert known.observe(well, short) is not None


def with_condition(status: str, changed: object = "2026-01-01T10:00:00Z", **given: str) -> dict[str, Any]:
    one: dict[str, Any] = {"type": "Bad", "status": status, **({"lastTransitionTime": changed} if changed else {})}
    return sick(one | given)


def sick(*conditions: dict[str, Any], **metadata: str) -> dict[str, Any]:
    found = machine()
    found["metadata"] |= metadata
    found["status"]["conditions"] = list(conditions)
    return found


def bad(known: Hosts) -> NodeCondition:
    (found,) = (one for one in known.picture()["machine"].conditions if one.type == "Bad")
    return found


@pytest.fixture
def clock() -> list[datetime]:
    return [datetime(2026, 1, 1, 12, tzinfo=UTC)]


@pytest.fixture
def known(clock: list[datetime]) -> Hosts:
    return Hosts(lambda: clock[0])


def test_a_condition_that_changes_concerns_those_with_a_rule_for_it(known: Hosts) -> None:
    assert known.observe(None, with_condition("False")) == HostChange(known.picture()["machine"])

    change = known.observe(with_condition("False"), with_condition("True"))

    assert change == HostChange(known.picture()["machine"], frozenset({"Bad"}))
    assert bad(known).status == "True"


def test_other_words_of_a_condition_are_kept_and_trigger_nothing(known: Hosts) -> None:
    first, later = with_condition("True", message="xid 79"), with_condition("True", message="xid 48")
    known.observe(None, first)
    before = known.picture()

    assert known.observe(first, later) is None

    assert bad(known).message == "xid 48"
    (kept,) = (one for one in before["machine"].conditions if one.type == "Bad")
    assert kept.message == "xid 79"


@pytest.mark.parametrize("changed", ["2026-01-01T12:00:01Z", "soon", "2026-01-01T10:00:00", None, 7])
def test_a_time_of_no_use_is_replaced_by_the_first_look_once(
    known: Hosts, clock: list[datetime], changed: object
) -> None:
    first = clock[0]
    known.observe(None, with_condition("True", changed))
    clock[0] += timedelta(hours=1)

    assert known.observe(None, with_condition("True", changed, message="again")) is None

    assert bad(known).since == first


def test_a_condition_that_goes_is_as_old_as_its_going(known: Hosts, clock: list[datetime]) -> None:
    known.observe(None, with_condition("True"))
    gone = sick()

    assert known.observe(with_condition("True"), gone) == HostChange(known.picture()["machine"], frozenset({"Bad"}))
    left = clock[0]
    clock[0] += timedelta(hours=1)
    assert known.observe(gone, gone) is None

    assert (bad(known).status, bad(known).since) == ("", left)


def test_another_node_of_the_same_name_has_none_of_it(known: Hosts) -> None:
    known.observe(None, with_condition("True"))

    known.observe(with_condition("True"), sick(uid="another"))

    assert known.picture()["machine"].conditions == ()


def test_a_node_may_say_only_so_much(known: Hosts) -> None:
    for turn in range(3):
        many = [{"type": f"Bad{turn}-{number}", "status": "True"} for number in range(500)]
        known.observe(None, sick(*many, {"type": "Bad0-0", "status": "False"}))

    assert len(known.picture()["machine"].conditions) == MOST_CONDITIONS


def test_a_picture_that_was_given_does_not_change() -> None:
    known = Hosts()
    known.observe(None, machine())
    before = known.picture()
    known.observe(machine(), None)

    assert list(before) == ["machine"]
    assert not known.picture()


def test_a_deleted_node_is_told_of_as_it_was() -> None:
    known = Hosts()
    known.observe(None, machine())

    gone = known.observe(machine(), None)

    assert gone is not None
    assert gone.host.labels == {"zone": "here"}
    assert known.observe(machine(), None) is None


@pytest.mark.parametrize(
    ("annotations", "conditions", "why"),
    [
        ({"nodeset.slinky.slurm.net/node-cordon-reason": " new\nkernel "}, None, "new kernel"),
        ({"slinky.slurm.net/node-cordon-reason": "old name"}, None, "old name"),
        ({"nodeset.slinky.slurm.net/node-cordon-reason": "x" * 999}, None, "x" * 256),
        ({}, None, "DiskPressure: the disk is full"),
        ({}, [], ""),
        ({}, [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}], "not Ready: NodeStatusUnknown"),
        ({}, [{"type": "Ready", "status": "False"}, {"type": "Odd", "status": "True"}], "not Ready; Odd"),
    ],
)
def test_why_a_node_is_cordoned(annotations: dict[str, str], conditions: list[dict[str, str]] | None, why: str) -> None:
    node = machine(unschedulable=True)
    node["metadata"]["annotations"] = annotations
    if conditions is not None:
        node["status"]["conditions"] = conditions

    assert kubernetes_nodes.read(node).why_cordoned == why


@pytest.mark.parametrize(
    ("key", "effect", "is_leaving"),
    [
        ("karpenter.sh/disrupted", "NoSchedule", True),
        ("karpenter.sh/disruption", "NoSchedule", True),
        ("ToBeDeletedByClusterAutoscaler", "NoSchedule", True),
        ("karpenter.sh/disrupted", "PreferNoSchedule", False),
        ("DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule", False),
        ("example.com/team", "NoSchedule", False),
    ],
)
def test_a_node_that_an_autoscaler_takes_away_is_as_good_as_cordoned(key: str, effect: str, is_leaving: bool) -> None:
    read = kubernetes_nodes.read(machine(taints=[{"key": key, "effect": effect}]))

    assert (read.cordoned, read.why_cordoned) == (is_leaving, f"taint {key}" if is_leaving else "")


def test_a_reason_that_is_given_counts_more_than_the_taint() -> None:
    node = machine(taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}])
    node["metadata"]["annotations"] = {"nodeset.slinky.slurm.net/node-cordon-reason": "spot"}

    assert kubernetes_nodes.read(node).why_cordoned == "spot"


def test_a_machine_that_starts_again_is_told_of_with_both_times(known: Hosts, clock: list[datetime]) -> None:
    """A Node whose object was created again, and one that has no boot id for a moment, has not."""

    def boot(name: str, uid: str = "u") -> HostChange | None:
        found = machine()
        found["metadata"]["uid"] = uid
        found["status"]["nodeInfo"] = {"bootID": name, "kernelVersion": "6.1"}
        prune_node(found)
        return known.observe({"metadata": {"uid": "u"}}, found)

    def times() -> tuple[datetime | None, datetime | None]:
        one = known.picture()["machine"]
        return one.booted_at, one.booted_before

    _ = boot("one")
    assert times() == (None, None)
    first = clock[0]
    assert boot("two") == HostChange(known.picture()["machine"])
    assert times() == (first, None)
    assert boot("two") is None
    _ = boot("")
    clock[0] += timedelta(minutes=1)
    _ = boot("three")
    assert times() == (clock[0], first)
    _ = boot("four", "another")
    assert times() == (None, None)
