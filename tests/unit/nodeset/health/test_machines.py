"""Which machines are rebooted or deleted: allowed ones, counted first, and cordoned until they have started again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.status import NodeSetStatus, Replacement
from slinky_operator.nodeset.health.machines import AGAIN, TAKES
from slinky_operator.nodeset.health.replacement import ReplacementChoice, absent
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.machines import MachineRules, Mark
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.reconcile.text import stamp
from tests.unit.nodeset.builders import NOW
from tests.unit.nodeset.health.test_choice import host
from tests.unit.nodeset.health.test_replacement import HELD, bad, chosen

OWNER = "ns/a"
ALLOWED = MachineRules(frozenset({"ns"}), reboot_by="RebootNode")
BOOT = "boot-1"


def machine(number: int, age: float | None = 100, *, boot: str = BOOT, **given: Any) -> KubernetesNode:
    return host(number, age, boot_id=boot, **given)


def tried(number: int = 0, *, ago: float = 60, tries: int = 1, boot: str = BOOT) -> Replacement:
    last = stamp(NOW - timedelta(seconds=ago))
    return Replacement(
        host=f"host-{number}", tries=tries, last=last, pod=f"a-{number}", pod_uid=f"u{number}", boot_id=boot
    )


def mark(record: Replacement, *, sent: bool = False, owner: str = OWNER) -> Mark:
    return Mark(owner, "Reboot", record.boot_id, record.last, is_sent=sent)


def seen(
    *hosts: KubernetesNode,
    records: Sequence[Replacement] = (),
    rules: MachineRules | None = ALLOWED,
    policy: str = "Reboot",
    **given: Any,
) -> Snapshot:
    return replace(bad(*hosts, records=records, policy=policy, **given), machine_rules=rules)


def told(found: ReplacementChoice) -> tuple[list[str], list[str], dict[str, int]]:
    """Nodes of tries that go on, Nodes given back, and tries by Node."""
    tries = {one.host: one.tries for one in found.records}
    return [name for name, _ in found.machines.tries], list(found.machines.given_back), tries


def test_a_try_is_counted_with_the_boot_before_anything_is_done_and_no_pod_is_recreated() -> None:
    first = chosen(seen(machine(0)))

    assert told(first) == ([], [], {"host-0": 1})
    assert first.records[0].boot_id == BOOT
    second = chosen(seen(machine(0), records=first.records))
    assert second.machines.tries == (("host-0", Mark(OWNER, "Reboot", BOOT, stamp(NOW))),)
    assert not second.pods
    assert second.wake_up == AGAIN


@pytest.mark.parametrize(
    ("rules", "policy", "words"),
    [
        (None, "Reboot", "nodeLife.namespaces"),
        (MachineRules(frozenset({"others"}), reboot_by="RebootNode"), "Reboot", "namespace ns may not"),
        (MachineRules(frozenset({"others"})), "DeleteMachine", "namespace ns may not"),
        (MachineRules(frozenset({"ns"})), "Reboot", "nodeLife.rebootBy"),
    ],
    ids=["off", "another namespace", "another namespace, deletion", "nobody reboots"],
)
def test_what_the_settings_do_not_allow_is_refused(rules: MachineRules | None, policy: str, words: str) -> None:
    found = chosen(seen(machine(0), rules=rules, policy=policy))

    assert words in found.refused
    assert told(found) == ([], [], {})


@pytest.mark.parametrize(
    ("node", "rules", "words"),
    [
        (machine(0, cordoned=True), ALLOWED, "cordoned by somebody else"),
        (machine(0, boot=""), ALLOWED, "shows no boot id"),
        (machine(0), replace(ALLOWED, node_label="own=yes"), "has not the label own=yes"),
        (machine(0, mark=mark(tried(), owner="ns/b")), ALLOWED, "in the hands of NodeSet ns/b"),
    ],
    ids=["cordoned", "no boot id", "no label", "another NodeSet"],
)
def test_a_node_that_is_not_to_be_touched_is_told_and_no_try_counted(
    node: KubernetesNode, rules: MachineRules, words: str
) -> None:
    found = chosen(seen(node, rules=rules), **{"a-0": HELD | {Cause.NODE_CORDON}})

    assert words in found.waits["host-0"]
    assert told(found) == ([], [], {})


def test_settings_may_allow_all_namespaces_and_labelled_nodes() -> None:
    rules = MachineRules(frozenset({"*"}), "own=yes", "example.com/reboot")

    assert told(chosen(seen(machine(0, labels={"own": "yes"}), rules=rules))) == ([], [], {"host-0": 1})


@pytest.mark.parametrize(
    "changed",
    [
        lambda one: replace(one, slurm=replace(one.slurm, readable=False)),
        lambda one: replace(one, slurm=replace(one.slurm, jobs=None)),
        lambda one: replace(one, cluster=replace(one.cluster, deleting=True)),
    ],
    ids=["no answer", "jobs not asked for", "deleted Cluster"],
)
def test_what_is_not_proven_goes_no_further(changed: Any) -> None:
    record = tried()
    assert told(chosen(changed(seen(machine(0, mark=mark(record)), records=[record]))))[0] == []


def test_a_try_goes_on_behind_its_cordon_once_the_cache_shows_that() -> None:
    record = tried()
    causes = {"a-0": HELD | {Cause.NODE_CORDON}}
    shown = seen(machine(0, cordoned=True, mark=mark(record)), records=[record])
    earlier = tried(ago=90)

    assert chosen(shown, **causes).machines.shown == {"host-0"}
    assert chosen(seen(machine(0), records=[record])).machines.shown == frozenset()
    uncordoned = seen(machine(0, mark=mark(record)), records=[record])
    other = seen(machine(0, cordoned=True, mark=mark(earlier)), records=[record])
    assert [chosen(one, **causes).machines.shown for one in (uncordoned, other)] == [frozenset(), frozenset()]


def test_waiting_for_others_is_no_try_in_vain_and_holds_no_place() -> None:
    record = tried(ago=2 * TAKES.total_seconds())
    snapshot = seen(machine(0, cordoned=True, mark=mark(record)), machine(1), records=[record])

    found = chosen(snapshot, **{"a-0": HELD | {Cause.NODE_CORDON}})

    assert told(found) == (["host-0"], [], {"host-0": 1, "host-1": 1})


def test_a_machine_that_has_been_asked_for_keeps_its_place_and_then_has_another_try() -> None:
    record = tried()
    sent = machine(0, cordoned=True, mark=mark(record, sent=True))
    held: Mapping[str, Any] = {"a-0": HELD | {Cause.NODE_CORDON}}

    assert told(chosen(seen(sent, machine(1), records=[record]), **held)) == (["host-0"], [], {"host-0": 1})
    late = tried(ago=TAKES.total_seconds())
    slow = machine(0, cordoned=True, mark=mark(late, sent=True))
    found = chosen(seen(slow, records=[late]), **held)
    assert told(found) == ([], [], {"host-0": 2})
    assert "has not started again" in found.waits["host-0"]
    last = chosen(seen(slow, records=[late], maxTries=1), **held)
    assert told(last) == ([], [], {"host-0": 1})
    assert [one.node for one in last.given_up] == ["a-0"]


def test_a_machine_that_has_ended_keeps_its_place_until_a_pod_of_the_name_serves() -> None:
    record = tried()
    both = seen(machine(0), machine(1), records=[record])
    # Its Node is deleted, and no other machine is there yet.
    left = replace(both, pods=both.pods[1:], hosts={"host-1": machine(1)})

    assert absent(left, NOW) == {"a-0"}
    assert told(chosen(left))[2] == {"host-0": 1}
    # It has half an hour.
    assert absent(left, NOW + TAKES) == frozenset()


def test_what_has_been_asked_for_stays_cordoned_until_it_has_started_again_even_if_it_is_well() -> None:
    record = tried()
    well = machine(0, None, cordoned=True, mark=mark(record, sent=True))
    assert told(chosen(seen(well, records=[record])))[1] == []
    assert told(chosen(seen(well, records=[record], policy="Nothing")))[1] == []
    assert told(chosen(seen(replace(well, boot_id="boot-2"), records=[record]))) == ([], ["host-0"], {"host-0": 1})


@pytest.mark.parametrize(
    ("policy", "within"),
    [("Reboot", 3600), ("Reboot", 60), ("RecreatePod", 3600), ("Nothing", 86_400)],
    ids=["later than its tries count", "tries that count for a minute", "policy for pods", "no policy"],
)
def test_a_node_is_given_back_whenever_its_machine_starts_and_wherever_its_pods_are_then(
    policy: str, within: int
) -> None:
    """A machine may be away for days, and its pods on other Nodes by then; nobody else knows whose cordon it is."""
    record = tried(ago=within + 3600)
    sent = machine(0, cordoned=True, mark=mark(record, sent=True))
    away = replace(seen(sent, records=[record], policy=policy, withinSeconds=within), pods=())
    kept = chosen(away).records
    assert [one.host for one in kept] == ["host-0"]

    back = replace(sent, boot_id="boot-2")
    returned = replace(seen(back, records=kept, policy=policy, withinSeconds=within), pods=())
    assert chosen(returned).machines.given_back == ("host-0",)
    over = replace(back, cordoned=False, mark=None)
    assert chosen(replace(seen(over, records=kept, policy=policy, withinSeconds=within), pods=())).records == ()


def test_a_request_that_is_on_its_way_is_not_repeated_because_its_try_counts_no_more() -> None:
    record = tried(ago=100)
    sent = machine(0, cordoned=True, mark=mark(record, sent=True))

    found = chosen(seen(sent, records=[record], withinSeconds=60), **{"a-0": HELD | {Cause.NODE_CORDON}})

    assert found.records == (record,)
    assert [one.began for _, one in found.machines.tries] == [record.last]


def test_what_has_not_been_asked_for_is_given_back_if_it_is_well_or_not_wanted() -> None:
    record = tried()
    held = machine(0, cordoned=True, mark=mark(record))
    causes = {"a-0": HELD | {Cause.NODE_CORDON}}

    assert told(chosen(seen(held, records=[record]), **causes))[:2] == (["host-0"], [])
    well = machine(0, None, cordoned=True, mark=mark(record))
    assert told(chosen(seen(well, records=[record]), **causes))[:2] == ([], ["host-0"])
    for snapshot in (
        seen(held, records=[record], policy="Nothing"),
        seen(held, records=[record], policy="RecreatePod"),
        seen(held, records=[record], rules=MachineRules(frozenset({"others"}))),
    ):
        found = chosen(snapshot, **causes)
        assert (found.machines.given_back, found.wake_up) == (("host-0",), AGAIN)


@pytest.mark.parametrize(
    ("policy", "rules"),
    [
        ("Nothing", ALLOWED),
        ("RecreatePod", ALLOWED),
        ("Reboot", MachineRules(frozenset({"others"}), reboot_by="RebootNode")),
    ],
)
def test_what_has_been_asked_for_is_told_without_its_policy_until_it_is_over(policy: str, rules: MachineRules) -> None:
    record = tried()
    sent = machine(0, cordoned=True, mark=mark(record, sent=True))

    def waits(node: KubernetesNode) -> Mapping[str, str]:
        return chosen(seen(node, records=[record], policy=policy, rules=rules)).waits

    assert waits(sent) == {
        "host-0": (
            f"Node host-0 stays cordoned: the reboot of its machine was asked for at {record.last} under the "
            "former policy Reboot, and may still happen. The operator uncordons the Node once the machine has started "
            "again. If it never will, withdraw the request, remove the annotation "
            "nodeset.slinky.slurm.net/machine-replacement and uncordon the Node"
        )
    }
    assert waits(replace(sent, boot_id="boot-2")) == {}
    assert waits(machine(0, cordoned=True, mark=mark(record))) == {}
    assert waits(machine(0, cordoned=True, mark=mark(record, sent=True, owner="ns/b"))) == {}


@pytest.mark.parametrize("boot", [BOOT, "boot-2"])
def test_an_operator_that_acts_on_no_machine_any_more_says_who_has_to(boot: str) -> None:
    record = tried()
    sent = machine(0, cordoned=True, mark=mark(record, sent=True))
    found = chosen(seen(replace(sent, boot_id=boot), records=[record], policy="Nothing", rules=None))

    assert "once this one has started again, remove the annotation" in found.waits["host-0"]
    assert found.machines.given_back == ()


def test_a_mark_of_another_nodeset_is_not_touched() -> None:
    theirs = machine(0, None, cordoned=True, mark=mark(tried(), owner="ns/b"))

    assert told(chosen(seen(theirs, records=[tried()])))[1] == []


def test_after_a_reboot_that_did_not_help_the_pause_counts() -> None:
    record = tried(ago=500, boot="boot-0")

    assert chosen(seen(machine(0), records=[record])).wake_up == 100
    assert told(chosen(seen(machine(0), records=[tried(ago=600, boot="boot-0")]))) == ([], [], {"host-0": 2})


def test_pods_that_belong_on_their_node_do_not_keep_its_machine() -> None:
    snapshot = seen(machine(0))
    one_each = replace(snapshot, pods=(replace(snapshot.pods[0], on_node=True),))

    assert told(chosen(one_each)) == ([], [], {"host-0": 1})


def test_a_status_from_before_is_no_mark() -> None:
    of = seen(machine(0))
    without = of.nodeset.model_copy(update={"status": NodeSetStatus()})

    assert told(chosen(replace(of, nodeset=without))) == ([], [], {"host-0": 1})
