"""A failed pass over a NodeSet ends in a condition and an Event, and the next successful one clears it."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.kube.resources import EVENTS
from slinky_operator.nodeset import controller
from tests.integration.nodeset.conftest import Site
from tests.integration.nodeset.machines import Machines
from tests.support.admission import refused

WORDS = "pods are not to be deleted today"


async def degraded(site: Site, reason: str, words: str) -> bool:
    found = await site.condition("Degraded")
    return found.get("status") == "True" and found["reason"] == reason and words in found["message"]


async def warned(site: Site, reason: str, words: str) -> bool:
    events = (await site.kube.list(EVENTS, site.namespace)).items
    return any(one["reason"] == reason and words in one["message"] and one["type"] == "Warning" for one in events)


def refusals(site: Site) -> int:
    return sum(1 for verb, resource, _ in site.requests if (verb, resource) == ("delete", "pods"))


async def test_a_refused_deletion_is_told_where_the_user_looks(site: Site, machines: Machines) -> None:
    await site.apply(2)
    await site.until(lambda: site.ready(2), "both are ready")
    async with refused(site.kube, site.namespace, "DELETE", "pods", WORDS):
        await site.scale(1)
        await site.until(lambda: degraded(site, "Forbidden", WORDS), "the NodeSet says what is refused")
        assert "delete pods" in (await site.condition("Degraded"))["message"]
        ready = await site.condition("Ready")
        assert (ready["status"], ready["reason"]) == ("False", "Forbidden")
        assert WORDS in ready["message"]
        assert "is drained" in (await site.condition("Draining"))["message"]
        await site.until(lambda: warned(site, "Forbidden", WORDS), "and so does an Event")
        # It is tried again and again, and nothing is written for that once all has been said.
        for _ in range(5):
            before, tried = (await site.nodeset())["metadata"]["resourceVersion"], refusals(site)
            await site.until(lambda tried=tried: refusals(site) > tried + 1, "it is tried again")  # type: ignore[misc]
            if (await site.nodeset())["metadata"]["resourceVersion"] == before:
                break
        else:
            pytest.fail("the status is written with each try")
        assert await degraded(site, "Forbidden", WORDS)
    await site.until(lambda: site.ready(1), "what is allowed again happens")
    await site.until(lambda: healthy(site), "and nothing is reported any more")


async def healthy(site: Site) -> bool:
    return bool((await site.condition("Degraded"))["status"] == "False")


async def test_a_mistake_of_the_operators_is_told_too(
    site: Site, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.apply(1)
    await site.until(lambda: site.ready(1), "it is ready")

    def broken(*_: Any) -> None:
        raise KeyError("what only the log may say")

    with monkeypatch.context() as patched:
        patched.setattr(controller, "plan", broken)
        await site.scale(2)
        await site.until(lambda: degraded(site, "InternalError", "KeyError in the operator"), "it says so")
        found = await site.condition("Degraded")
        assert f"NodeSet {site.namespace}/a: trying again" in found["message"]
        assert "only the log" not in found["message"]
        await site.until(lambda: warned(site, "InternalError", "KeyError"), "and so does an Event")
    await site.until(lambda: site.ready(2), "once it is mended, it goes on")
    await site.until(lambda: healthy(site), "and nothing is reported any more")
