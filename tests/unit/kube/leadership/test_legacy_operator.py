"""Another operator at work is waited for; one that has gone, and a Lease that anybody may have written, is not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Any

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.leadership.legacy_operator import LONGEST, LOOK_EVERY, MARGIN, SHORTEST, until_alone
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource

HOMES = {"slinky", "ours"}
FUTURE = "2099-01-01T00:00:00.000000Z"
PAST = "2020-01-01T00:00:00.000000Z"


def lease(renewed: str = PAST, holder: str = "manager-0", namespace: str = "slinky", **spec: Any) -> Object:
    metadata = {"name": "theirs", "namespace": namespace, "uid": f"of-{namespace}"}
    return {"metadata": metadata, "spec": {"holderIdentity": holder, "renewTime": renewed, **spec}}


class Api:
    """Answers with one list after the other, and with the last one on and on; its clock goes while it is waited."""

    def __init__(self, *answers: list[Object] | errors.KubeError | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str | None, str | None]] = []
        self.seconds = 0.0

    async def each(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> AsyncIterator[Object]:
        self.asked.append((namespace, field_selector))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise errors.Forbidden(Target("list", str(resource), namespace), "no right", status=403)
        if isinstance(answer, errors.KubeError):
            raise answer
        for one in answer:
            yield one

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        assert self.seconds < 1000, "it waits for ever"
        self.seconds += seconds


async def waited(api: Api, *namespaces: str, homes: Collection[str] = frozenset(HOMES)) -> list[str]:
    """What was reported until it was over."""
    told: list[str] = []
    await until_alone(
        api,
        "theirs",
        namespaces,
        homes,
        lambda obj, words: told.append(words),
        clock=lambda: api.seconds,
        sleep=api.sleep,
    )
    return told


async def test_nothing_is_begun_while_somebody_renews() -> None:
    renewals = [[lease(f"2026-01-01T00:00:{number:02}Z")] for number in range(4)]
    api = Api(*renewals)

    told = await waited(api)

    # Then it stands still for its time; while that is so, it is still told of.
    assert api.seconds > 3 * LOOK_EVERY + SHORTEST + MARGIN
    (words,) = set(told)
    assert words.startswith("manager-0 renews Lease slinky/theirs: another operator is at work on the same objects. ")
    assert set(api.asked) == {(None, "metadata.name=theirs")}


async def test_another_holder_is_somebody_too() -> None:
    assert await waited(Api([lease()], [lease(holder="manager-1")]))


@pytest.mark.parametrize("renewed", [FUTURE, PAST, "nonsense"])
async def test_what_is_not_seen_to_change_counts_for_nothing_whatever_it_says(renewed: str) -> None:
    api = Api([lease(renewed)])

    assert await waited(api) == []
    assert SHORTEST + MARGIN < api.seconds < SHORTEST + MARGIN + 2 * LOOK_EVERY


@pytest.mark.parametrize(
    ("duration", "seconds"), [(0, SHORTEST), (1, SHORTEST), (30, 30.0), (2**31 - 1, LONGEST), (None, SHORTEST)]
)
async def test_how_long_it_must_stand_still_is_bounded(duration: int | None, seconds: float) -> None:
    api = Api([lease(leaseDurationSeconds=duration)])

    assert await waited(api) == []
    assert seconds + MARGIN < api.seconds < seconds + MARGIN + 2 * LOOK_EVERY


async def test_nobody_holds_a_lease_without_a_holder() -> None:
    api = Api([lease(FUTURE, holder=""), {"metadata": {"namespace": "slinky"}}])

    assert await waited(api) == []
    assert api.seconds == 0


async def test_a_lease_that_anybody_may_have_written_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    tenants = [lease(FUTURE, namespace=f"tenant-{number}") for number in range(8)]
    api = Api(tenants)

    assert await waited(api) == []
    assert api.seconds == 0
    (line,) = [record.getMessage() for record in caplog.records]
    assert "tenant-4 and 3 more are not waited for" in line
    assert "looked for in ours, slinky (--slinky-namespaces)" in line


async def test_a_tenants_renewals_hold_up_nobody_while_another_is_waited_for() -> None:
    answers = [
        [lease(f"2026-01-01T00:00:{number:02}Z", namespace="tenant"), lease(FUTURE, namespace="ours")]
        for number in range(60)
    ]
    api = Api(*answers)

    assert await waited(api) == []
    assert api.seconds < SHORTEST + MARGIN + 2 * LOOK_EVERY


async def test_only_the_namespaces_that_may_be_seen_are_asked() -> None:
    api = Api([], None)

    assert await waited(api, "a", "b") == []
    assert [namespace for namespace, _ in api.asked] == ["a", "b"]


async def test_while_nobody_answers_nothing_is_seen_to_stand_still() -> None:
    away = errors.Unavailable(Target("list", "leases"), "refused")
    api = Api([lease()], *[away] * 20, [lease()])

    assert await waited(api) == []
    gone = api.seconds
    # The whole time counts from when it is seen again.
    api = Api(*[away] * 20, [lease()])
    await waited(api)
    assert gone > SHORTEST + MARGIN + 20 * LOOK_EVERY / 2


async def test_an_api_server_that_does_not_answer_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    target = Target("list", "leases")
    away = errors.Unavailable(target, "refused")
    broken = errors.Unavailable(target, "etcdserver: leader changed", status=500)
    later = errors.TooManyRequests(target, "later", retry_after=1.0)
    api = Api(away, away, broken, broken, later, [])

    assert await waited(api) == []
    # That nobody answers is for the connection to say.
    assert [record.getMessage() for record in caplog.records] == [
        f"cannot look for another operator yet: {error}" for error in (broken, later)
    ]
