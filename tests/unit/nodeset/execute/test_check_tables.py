"""The ConfigMap with health checks: read, made and changed, and read again where somebody was faster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from slinky_api import labels
from slinky_api.events import EventReason
from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.nodeset.execute import check_tables
from slinky_operator.nodeset.execute.context import PassContext, PassOutcome
from slinky_operator.nodeset.model import check_tables as model
from slinky_operator.nodeset.model.actions import KeepChecks
from slinky_operator.nodeset.model.check_tables import StoredChecks
from tests.unit.nodeset.builders import nodeset
from tests.unit.nodeset.health.checked import own, stored

DATA = stored([own("disk")]).data
SAID = ((EventReason.CHECKS_TRIED, "a-0 tries checks first: disk"),)


class Kube:
    """An API server with at most one ConfigMap."""

    def __init__(self, there: dict[str, Any] | None = None) -> None:
        self.there = there
        self.wins = False
        """Whether somebody else is faster."""
        self.patches: list[Any] = []

    async def get(self, resource: Any, name: str, namespace: str | None = None) -> dict[str, Any]:
        if self.there is None:
            raise errors.NotFound(Target("get", str(resource), namespace, name), "not found")
        return self.there

    async def create(self, resource: Any, body: dict[str, Any]) -> dict[str, Any]:
        if self.there is not None:
            raise errors.AlreadyExists(Target("create", str(resource), None, "x"), "there")
        self.there = written(body["data"])
        return self.there

    async def merge_patch(
        self, resource: Any, name: str, patch: Any, namespace: str, *, uid: str, resource_version: str
    ) -> dict[str, Any]:
        assert (uid, resource_version) == ("cm", "1")
        if self.wins:
            raise errors.Conflict(Target("patch", str(resource), namespace, name), "changed")
        self.patches.append(patch)
        assert self.there is not None
        data = {**self.there["data"], **patch["data"]}
        self.there = written({key: text for key, text in data.items() if text is not None})
        return self.there


def written(data: Any, **more: str) -> dict[str, Any]:
    about = model.build(nodeset(), data)["metadata"]
    return {"metadata": {**about, "uid": "cm", "resourceVersion": "1", **more}, "data": dict(data)}


async def keep(kube: Kube, action: KeepChecks) -> tuple[PassOutcome, list[str]]:
    events: list[str] = []
    outcome = PassOutcome()
    context = SimpleNamespace(
        kube=kube, nodeset=nodeset(), outcome=outcome, say=lambda reason, text: events.append(f"{reason}: {text}")
    )
    await check_tables.keep(cast("PassContext", context), action)
    assert outcome.acted
    return outcome, events


async def test_what_is_not_there_is_read_as_nothing() -> None:
    outcome, _ = await keep(Kube(), KeepChecks())

    assert outcome.checks == StoredChecks()


async def test_it_is_made_and_said() -> None:
    kube = Kube()
    outcome, events = await keep(kube, KeepChecks(DATA, StoredChecks(), SAID))

    assert outcome.checks == stored([own("disk")])
    assert events == ["ChecksTried: a-0 tries checks first: disk"]


async def test_files_that_nobody_needs_are_removed() -> None:
    kube = Kube(written({**DATA, "script-old": "x"}))
    before = StoredChecks({**DATA, "script-old": "x"}, "cm", "1")

    outcome, _ = await keep(kube, KeepChecks(DATA, before))

    assert kube.patches == [{"data": {**DATA, "script-old": None}}]
    assert outcome.checks == stored([own("disk")])


@pytest.mark.parametrize("before", [StoredChecks(), StoredChecks({}, "cm", "1")])
async def test_where_somebody_was_faster_it_is_read_and_nothing_is_said(before: StoredChecks) -> None:
    kube = Kube(written(stored([own("other")]).data))
    kube.wins = True

    outcome, events = await keep(kube, KeepChecks(DATA, before, SAID))

    assert outcome.checks == stored([own("other")])
    assert events == []


async def test_one_of_somebody_else_is_told_and_left_alone() -> None:
    theirs = written(DATA)
    theirs["metadata"]["labels"] = {labels.LABEL_NODESET_UID: "another"}

    outcome, _ = await keep(Kube(theirs), KeepChecks())

    assert outcome.checks is None
    assert outcome.refusals == [f"there is a ConfigMap {model.name(nodeset())} that is not ours: no health check runs"]
