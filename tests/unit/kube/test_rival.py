"""Another operator at work is waited for, one that has gone is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Listing, Object
from slinky_operator.kube.resources import Resource
from slinky_operator.kube.rival import is_held, until_alone

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def lease(age: float, holder: str = "manager-0", **spec: Any) -> Object:
    renewed = (NOW - timedelta(seconds=age)).isoformat()
    metadata = {"name": "theirs", "namespace": "slinky", "uid": "u"}
    return {"metadata": metadata, "spec": {"holderIdentity": holder, "renewTime": renewed, **spec}}


@pytest.mark.parametrize(
    ("found", "held"),
    [
        (lease(1), True),
        (lease(70), True),
        (lease(80), False),
        (lease(80, leaseDurationSeconds=60), True),
        (lease(1, holder=""), False),
        ({"metadata": {}, "spec": {"holderIdentity": "x"}}, False),
        ({"metadata": {}}, False),
    ],
)
def test_a_lease_is_held_as_long_as_it_is_renewed(found: Object, held: bool) -> None:
    assert is_held(found, NOW) is held


class Api:
    """Answers with one list after the other."""

    def __init__(self, *answers: list[Object] | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str | None, str | None]] = []

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Listing:
        self.asked.append((namespace, field_selector))
        answer = self.answers.pop(0)
        if answer is None:
            raise errors.Forbidden(Target("list", str(resource), namespace), "no right", status=403)
        return Listing(answer, "1")


async def waited(api: Api, *namespaces: str) -> list[str]:
    """What was told until it was over."""
    told: list[str] = []

    async def sleep(seconds: float) -> None:
        assert seconds > 0

    await until_alone(api, "theirs", namespaces, lambda obj, words: told.append(words), now=lambda: NOW, sleep=sleep)
    return told


async def test_nothing_is_begun_while_somebody_else_leads() -> None:
    api = Api([lease(1)], [lease(1)], [lease(200)])

    told = await waited(api)

    assert len(told) == 2
    assert "manager-0 renews Lease slinky/theirs" in told[0]
    assert api.asked == [(None, "metadata.name=theirs")] * 3


async def test_only_the_namespaces_that_may_be_seen_are_asked() -> None:
    api = Api([], None)

    assert await waited(api, "a", "b") == []
    assert [namespace for namespace, _ in api.asked] == ["a", "b"]
