"""Machines that are rebooted or deleted: nothing is sent while anything may run there, and nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from typing_extensions import override

from slinky_api import labels
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import MACHINES, NODES, NODESETS, PODS, REBOOTNODES, Resource
from slinky_operator.nodeset.execute.hosts.machines import Machines
from slinky_operator.nodeset.execute.hosts.slurms import clients
from slinky_operator.nodeset.model.kubernetes_nodes import read
from slinky_operator.nodeset.model.machines import MachineRules, Mark
from slinky_operator.nodeset.ports import Slurm
from slurm_client import errors as slurm_errors
from slurm_client.models import Node
from tests.unit.nodeset.builders import NOW, job, node
from tests.unit.nodeset.execute.hosts.test_drain_requests import EMPTY, pod, recorded, slurm, unmarked

HOST, BOOT, KEY = "m-1", "boot-1", "example.com/reboot"
WANTED = Mark("ns/a", "Reboot", BOOT, "2026-01-01T12:00:00Z")
SENT = replace(WANTED, is_sent=True)
ALLOWED = MachineRules(frozenset({"ns"}), reboot_by="RebootNode")
TARGET = Target("create", "rebootnodes")


def record(words: str = EMPTY, name: str = "a-0", reason: str = "slurm-operator: health (ns/a): Bad") -> Node:
    return node(words, name=name, instance_id=f"u-{name}", reason=reason)


class Killed(Exception):
    """The operator ends."""


def merged(old: Any, patch: Any) -> Any:
    """What a JSON merge patch makes."""
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


class Kube:
    """An API server with one Node."""

    def __init__(self, *pods: Object, mark: Mark | None = None, cordoned: bool = False, **annotations: str) -> None:
        own = {**annotations, **({labels.ANNOTATION_NODE_MACHINE: mark.text()} if mark is not None else {})}
        self.node: Object = {
            "metadata": {"name": HOST, "uid": "n-uid", "resourceVersion": "1", "annotations": own},
            "spec": {"unschedulable": True} if cordoned else {},
            "status": {"nodeInfo": {"bootID": BOOT}},
        }
        self.pods = list(pods)
        self.others: dict[tuple[str, str], Object] = {}
        self.sent: list[str] = []
        self.error: Exception | None = None

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        _ = resource.path(namespace, name)
        if resource is NODES:
            return self.node
        if resource is NODESETS:
            return recorded("0-3")
        try:
            return self.others[resource.api_version, name]
        except KeyError:
            raise kube_errors.NotFound(TARGET, "there is none", status=404) from None

    async def each(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> AsyncIterator[Object]:
        assert (resource, namespace, field_selector) == (PODS, None, f"spec.nodeName={HOST}")
        for one in self.pods:
            yield one

    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        assert resource is REBOOTNODES
        if self.error is not None:
            raise self.error
        name = body["metadata"]["name"]
        assert body["spec"] == {"nodeName": HOST, "force": False}
        if (resource.api_version, name) in self.others:
            raise kube_errors.AlreadyExists(TARGET, "exists", status=409)
        self.others[resource.api_version, name] = body
        self.sent.append("RebootNode")
        return body

    async def merge_patch(self, resource: Resource, name: str, patch: Object, *_: Any, **given: Any) -> Object:
        assert (resource, name, given["uid"]) == (NODES, HOST, "n-uid")
        if given["resource_version"] != self.node["metadata"]["resourceVersion"]:
            raise kube_errors.Conflict(TARGET, "changed", status=409)
        version = str(int(given["resource_version"]) + 1)
        before = read(self.node)
        self.node = merged(self.node, patch)
        self.node["metadata"]["resourceVersion"] = version
        if self.node["metadata"]["annotations"].get(KEY) and before.mark != read(self.node).mark:
            self.sent.append("annotation")
        return self.node

    async def delete(self, resource: Resource, name: str, namespace: str | None = None, *, uid: str | None) -> Object:
        assert uid
        self.sent.append(f"{resource.kind} {namespace or ''}/{name}")
        return {}

    @property
    def mark(self) -> Mark | None:
        return read(self.node).mark

    @property
    def is_cordoned(self) -> bool:
        return bool(self.node["spec"].get("unschedulable"))


def keeper(kube: Kube, rules: MachineRules = ALLOWED, answer: Slurm | None = None, now: datetime = NOW) -> Machines:
    found = clients(cast("Any", {"c": answer or slurm(record())}), lambda key: key[1])
    return Machines(kube, rules, found, clock=lambda: 0.0, now=lambda: now)


def go(
    kube: Kube,
    wanted: Mark = WANTED,
    rules: MachineRules = ALLOWED,
    answer: Slurm | None = None,
    now: datetime = NOW,
) -> str:
    """One step: what was done, or what it waits for."""
    return "".join(asyncio.run(keeper(kube, rules, answer, now).go_on(HOST, wanted)))


def back(kube: Kube, rules: MachineRules = ALLOWED) -> str:
    return "".join(asyncio.run(keeper(kube, rules).give_back(HOST, "ns/a")))


def foreign(name: str = "web-1", **metadata: Any) -> Object:
    about = {"name": name, "namespace": "shop", "uid": name, **metadata}
    return {"metadata": about, "spec": {"nodeName": HOST}, "status": {"phase": "Running"}}


def test_a_node_is_cordoned_with_a_mark_before_anything_is_sent_and_then_once() -> None:
    kube = Kube(pod("a-0"))

    assert go(kube).startswith("cordoned Node m-1")
    assert (kube.is_cordoned, kube.mark, kube.sent) == (True, WANTED, [])
    assert go(kube).startswith("asked for a reboot of Node m-1, by RebootNode slurm-operator-")
    assert (kube.mark, kube.sent) == (SENT, ["RebootNode"])
    assert "waits for its machine" in go(kube)
    assert kube.sent == ["RebootNode"]


def test_a_site_may_have_a_daemon_that_acts_on_an_annotation() -> None:
    rules, kube = replace(ALLOWED, reboot_by=KEY), Kube(pod("a-0"), mark=WANTED, cordoned=True)

    assert go(kube, rules=rules) == f"asked for a reboot of Node m-1, by the annotation {KEY}"
    assert (kube.mark, kube.node["metadata"]["annotations"][KEY]) == (SENT, WANTED.began)
    # The daemon takes it away when it begins: that is no reason to ask again.
    del kube.node["metadata"]["annotations"][KEY]
    assert "waits for its machine" in go(kube, rules=rules)
    assert kube.sent == ["annotation"]
    assert back(kube, rules) == ""
    kube.node["status"]["nodeInfo"]["bootID"] = "boot-2"
    assert back(kube, rules) == "uncordoned Node m-1: its machine has started again"
    assert (kube.is_cordoned, kube.mark, kube.node["metadata"]["annotations"]) == (False, None, {})


@pytest.mark.parametrize(
    "answer",
    [
        slurm(record("IDLE+DYNAMIC_NORM")),
        slurm(record(), jobs=[job("SUSPENDED")]),
        slurm(record("ALLOCATED+DRAIN+DYNAMIC_NORM")),
        slurm(),
        slurm(record(), error=slurm_errors.Unreachable("away")),
    ],
    ids=["not drained", "a suspended job", "busy", "forgotten", "no answer"],
)
def test_what_is_not_proven_empty_is_not_rebooted(answer: Slurm) -> None:
    kube = Kube(pod("a-0"), mark=WANTED, cordoned=True)

    assert go(kube, answer=answer).startswith("Node m-1: ")
    assert (kube.mark, kube.sent) == (WANTED, [])


def test_a_pod_that_only_its_nodeset_has_recorded_is_not_rebooted_once_slurm_has_forgotten_it() -> None:
    kube = Kube(unmarked("a-0"), mark=WANTED, cordoned=True)
    assert "Slurm does not know node a-0, which had registered" in go(kube, answer=slurm())
    assert not kube.sent


def coming(*, after: str = "2026-01-01T11:58:00Z", waiting: str = "ContainerCreating") -> Object:
    """A pod that was bound to the Node, and whose slurmd has not started."""
    found = unmarked("a-9")
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": after}
    container = {"name": "slurmd", "state": {"waiting": {"reason": waiting}}}
    return {**found, "status": {"phase": "Pending", "conditions": [bound], "containerStatuses": [container]}}


def test_a_pod_that_pulls_its_image_keeps_its_machine() -> None:
    """Its slurmd would register, and get a job, between the proof and the reboot."""
    kube = Kube(pod("a-0"), coming(), mark=WANTED, cordoned=True)
    answer = slurm(record())

    assert go(kube, answer=answer) == "Node m-1: waits: slurmd of a-9 has not registered yet"
    # The next pull may succeed.
    kube.pods[1] = coming(waiting="ImagePullBackOff")
    assert "slurmd of a-9 has not registered yet" in go(kube, answer=answer)
    kube.pods[1] = pod("a-1")
    assert go(kube, answer=slurm(record(), record(name="a-1"))).startswith("asked for a reboot")


def test_a_pod_that_does_not_come_up_keeps_no_machine() -> None:
    kube = Kube(pod("a-0"), coming(after="2026-01-01T11:50:00Z"), mark=WANTED, cordoned=True)
    assert go(kube).startswith("asked for a reboot")


def test_a_slurmd_that_has_started_while_slurmctld_was_away_keeps_its_machine() -> None:
    started = coming(after="2026-01-01T10:00:00Z")
    running = {"running": {"startedAt": "2026-01-01T10:00:00Z"}}
    started["status"] |= {"phase": "Running", "containerStatuses": [{"name": "slurmd", "state": running}]}
    kube = Kube(pod("a-0"), coming(after="2026-01-01T10:00:00Z"), started, mark=WANTED, cordoned=True)
    assert "slurmd of a-9 has not registered yet" in go(kube, answer=slurm(record(), since=NOW - timedelta(minutes=9)))
    assert not kube.sent
    assert go(kube, answer=slurm(record(), since=NOW - timedelta(minutes=10))).startswith("asked for a reboot")


def test_the_machine_of_a_node_that_somebody_else_drains_meanwhile_is_left_alone() -> None:
    kube = Kube(pod("a-0"), pod("b-0"), mark=WANTED, cordoned=True)
    answer = slurm(record(), record(name="b-0", reason="looking at it"))

    assert "node b-0 is drained by somebody else" in go(kube, answer=answer)
    assert (kube.mark, kube.sent) == (WANTED, [])


def test_a_reboot_that_somebody_else_asks_for_is_neither_taken_over_nor_taken_back() -> None:
    rules, kube = replace(ALLOWED, reboot_by=KEY), Kube(pod("a-0"), mark=WANTED, cordoned=True, **{KEY: "please"})

    assert f"has the annotation {KEY} of somebody else" in go(kube, rules=rules)
    assert kube.mark == WANTED
    assert back(kube, rules).startswith("uncordoned Node m-1")
    assert kube.node["metadata"]["annotations"] == {KEY: "please"}


def test_nothing_is_sent_before_the_cache_shows_the_cordon() -> None:
    kube = Kube(pod("a-0"), mark=WANTED, cordoned=True)

    assert asyncio.run(keeper(kube).go_on(HOST, WANTED, is_shown=False)) == ("", "")
    assert (kube.mark, kube.sent) == (WANTED, [])


def test_a_try_that_the_cache_shows_late_asks_for_no_second_reboot() -> None:
    rules, kube = replace(ALLOWED, reboot_by=KEY), Kube(pod("a-0"), mark=WANTED, cordoned=True)
    go(kube, rules=rules)
    # The daemon begins, and the status has a try that was written over the one that was sent.
    del kube.node["metadata"]["annotations"][KEY]
    later = replace(WANTED, began="2026-01-01T12:00:09Z")

    assert "waits for its machine" in go(kube, later, rules)
    assert kube.sent == ["annotation"]
    # It has half an hour; then that was one in vain.
    assert "asked for a reboot" in go(kube, later, rules, now=NOW + timedelta(minutes=30))


def test_every_slurmd_pod_counts_and_all_must_be_of_allowed_namespaces() -> None:
    other = pod("b-0", "d")
    kube = Kube(pod("a-0"), other, mark=WANTED, cordoned=True)
    assert "Slurm of Cluster ns/d: it does not answer" in go(kube)

    other["metadata"]["namespace"] = "theirs"
    fresh = Kube(pod("a-0"), other)
    assert "nodeLife.namespaces does not name: theirs" in go(fresh)
    assert not fresh.is_cordoned


def test_pods_of_others_are_waited_for_by_name_and_not_evicted() -> None:
    many = [foreign(f"web-{number}") for number in range(9)]
    kube = Kube(pod("a-0"), *many, mark=WANTED, cordoned=True)

    words = go(kube)

    assert "waits for pods that are not evicted: shop/web-0, shop/web-1, shop/web-2 and 6 more" in words
    assert kube.sent == []
    kube.pods = [
        pod("a-0"),
        foreign(ownerReferences=[{"kind": "DaemonSet", "name": "cni", "controller": True}]),
        foreign(annotations={"kubernetes.io/config.mirror": "x"}),
        {**foreign(), "status": {"phase": "Succeeded"}},
    ]
    assert go(kube).startswith("asked for a reboot")


@pytest.mark.parametrize(
    ("kube", "words"),
    [
        (Kube(pod("a-0"), cordoned=True), "cordoned by somebody else"),
        (Kube(pod("a-0"), cordoned=True, mark=replace(WANTED, owner="ns/b")), "NodeSet ns/b has its machine"),
        (Kube(pod("a-0"), mark=WANTED), "uncordoned by somebody"),
    ],
    ids=["a cordon of others", "another NodeSet", "uncordoned"],
)
def test_what_others_say_about_a_node_counts(kube: Kube, words: str) -> None:
    assert words in go(kube)
    assert kube.sent == []
    before = kube.node
    if kube.mark is None or kube.mark.owner != "ns/a":
        assert back(kube) == ""
        assert kube.node == before


def test_a_machine_that_has_started_again_by_itself_is_not_rebooted() -> None:
    kube = Kube(pod("a-0"), mark=WANTED, cordoned=True)
    kube.node["status"]["nodeInfo"]["bootID"] = "boot-2"

    assert go(kube) == ""
    assert kube.sent == []
    assert back(kube).startswith("uncordoned")


def test_killed_between_the_mark_and_the_request_nothing_is_sent_twice() -> None:
    kube = Kube(pod("a-0"), mark=WANTED, cordoned=True)
    kube.error = Killed()
    with pytest.raises(Killed):
        go(kube)
    kube.error = None

    assert kube.mark == SENT
    assert "waits for its machine" in go(kube)
    assert kube.sent == []


class Mortal(Kube):
    """An API server whose operator is killed at one of its calls, before or after it has taken effect."""

    def __init__(self, *pods: Object, dies_at: int, is_done: bool) -> None:
        super().__init__(*pods)
        self.calls, self.dies_at, self.is_done = 0, dies_at, is_done

    async def _write(self, write: Callable[[], Awaitable[Object]]) -> Object:
        self.calls += 1
        if self.calls != self.dies_at:
            return await write()
        if self.is_done:
            await write()
        raise Killed

    @override
    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        return await self._write(lambda: super(Mortal, self).create(resource, body, namespace))

    @override
    async def merge_patch(self, *args: Any, **given: Any) -> Object:
        return await self._write(lambda: super(Mortal, self).merge_patch(*args, **given))

    @override
    async def delete(self, *args: Any, **given: Any) -> Object:
        return await self._write(lambda: super(Mortal, self).delete(*args, **given))


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("dies_at", range(1, 6))
@pytest.mark.parametrize(
    ("wanted", "rules"),
    [
        (WANTED, ALLOWED),
        (WANTED, replace(ALLOWED, reboot_by=KEY)),
        (replace(WANTED, policy="DeleteMachine"), replace(ALLOWED, delete_nodes=True)),
    ],
    ids=["RebootNode", "annotation", "Node"],
)
def test_killed_at_any_write_nothing_is_sent_twice_and_the_node_is_given_back(
    wanted: Mark, rules: MachineRules, dies_at: int, *, is_done: bool
) -> None:
    kube = Mortal(pod("a-0"), dies_at=dies_at, is_done=is_done)
    for _ in range(6):
        with suppress(Killed):
            go(kube, wanted, rules)
    assert len(kube.sent) <= 1
    assert (kube.is_cordoned, kube.mark) == (True, replace(wanted, is_sent=True))

    kube.node["status"]["nodeInfo"]["bootID"] = "boot-2"
    for one in kube.others.values():
        one["status"] = {"completionTime": "2026-01-01T12:10:00Z"}
    for _ in range(3):
        with suppress(Killed):
            back(kube, rules)
    assert (kube.is_cordoned, kube.mark) == (False, None)
    assert len(kube.sent) <= 1


def test_a_refused_request_is_not_taken_for_one() -> None:
    kube = Kube(pod("a-0"), mark=WANTED, cordoned=True)
    kube.error = kube_errors.NotFound(TARGET, "no such kind", status=404)

    assert "has not been created" in go(kube)
    assert kube.mark == WANTED
    kube.error = None
    assert go(kube).startswith("asked")


def test_what_has_not_left_the_operator_is_not_sent() -> None:
    kube = Kube(pod("a-0"), mark=WANTED, cordoned=True)
    kube.error = kube_errors.Unavailable(TARGET, "no connection", maybe_done=False)

    assert "has not been created: create rebootnodes: no connection" in go(kube)
    assert kube.mark == WANTED


def test_an_unclear_answer_counts_as_sent() -> None:
    kube = Kube(pod("a-0"), mark=WANTED, cordoned=True)
    kube.error = kube_errors.Unavailable(TARGET, "no answer", maybe_done=True)
    with pytest.raises(kube_errors.Unavailable):
        go(kube)

    assert kube.mark == SENT


def test_missing_rights_are_told_with_what_gives_them() -> None:
    kube = Kube(pod("a-0"))

    async def forbidden(*_: Any, **__: Any) -> Object:
        raise kube_errors.Forbidden(Target("patch", "nodes", None, HOST), "no", status=403)

    kube.merge_patch = forbidden  # type: ignore[method-assign]
    assert "the chart slurm-node-life gives the operator the rights" in go(kube)
    marked = Kube(pod("a-0"), mark=WANTED, cordoned=True)
    marked.merge_patch = forbidden  # type: ignore[method-assign]
    assert "the chart slurm-node-life gives the operator the rights" in back(marked)


def test_before_a_node_is_given_back_or_asked_for_again_the_earlier_request_is_complete() -> None:
    kube = Kube(pod("a-0"), mark=WANTED, cordoned=True)
    go(kube)
    ((_, name),) = kube.others
    later = replace(WANTED, began="2026-01-01T12:00:09Z")
    assert "waits for its machine since 2026-01-01T12:00:00Z" in go(kube, later)
    assert "is not complete" in go(kube, later, now=NOW + timedelta(hours=1))
    kube.node["status"]["nodeInfo"]["bootID"] = "boot-2"
    assert back(kube).startswith("Node m-1 stays cordoned: RebootNode")
    assert kube.is_cordoned
    kube.others[REBOOTNODES.api_version, name]["status"] = {"completionTime": "2026-01-01T12:10:00Z"}
    assert back(kube).startswith("uncordoned")


def annotated(**more: str) -> Kube:
    wanted = replace(WANTED, policy="DeleteMachine")
    return Kube(pod("a-0"), mark=wanted, cordoned=True, **more)


OF_CLUSTER_API = {"cluster.x-k8s.io/machine": "md-0", "cluster.x-k8s.io/cluster-namespace": "fleet"}
DELETE = replace(WANTED, policy="DeleteMachine")


@pytest.mark.parametrize("resource", MACHINES, ids=lambda one: str(one.version))
def test_a_machine_of_cluster_api_is_deleted_by_its_uid(resource: Resource) -> None:
    kube = annotated(**OF_CLUSTER_API)
    kube.others[resource.api_version, "md-0"] = {
        "metadata": {"name": "md-0", "uid": "md-uid"},
        "status": {"nodeRef": {"name": HOST}},
    }

    assert go(kube, DELETE) == "deleted Machine fleet/md-0 of Node m-1"
    assert "waits for its machine" in go(kube, DELETE)
    assert kube.sent == ["Machine fleet/md-0"]


def machine_that(kube: Kube, **metadata: str) -> None:
    """The Machine of the Node, as Cluster API has it now."""
    about = {"name": "md-0", "uid": "md-uid", **metadata}
    kube.others[MACHINES[0].api_version, "md-0"] = {"metadata": about, "status": {"nodeRef": {"name": HOST}}}


def test_a_machine_that_starts_again_while_it_is_deleted_is_not_given_back() -> None:
    kube, later = annotated(**OF_CLUSTER_API), NOW + timedelta(hours=1)
    machine_that(kube)
    go(kube, DELETE)
    machine_that(kube, deletionTimestamp="2026-01-01T12:00:01Z")
    kube.node["status"]["nodeInfo"]["bootID"] = "boot-2"
    again = replace(DELETE, boot_id="boot-2", began="2026-01-01T13:00:00Z")

    assert back(kube) == "Node m-1 stays cordoned: its Machine fleet/md-0 is being deleted"
    assert (
        go(kube, again, now=later)
        == "Node m-1: an earlier try has asked for it: its Machine fleet/md-0 is being deleted"
    )
    kube.others.clear()
    assert "its Machine fleet/md-0 is gone" in back(kube)
    assert "its Machine fleet/md-0 is gone" in go(kube, again, now=later)
    assert (kube.is_cordoned, kube.sent) == (True, ["Machine fleet/md-0"])
    # It was never deleted: the operator had ended before it asked, or the answer was lost.
    machine_that(kube)
    assert back(kube) == "uncordoned Node m-1: its machine has started again"


def test_a_node_that_is_deleted_itself_is_not_given_back() -> None:
    kube = annotated()
    go(kube, DELETE, replace(ALLOWED, delete_nodes=True))
    kube.node["status"]["nodeInfo"]["bootID"] = "boot-2"
    kube.node["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:01Z"

    assert back(kube) == "Node m-1 stays cordoned: it is being deleted"
    del kube.node["metadata"]["deletionTimestamp"]
    assert back(kube).startswith("uncordoned")


def _of_another(kube: Kube) -> None:
    body = {"metadata": {"name": "md-0", "uid": "x"}, "status": {"nodeRef": {"name": "m-2"}}}
    kube.others[MACHINES[0].api_version, "md-0"] = body


@pytest.mark.parametrize(
    ("kube", "prepare", "words"),
    [
        (annotated(**OF_CLUSTER_API), _of_another, "is that of another Node"),
        (annotated(**OF_CLUSTER_API), lambda _: None, "fleet/md-0 does not exist"),
        (annotated(), lambda _: None, "nodeLife.deleteNodes"),
    ],
    ids=["another Node's", "missing", "none"],
)
def test_a_machine_that_is_not_certain_is_not_deleted(kube: Kube, prepare: Callable[[Kube], None], words: str) -> None:
    """A kubelet may write the annotations of its Node: its Machine itself must agree."""
    prepare(kube)

    assert words in go(kube, DELETE)
    assert (kube.mark, kube.sent) == (DELETE, [])


@pytest.mark.parametrize("machine", ["../pods", "a b", "md-0?x=y", "."])
def test_a_machine_whose_name_is_none_is_refused_like_one_that_does_not_exist(machine: str) -> None:
    """The annotation is the kubelet's: an error there would end each pass over the NodeSet."""
    kube = annotated(**OF_CLUSTER_API | {"cluster.x-k8s.io/machine": machine})

    assert "does not exist" in go(kube, DELETE)
    assert (kube.mark, kube.sent) == (DELETE, [])


