"""Serving requests to drain: complete only by fresh answers of all Slurms concerned, and told while that cannot be."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slinky_api import labels
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.cache.stubs import stub
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NODESETS, PODS
from slinky_operator.nodeset.execute.hosts.drain_requests import (
    AWAY_EVERY_S,
    EVERY_S,
    UNSEEN_EVERY_S,
    DrainRequests,
)
from slinky_operator.nodeset.execute.hosts.proof import Bridged
from slinky_operator.nodeset.execute.hosts.slurms import bridged, clients
from slinky_operator.nodeset.observation.indexes import INDEXES_OF_PODS
from slinky_operator.nodeset.ports import Slurm
from slinky_operator.slurm.connection.contact import ContactState
from slurm_client import errors as slurm_errors
from slurm_client.models import Job, Node
from tests.unit.nodeset.builders import NOW, job, node
from tests.unit.nodeset.model.test_drain_requests import done, request

TARGET = Target("list", "drainrequests", "nv")
OF_NODESET = Target("get", "nodesets", "ns", "a")
EMPTY = "IDLE+DRAIN+DYNAMIC_NORM"


class Over(Exception):
    """The world ends."""


class Kube:
    """An API server with some requests."""

    def __init__(
        self, items: Sequence[Object] = (), error: Exception | None = None, nodeset: Object | Exception | None = None
    ) -> None:
        self.items, self.error, self.nodeset = list(items), error, nodeset if nodeset is not None else recorded()
        self.written: dict[str, Any] = {}
        self.refused: dict[str, Exception] = {}
        self.pods: list[Object] = []
        self.pods_error: Exception | None = None

    async def each(
        self,
        resource: Any,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> AsyncIterator[Object]:
        if resource is PODS:
            assert namespace is None
            if self.pods_error is not None:
                raise self.pods_error
            for one in self.pods:
                if f"spec.nodeName={host_of(one)}" == field_selector:
                    yield one
            return
        assert namespace == "nv"
        if self.error is not None:
            raise self.error
        for one in self.items:
            yield one

    async def get(self, resource: Any, name: str, namespace: str | None = None) -> Object:
        assert (resource, name, namespace) == (NODESETS, "a", "ns")
        if isinstance(self.nodeset, Exception):
            raise self.nodeset
        return self.nodeset

    async def patch_status(
        self, resource: Any, name: str, status: Object, namespace: str | None = None, *, uid: str | None = None
    ) -> Object:
        assert (namespace, uid) == ("nv", f"uid-{name}")
        (one,) = status["conditions"]
        assert (one["type"], one["status"]) == ("DrainComplete", "True")
        if name in self.refused:
            raise self.refused[name]
        self.written[name] = f"{one['reason']}: {one['message']}"
        return {}


def slurm(
    *records: Node,
    jobs: Sequence[Job] = (),
    error: Exception | None = None,
    state: ContactState = ContactState.READY,
    asked: list[Sequence[str]] | None = None,
    since: datetime = NOW - timedelta(hours=1),
) -> Slurm:
    """A Slurm that answers so."""

    async def refresh(names: Sequence[str]) -> Mapping[str, Node | None]:
        if asked is not None:
            asked.append(sorted(names))
        if error is not None:
            raise error
        by_name = {one.name: one for one in records}
        return {name: by_name.get(name) for name in names}

    async def jobs_with_nodes() -> Sequence[Job]:
        return jobs

    contact = SimpleNamespace(state=state, since=since)
    return cast(
        "Slurm",
        SimpleNamespace(
            namespace="ns",
            name="c",
            refresh=refresh,
            jobs_with_nodes=jobs_with_nodes,
            contact=contact,
            nodes={one.name: one for one in records},
        ),
    )


def pod(name: str, cluster: str = "c", host: str = "m-1") -> Object:
    own = {labels.LABEL_NODESET_UID: "set-uid", labels.LABEL_NODESET_NAME: "a", labels.LABEL_CLUSTER_NAME: cluster}
    started = {"name": "slurmd", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    registered = {"type": "nodeset.slinky.slurm.net/Registered", "status": "True"}
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": f"u-{name}", "labels": own, "resourceVersion": "1"},
        "spec": {"nodeName": host},
        "status": {"phase": "Running", "containerStatuses": [started], "conditions": [registered]},
    }


def host_of(one: Object) -> str:
    return str(one["spec"]["nodeName"])


def unmarked(name: str) -> Object:
    """A pod that does not say itself that it has registered."""
    found = pod(name)
    found["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    found["status"]["conditions"] = []
    return found


def recorded(ordinals: str = "", *, uid: str = "set-uid") -> Object:
    """A NodeSet whose status records pods."""
    own = {"ordinals": ordinals, "createdUntil": "2026-01-01T00:00:00Z"}
    return {"metadata": {"namespace": "ns", "name": "a", "uid": uid}, "status": {"registered": own}}


def record(words: str = EMPTY, name: str = "a-0") -> Node:
    return node(words, name=name, instance_id=f"u-{name}", reason="somebody's")


class Served:
    """Requests that were served for some rounds."""

    def __init__(
        self,
        kube: Kube,
        pods: Sequence[Object] = (),
        bridged: Bridged = lambda _: {},
        **slurms: Slurm,
    ) -> None:
        store = Store(INDEXES_OF_PODS)
        for one in pods:
            store.put(one)
        kube.pods.extend(pods)
        self.kube, self.pauses, self.told = kube, list[float](), list[Key]()
        self.now = 0.0
        self.requests = DrainRequests(
            kube,
            "nv",
            store,
            clients(cast("Any", slurms), lambda key: key[1]),
            bridged,
            now=lambda: NOW,
            clock=lambda: self.now,
            sleep=self._sleep,
        )
        self.requests.subscribe(self.told.append)
        self.left = 1

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.left -= 1
        if self.left <= 0:
            raise Over

    def rounds(self, count: int = 1) -> dict[str, Any]:
        self.left = count
        _ = self.requests.by_host()
        with pytest.raises(Over):
            asyncio.run(self.requests.run())
        return self.kube.written


def test_without_a_pass_nothing_is_asked() -> None:
    async def wait() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await Served(Kube(error=Over())).requests.run()

    asyncio.run(wait())


def test_an_empty_drained_node_completes_a_request_whoever_drained_it() -> None:
    served = Served(Kube([request()]), [pod("a-0")], c=slurm(record()))

    assert served.rounds() == {"one": "DrainComplete: All Slinky pods drained successfully"}
    assert served.told == [("ns", "a")]
    assert served.pauses == [EVERY_S]


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
def test_what_is_not_proven_is_not_complete(answer: Slurm) -> None:
    assert Served(Kube([request()]), [pod("a-0")], c=answer).rounds() == {}


@pytest.mark.parametrize(
    "nodeset",
    [
        recorded("0-17"),
        recorded(uid="another"),
        recorded("0" * 10_000),
        kube_errors.NotFound(OF_NODESET, "there is none", status=404),
        kube_errors.Unavailable(OF_NODESET, "no connection", maybe_done=False),
    ],
    ids=["its status", "another NodeSet", "no valid status", "no NodeSet", "no answer"],
)
def test_a_forgotten_pod_is_not_proven_empty_where_its_nodeset_may_have_recorded_it(
    nodeset: Object | Exception,
) -> None:
    assert Served(Kube([request()], nodeset=nodeset), [unmarked("a-0")], c=slurm()).rounds() == {}


def test_a_pod_that_never_registered_keeps_no_node() -> None:
    assert Served(Kube([request()], nodeset=recorded("1-17")), [unmarked("a-0")], c=slurm()).rounds()


def test_every_pod_on_the_node_counts_of_whatever_cluster() -> None:
    pods = [pod("a-0"), pod("b-0", "d")]
    empty = slurm(record())

    assert Served(Kube([request()]), pods, c=empty).rounds() == {}
    assert Served(Kube([request()]), pods, c=empty, d=slurm(record("IDLE+DYNAMIC_NORM", "b-0"))).rounds() == {}
    assert Served(Kube([request()]), pods, c=empty, d=slurm(record(name="b-0"))).rounds()


def unseen(name: str = "b-0", **more: Any) -> Object:
    """A slurmd pod by its owner, which the caches do not show: its labels are off, or there is no room for it."""
    found = pod(name)
    owner = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "NodeSet", "name": "b", "uid": "u", "controller": True}
    return {**found, "metadata": {**found["metadata"], "labels": {}, "ownerReferences": [owner]}, **more}


def test_a_pod_that_the_operator_does_not_see_is_not_taken_for_absent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    kube = Kube([request()])
    kube.pods.append(unseen())
    served = Served(kube, [pod("a-0")], c=slurm(record()))

    assert served.rounds() == {}
    words = (
        "DrainRequest one of Node m-1 waits: pods there look like slurmd's, and the operator does not see them: ns/b-0"
    )
    assert [one.message.startswith(words) for one in caplog.records] == [True]
    over = {"phase": "Failed", "containerStatuses": [{"name": "slurmd", "state": {"terminated": {"exitCode": 1}}}]}
    kube.pods[:] = [pod("a-0"), unseen(status=over)]
    assert served.rounds(5) == {}
    assert len(caplog.records) == 1
    served.now += UNSEEN_EVERY_S
    assert served.rounds()


def test_a_node_whose_only_pod_is_not_seen_is_not_empty() -> None:
    kube = Kube([request()])
    kube.pods.append(unseen())
    assert Served(kube).rounds() == {}


def test_a_pod_of_which_only_the_guard_is_left_as_owner_counts() -> None:
    kube = Kube([request()])
    left = unseen()
    left["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "nodeset-b-12", "uid": "g"}
    ]
    kube.pods.append(left)
    assert Served(kube).rounds() == {}


@pytest.mark.parametrize(
    "owner",
    [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w", "controller": True},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "uid": "w"},
        {"apiVersion": "example.com/v1", "kind": "NodeSet", "name": "web", "uid": "w"},
    ],
    ids=lambda one: str(one["kind"]),
)
def test_pods_of_others_on_the_node_are_not_waited_for(owner: Object) -> None:
    kube = Kube([request()])
    web = unseen("web")
    web["metadata"]["ownerReferences"] = [owner]
    kube.pods.append(web)
    assert Served(kube).rounds() == {"one": "NoPods: No Slinky pods found on node"}


def test_what_the_api_server_does_not_show_is_not_complete() -> None:
    kube = Kube([request()])
    kube.pods_error = kube_errors.Unavailable(TARGET, "away", maybe_done=False)
    assert Served(kube, [pod("a-0")], c=slurm(record())).rounds() == {}
    kube.pods_error = kube_errors.Forbidden(TARGET, "no", status=403)
    served = Served(kube, [pod("a-0")], c=slurm(record()))
    assert served.rounds() == {}
    assert served.pauses == [AWAY_EVERY_S]


def test_a_node_without_pods_is_complete_and_what_is_complete_is_not_written_again() -> None:
    assert Served(Kube([request()]), [pod("a-0", host="m-2")]).rounds() == {
        "one": "NoPods: No Slinky pods found on node"
    }
    assert Served(Kube([request(status=done())])).rounds() == {}


def test_a_missing_kind_is_told_once_and_what_is_known_stays(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    served = Served(Kube([request()]), [pod("a-0")], c=slurm(record("IDLE+DYNAMIC_NORM")))
    served.rounds()
    served.kube.error = kube_errors.NotFound(TARGET, "no such kind", status=404)
    served.rounds(3)

    assert list(served.requests.by_host() or {}) == ["m-1"]
    assert served.pauses[1:] == [AWAY_EVERY_S] * 3
    assert [one.message.partition(":")[0] for one in caplog.records] == ["DrainRequests in nv are not served"]
    served.kube.error = None
    served.rounds()
    assert caplog.records[-1].message == "DrainRequests in nv are served"


def test_a_request_that_goes_is_told_to_the_nodesets_there() -> None:
    served = Served(Kube([request()]), [pod("a-0")], c=slurm(record("IDLE+DYNAMIC_NORM")))
    served.rounds()
    served.kube.items = []
    served.rounds()

    assert served.told == [("ns", "a")] * 2
    assert served.requests.by_host() == {}


def test_an_api_server_that_is_away_changes_nothing() -> None:
    served = Served(Kube(error=kube_errors.Unavailable(TARGET, "away", maybe_done=False)))

    assert served.rounds(2) == {}
    assert served.pauses == [EVERY_S] * 2


def test_what_is_asked_for_is_not_known_before_the_first_list() -> None:
    served = Served(Kube(error=kube_errors.Forbidden(TARGET, "no", status=403)), [pod("a-0"), pod("a-1")])

    assert served.requests.by_host() is None
    served.rounds()
    assert served.requests.by_host() is None
    served.kube.error = None
    served.rounds(2)
    assert served.requests.by_host() == {}
    assert served.told == [("ns", "a")]


def test_a_slurm_is_asked_once_for_all_its_nodes_and_not_while_it_does_not_answer() -> None:
    asked: list[Sequence[str]] = []
    requests = [request(name="one"), request(name="two", nodeName="m-2"), request(name="three", nodeName="m-3")]
    pods = [pod("a-0"), pod("a-1", host="m-2"), pod("b-0", "d", "m-3")]
    away: list[Sequence[str]] = []
    served = Served(
        Kube(requests),
        pods,
        c=slurm(record(), record(name="a-1"), asked=asked),
        d=slurm(record(name="b-0"), state=ContactState.UNREACHABLE, asked=away),
    )

    assert served.rounds().keys() == {"one", "two"}
    assert (asked, away) == ([["a-0", "a-1"]], [])


def test_a_slurm_that_takes_long_delays_its_own_requests_only() -> None:
    slow, done_first = slurm(record(name="b-0")), asyncio.Event()
    served = Served(
        Kube([request(name="one"), request(name="two", nodeName="m-2")]),
        [pod("b-0", "d"), pod("a-0", host="m-2")],
        c=slurm(record()),
        d=slow,
    )
    answer = slow.refresh

    async def refresh(names: Iterable[str]) -> Mapping[str, Node | None]:
        _ = await done_first.wait()
        return await answer(names)

    written = served.kube.patch_status

    async def patch_status(resource: Any, name: str, *args: Any, **given: Any) -> Object:
        if name == "two":
            done_first.set()
        return await written(resource, name, *args, **given)

    slow.refresh = refresh  # type: ignore[method-assign]
    served.kube.patch_status = patch_status  # type: ignore[method-assign]
    assert served.rounds().keys() == {"one", "two"}


def test_a_request_that_cannot_be_written_keeps_no_other_from_being() -> None:
    served = Served(Kube([request(name="one"), request(name="two")]), [pod("a-0")], c=slurm(record()))
    served.kube.refused["one"] = kube_errors.Invalid(TARGET, "no such condition", status=422)

    assert served.rounds().keys() == {"two"}


def test_requests_that_are_complete_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slinky_operator.nodeset.execute.hosts.drain_requests.MOST", 1)
    served = Served(Kube([request(name="one", status=done()), request(name="two", nodeName="m-2")]))

    assert served.rounds().keys() == {"two"}
    assert (served.requests.by_host() or {}).keys() == {"m-1", "m-2"}


@pytest.mark.parametrize(
    ("there", "is_complete"),
    [
        (None, False),
        (slurm(state=ContactState.CONNECTING), False),
        (slurm(record("IDLE+EXTERNAL", "m-1")), False),
        (slurm(record("ALLOCATED+DRAIN+EXTERNAL", "m-1"), jobs=[job("RUNNING", nodes=("m-1",))]), False),
        (slurm(record("IDLE+DRAIN+EXTERNAL", "m-1"), error=slurm_errors.Unreachable("away")), False),
        (slurm(record("ALLOCATED+DRAIN+EXTERNAL", "m-1")), True),
        (slurm(), True),
    ],
    ids=["no client", "not asked yet", "not drained", "a job", "no answer", "no job any more", "not there yet"],
)
def test_a_node_of_a_bridge_is_complete_without_a_job_only(there: Slurm | None, is_complete: bool) -> None:
    served = Served(Kube([request()]), bridged=lambda hosts: {"m-1": [there]} if "m-1" in hosts else {})

    assert ("one" in served.rounds()) is is_complete


def test_a_node_is_of_a_bridge_by_its_labels_or_by_what_slurm_has() -> None:
    bridge = {"jobs": {"bridge": {"nodeLabels": {"slurm": "pods"}}}}
    # One that cannot be read as a whole: its pods run on.
    broken = {**bridge, "slurmctld": {"extraConf": 1}}
    clusters = [{"metadata": {"uid": uid}, "spec": spec} for uid, spec in (("c", bridge), ("d", {}), ("e", broken))]
    left = slurm(node("IDLE+EXTERNAL", name="m-2"), record(name="m-3"))
    find = bridged(cast("Any", {"d": left}), lambda: clusters, lambda host: {"slurm": "pods"} if host == "m-1" else {})

    assert find(["m-1", "m-2", "m-3"]) == {"m-1": [None, None], "m-2": [left], "m-3": []}


CLUSTER: Object = {"apiVersion": "v1", "kind": "Cluster", "metadata": {"uid": "c", "name": "c"}, "spec": {}}


@pytest.mark.parametrize(("cluster", "is_whole"), [(CLUSTER, False), (stub(CLUSTER), True)], ids=["missing", "a stub"])
def test_a_cluster_for_which_there_is_no_room_may_have_any_node(cluster: Object, *, is_whole: bool) -> None:
    find = bridged(cast("Any", {}), lambda: [cluster], lambda _: {}, lambda: is_whole)
    assert find(["m-1"]) == {"m-1": [None]}
    assert Served(Kube([request()]), bridged=find).rounds() == {}


def test_many_requests_look_at_the_clusters_once() -> None:
    looks: list[None] = []

    def clusters() -> list[Object]:
        looks.append(None)
        return []

    kube = Kube([request(name=f"r-{number}", nodeName=f"m-{number}") for number in range(9)])

    assert len(Served(kube, bridged=bridged(cast("Any", {}), clusters, lambda _: {})).rounds()) == 9
    assert len(looks) == 1
