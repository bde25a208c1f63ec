"""No namespace is served by two releases of the operator, however they come, go, crash and are upgraded."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.errors import Target
from slinky_operator.kube.leadership.fence import DeadlineFence
from slinky_operator.kube.leadership.lease import Elector
from slinky_operator.kube.leadership.releases import Releases
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import LEASES, Resource
from tests.unit.runtime.virtual_time import now, run_virtually

pytestmark = pytest.mark.thorough

TARGET = Target("update", "leases", "ns", "lease")
NAMESPACES = ("a", "b", "c")


class Api:
    """Leases and rights; each call takes a moment, in which others get on."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self.leases: dict[tuple[str, str], Object] = {}
        self.rights: set[tuple[str, str]] = set()
        """User and namespace; the empty one for all."""
        self.version = 0
        self.reviews: list[tuple[str, str]] = []
        self.forbidden: set[str] = set()
        """Calls that are refused: `list`, `get`, `create`."""
        self.broken = False
        self._rng = rng or random.Random(1)  # noqa: S311 - a test

    async def _moment(self) -> None:
        await asyncio.sleep(self._rng.choice([0.001, 0.01, 0.3]))
        if self.broken:
            raise errors.Unavailable(TARGET, "away")

    def _refuse(self, call: str) -> None:
        if call in self.forbidden:
            raise errors.Forbidden(TARGET, "no right", status=403)

    async def each(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> AsyncIterator[Object]:
        await self._moment()
        self._refuse("list")
        assert label_selector == "cluster.slinky.slurm.net/operator=true"
        found = [
            copy.deepcopy(one)
            for (place, _), one in self.leases.items()
            if namespace in {None, place} and one["metadata"].get("labels", {}).get(labels.LABEL_OPERATOR) == "true"
        ]
        for one in found:
            yield one

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        await self._moment()
        self._refuse("get")
        try:
            return copy.deepcopy(self.leases[namespace or "", name])
        except KeyError:
            raise errors.NotFound(TARGET, "none") from None

    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        await self._moment()
        if resource is not LEASES:
            self._refuse("create")
            where = body["spec"]["resourceAttributes"]["namespace"]
            assert (namespace or "") in {"", where}
            self.reviews.append((body["spec"]["user"], where))
            user = body["spec"]["user"]
            return {"status": {"allowed": bool({(user, where), (user, "")} & self.rights)}}
        key = body["metadata"]["namespace"], body["metadata"]["name"]
        if key in self.leases:
            raise errors.AlreadyExists(TARGET, "there is one")
        self.version += 1
        body["metadata"] |= {"uid": f"u{self.version}", "creationTimestamp": f"2026-{self.version:06}"}
        return self._stored(key, body)

    async def replace(self, resource: Resource, body: Object) -> Object:
        await self._moment()
        key = body["metadata"]["namespace"], body["metadata"]["name"]
        if body["metadata"]["resourceVersion"] != self.leases[key]["metadata"]["resourceVersion"]:
            raise errors.Conflict(TARGET, "changed")
        return self._stored(key, body)

    def _stored(self, key: tuple[str, str], body: Object) -> Object:
        self.version += 1
        self.leases[key] = copy.deepcopy(body)
        self.leases[key]["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(self.leases[key])


@dataclass
class Process:
    """One replica of a release, as the application wires it."""

    api: Api
    home: str
    namespaces: tuple[str, ...] = ()
    name: str = "op"
    named: tuple[str, ...] = ()
    identity: str = ""
    told: list[str] = field(default_factory=list)

    def start(self) -> Process:
        client = cast("KubeClient", self.api)
        self.elector = Elector(
            client,
            namespace=self.home,
            name=self.name,
            identity=self.identity or f"{self.home}-{id(self)}",
            fence=DeadlineFence(now),
            clock=now,
            rng=random.Random(len(self.api.leases)),  # noqa: S311 - a test
            labels={labels.LABEL_OPERATOR: "true"},
            annotations={
                labels.ANNOTATION_SERVES: ",".join(self.namespaces) or "*",
                labels.ANNOTATION_SERVICE_ACCOUNT: self.name,
            },
        )
        self.releases = Releases(
            client,
            self.elector,
            home=self.home,
            name=self.name,
            namespaces=self.namespaces,
            named=self.named,
            tell=lambda lease, words: self.told.append(words),
            clock=now,
        )
        self.tasks = [asyncio.create_task(self.elector.run()), asyncio.create_task(self.releases.run())]
        return self

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.home}:{self.name}"

    def serves(self) -> set[str]:
        if not self.releases.begun.is_set():
            return set()
        return set(self.namespaces or NAMESPACES) - self.releases.elsewhere

    async def crash(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def end(self) -> None:
        await self.crash()
        await self.elector.release()


def granted(api: Api, *processes: Process) -> None:
    """Give their ServiceAccounts the rights that the chart gives."""
    for one in processes:
        api.rights |= {(one.user, where) for where in one.namespaces or ("",)}


def test_a_release_alone_begins_at_once() -> None:
    async def body() -> None:
        api = Api()
        one = Process(api, "home").start()
        await asyncio.wait_for(one.releases.begun.wait(), 3)
        annotations = api.leases["home", "op"]["metadata"]["annotations"]
        assert annotations[labels.ANNOTATION_SERVES] == "*"
        assert annotations[labels.ANNOTATION_WORKS] == "true"
        assert (one.releases.problem(), api.reviews) == (None, [])
        await one.end()

    run_virtually(body())


@pytest.mark.parametrize(
    ("first", "second"),
    [((), ()), ((), ("a",)), (("a", "b"), ("a",)), (("a",), ("a",)), (("a", "b"), ("b", "a"))],
    ids=str,
)
def test_a_second_release_waits_and_says_for_whom(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    async def body() -> None:
        api = Api()
        one, two = Process(api, "home", first), Process(api, "other", second, named=("home/op",))
        granted(api, one, two)
        one.start()
        await one.releases.begun.wait()
        two.start()
        await asyncio.sleep(120)
        assert not two.releases.begun.is_set()
        words = two.releases.problem()
        assert words is not None
        assert "(Lease home/op) serves " in words
        assert "two releases of this operator must not serve the same namespace" in words
        assert set(two.told) == {words}
        assert one.releases.problem() is None
        assert one.told == []
        await one.end()
        await asyncio.wait_for(two.releases.begun.wait(), 40)
        assert two.releases.problem() is None
        await two.end()

    run_virtually(body())


def test_releases_for_different_namespaces_do_not_wait() -> None:
    async def body() -> None:
        api = Api()
        one, two = Process(api, "home", ("a", "b")), Process(api, "other", ("c",), named=("home/op",))
        granted(api, one, two)
        for process in (one, two):
            process.start()
            await asyncio.wait_for(process.releases.begun.wait(), 5)
        assert (one.serves(), two.serves()) == ({"a", "b"}, {"c"})
        for process in (one, two):
            await process.end()

    run_virtually(body())


def test_an_upgrade_in_place_keeps_its_namespaces_from_who_waits() -> None:
    async def body() -> None:
        api = Api()
        one, two = Process(api, "home"), Process(api, "other")
        granted(api, one, two)
        one.start()
        await one.releases.begun.wait()
        two.start()
        await asyncio.sleep(60)
        successor = Process(api, "home").start()
        await asyncio.sleep(20)
        # Ready on standby, so that a rollout goes on.
        assert successor.releases.problem() is None
        await one.end()
        await asyncio.wait_for(successor.releases.begun.wait(), 10)
        await asyncio.sleep(120)
        assert not two.releases.begun.is_set()
        for process in (successor, two):
            await process.end()

    run_virtually(body())


def test_a_release_that_crashed_starts_again() -> None:
    async def body() -> None:
        api = Api()
        one = Process(api, "home").start()
        await one.releases.begun.wait()
        await one.crash()
        again = Process(api, "home").start()
        await asyncio.wait_for(again.releases.begun.wait(), 30)
        await again.end()

    run_virtually(body())


def test_a_release_whose_lease_lapsed_looks_again_before_it_works() -> None:
    async def body() -> None:
        api = Api()
        first, second = Process(api, "first"), Process(api, "second")
        granted(api, first, second)
        first.start()
        await first.releases.begun.wait()
        second.start()
        await asyncio.sleep(5)
        # The API server answers everybody else.
        attempt, answers = first.elector._attempt, False
        first.elector._attempt = lambda: attempt() if answers else _fails()  # type: ignore[method-assign]
        await first.elector.lapsed.wait()
        await second.releases.begun.wait()
        assert not first.releases.begun.is_set()
        answers = True
        await first.elector.leading.wait()
        await asyncio.sleep(30)
        assert not first.releases.begun.is_set()
        assert first.elector._fence.closed_because() is not None
        assert labels.ANNOTATION_WORKS not in api.leases["first", "op"]["metadata"]["annotations"]
        assert second.releases.begun.is_set()
        await second.end()
        await first.releases.begun.wait()
        assert first.elector._fence.closed_because() is None
        await first.end()

    run_virtually(body())


def test_a_look_from_before_a_lapse_lets_nobody_begin() -> None:
    async def body() -> None:
        api = Api()
        first, second = Process(api, "first"), Process(api, "second")
        granted(api, first, second)
        first.start()
        attempt, answers = first.elector._attempt, True
        first.elector._attempt = lambda: attempt() if answers else _fails()  # type: ignore[method-assign]
        look, began = first.releases._look, asyncio.Event()

        async def slow() -> Any:
            nonlocal answers
            found = await look()
            own = first.elector.lease or {"metadata": {}}
            if labels.ANNOTATION_WORKS in own["metadata"].get("annotations", ()) and not began.is_set():
                # The second look of one that begins: its answer comes after a pause in which another one has begun.
                answers = False
                await first.elector.lapsed.wait()
                second.start()
                await second.releases.begun.wait()
                answers = True
                await first.elector.leading.wait()
                began.set()
            return found

        first.releases._look = slow  # type: ignore[method-assign]
        await began.wait()
        for _ in range(600):
            await asyncio.sleep(0.1)
            assert not first.releases.begun.is_set()
        await second.end()
        await first.releases.begun.wait()
        await first.end()

    run_virtually(body())


async def _fails() -> bool:
    await asyncio.sleep(0.1)
    return False


def test_namespaces_of_another_release_are_left_out_until_it_has_ended() -> None:
    async def body() -> None:
        api = Api()
        some, every = Process(api, "team", ("a",), named=("home/op",)), Process(api, "home")
        granted(api, some, every)
        some.start()
        await some.releases.begun.wait()
        every.start()
        await every.releases.begun.wait()
        assert every.serves() == {"b", "c"}
        assert every.releases.problem() is None
        # It starts again, with a new process, and finds its namespace left to it.
        await some.end()
        again = Process(api, "team", ("a",), named=("home/op",)).start()
        await asyncio.wait_for(again.releases.begun.wait(), 30)
        assert (again.serves(), every.serves()) == ({"a"}, {"b", "c"})
        await again.end()
        await asyncio.sleep(90)
        assert every.serves() == set(NAMESPACES)
        # Too late: it is the other's now.
        late = Process(api, "team", ("a",), named=("home/op",)).start()
        await asyncio.sleep(90)
        assert not late.releases.begun.is_set()
        for process in (late, every):
            await process.end()

    run_virtually(body())


@pytest.mark.parametrize("serves", ["*", "a", "a,b,c"])
def test_a_lease_that_a_tenant_has_written_holds_up_nobody(serves: str, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        api = Api()
        # It may work in its own namespace, and in no other.
        api.rights.add(("system:serviceaccount:c:mine", "c"))
        await renewed(api, serves, "mine")
        one = Process(api, "home").start()
        await asyncio.wait_for(one.releases.begun.wait(), 5)
        assert one.serves() >= {"a", "b"}
        assert ("c" in one.serves()) == ("c" not in serves)
        await one.end()

    run_virtually(body())
    assert "is not waited for" in caplog.text or serves == "a,b,c"


async def renewed(api: Api, serves: str, account: str, namespace: str = "c", **more: str) -> None:
    said = {labels.ANNOTATION_SERVES: serves, labels.ANNOTATION_SERVICE_ACCOUNT: account, **more}
    metadata = {"name": "fake", "namespace": namespace, "labels": {labels.LABEL_OPERATOR: "true"}, "annotations": said}
    await api.create(
        LEASES, {"metadata": metadata, "spec": {"holderIdentity": "tenant", "leaseDurationSeconds": 10**9}}
    )


def test_many_leases_of_a_tenant_hide_no_release() -> None:
    async def body() -> None:
        api = Api()
        for number in range(1000):
            api.leases["a-tenant", f"fake-{number}"] = {
                "metadata": {
                    "name": f"fake-{number}",
                    "namespace": "a-tenant",
                    "uid": f"fake-{number}",
                    "labels": {labels.LABEL_OPERATOR: "true"},
                    "annotations": {labels.ANNOTATION_SERVES: ",".join(f"n{one}" for one in range(5000))},
                },
                "spec": {"holderIdentity": "tenant"},
            }
        one, two = Process(api, "home"), Process(api, "other")
        granted(api, one, two)
        one.start()
        await one.releases.begun.wait()
        two.start()
        await asyncio.sleep(60)
        assert not two.releases.begun.is_set()
        for process in (one, two):
            await process.end()

    run_virtually(body())


def test_without_an_answer_nothing_begins() -> None:
    async def body() -> None:
        api = Api()
        one = Process(api, "home").start()
        api.broken = True
        await asyncio.sleep(60)
        assert not one.releases.begun.is_set()
        api.broken = False
        await asyncio.wait_for(one.releases.begun.wait(), 20)
        await one.end()

    run_virtually(body())


@pytest.mark.parametrize("missing", [{"list"}, {"create"}, {"list", "create"}])
def test_without_the_rights_to_look_it_starts(missing: set[str]) -> None:
    async def body() -> None:
        api = Api()
        api.forbidden = missing
        await renewed(api, "*", "op")
        one = Process(api, "home").start()
        await asyncio.wait_for(one.releases.begun.wait(), 10)
        await one.end()

    run_virtually(body())


def test_in_ones_own_namespace_no_right_need_be_shown() -> None:
    async def body() -> None:
        api = Api()
        one, two = Process(api, "home"), Process(api, "home", name="second")
        one.start()
        await one.releases.begun.wait()
        two.start()
        await asyncio.sleep(60)
        assert not two.releases.begun.is_set()
        for process in (one, two):
            await process.end()

    run_virtually(body())


KINDS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("every", ()),
    ("second", ()),
    ("some", ("a", "b")),
    ("one", ("b",)),
    ("last", ("c",)),
)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_no_namespace_is_served_twice(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a test

    async def body() -> None:
        api = Api(rng)
        named = tuple(f"{home}/op" for home, _ in KINDS)
        running: list[Process] = []
        for home, namespaces in KINDS:
            granted(api, Process(api, home, namespaces))

        def check() -> None:
            served = [one for process in running for one in process.serves()]
            assert len(served) == len(set(served)), [(one.home, sorted(one.serves())) for one in running]

        for number in range(25):
            step = rng.random()
            if step < 0.5 and len(running) < 5:
                home, namespaces = rng.choice(KINDS)
                identity = f"{home}-{number}"
                running.append(Process(api, home, namespaces, named=named, identity=identity).start())
            elif step < 0.8 and running:
                gone: Any = running.pop(rng.randrange(len(running)))
                await (gone.crash() if rng.random() < 0.5 else gone.end())
            for _ in range(rng.choice([1, 3, 100, 400])):
                await asyncio.sleep(0.1)
                check()
        # In the end somebody works wherever a process is left.
        await asyncio.sleep(200)
        check()
        wanted = {one for process in running for one in process.namespaces or NAMESPACES}
        served = {one for process in running for one in process.serves()}
        assert served == wanted
        for process in running:
            await process.crash()

    run_virtually(body())