class Refusing(Kube):
    """An API server that refuses one request, while the kubelet writes the Node's status."""

    refusal: kube_errors.KubeError = kube_errors.Forbidden(TARGET, "no", status=403)
    beats = 0
    """Writes of the kubelet right before the refusal."""

    def _refuse(self) -> None:
        about = self.node["metadata"]
        version = str(int(about["resourceVersion"]) + self.beats)
        self.node = {**self.node, "metadata": {**about, "resourceVersion": version}}
        raise self.refusal

    @override
    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        self._refuse()
        return body

    @override
    async def delete(self, resource: Resource, name: str, namespace: str | None = None, *, uid: str | None) -> Object:
        self._refuse()
        return {}


@pytest.mark.parametrize("beats", [0, 1])
@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (kube_errors.Forbidden(TARGET, "no", status=403), "the chart slurm-node-life gives the operator the rights"),
        (kube_errors.Invalid(TARGET, "a webhook says no", status=422), "a webhook says no"),
        (kube_errors.TooManyRequests(TARGET, "later", status=429), "later"),
    ],
    ids=["rights", "admission", "busy"],
)
@pytest.mark.parametrize(
    ("wanted", "annotations"),
    [(WANTED, {}), (DELETE, OF_CLUSTER_API), (DELETE, {})],
    ids=["RebootNode", "Machine", "Node"],
)
def test_whatever_is_refused_is_not_taken_for_sent(
    wanted: Mark, annotations: dict[str, str], refusal: kube_errors.KubeError, words: str, beats: int
) -> None:
    kube = Refusing(pod("a-0"), mark=wanted, cordoned=True, **annotations)
    kube.refusal, kube.beats = refusal, beats
    body = {"metadata": {"name": "md-0", "uid": "md-uid"}, "status": {"nodeRef": {"name": HOST}}}
    kube.others[MACHINES[0].api_version, "md-0"] = body

    assert words in go(kube, wanted, replace(ALLOWED, delete_nodes=True))
    assert kube.mark == wanted


def test_a_node_is_not_given_back_while_it_shows_no_boot_at_all() -> None:
    kube = Kube(pod("a-0"), mark=SENT, cordoned=True)
    kube.node["status"]["nodeInfo"] = {}

    assert back(kube) == ""
    assert kube.is_cordoned


def test_a_node_without_a_machine_is_deleted_if_the_settings_say_so() -> None:
    kube = annotated()

    assert go(kube, DELETE, replace(ALLOWED, delete_nodes=True)) == "deleted Node m-1"
    assert kube.sent == ["Node /m-1"]


def test_a_mark_that_has_been_edited_is_none() -> None:
    texts: Sequence[str] = ("", "x", "a b c", "a b c d other", "a b c d sent more")
    for text in texts:
        assert read({"metadata": {"name": "m", "annotations": {labels.ANNOTATION_NODE_MACHINE: text}}}).mark is None
    for mark in (WANTED, SENT):
        found = read({"metadata": {"name": "m", "annotations": {labels.ANNOTATION_NODE_MACHINE: mark.text()}}})
        assert (found.mark, found.cordoned) == (mark, mark.is_sent)
