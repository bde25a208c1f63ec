"""Claims of daemons, made larger and deleted: what is done twice, or finds something else, does no harm."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slinky_api import labels
from slinky_operator.cluster.actions import GrowClaim
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.parts.claims import writes as claim_writes
from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.resources import PERSISTENTVOLUMECLAIMS

OURS = {"app.kubernetes.io/component": "controller"}
GROW = GrowClaim("state", "8Gi", OURS)
TARGET = Target("patch", "persistentvolumeclaims", "here", "state")


class Kube:
    """One claim of the API server's, and what was asked of it."""

    def __init__(self, size: str = "4Gi", of: dict[str, str] | None = None, **status: Any) -> None:
        about = {"name": "state", "uid": "u", "labels": {**(OURS if of is None else of), "more": "x"}}
        spec = {"resources": {"requests": {"storage": size}}}
        self.claim: dict[str, Any] | None = {
            "metadata": about,
            "spec": spec,
            "status": {"phase": "Bound", "capacity": {"storage": size}, **status},
        }
        self.calls: list[tuple[str, str]] = []
        self.refusal: errors.KubeError | None = None

    async def live(self, resource: object, name: str, namespace: str) -> dict[str, Any] | None:
        assert (resource, name, namespace) == (PERSISTENTVOLUMECLAIMS, "state", "here")
        return copy.deepcopy(self.claim)

    async def merge_patch(self, resource: object, name: str, patch: Any, namespace: str, *, uid: str) -> Any:
        self.calls.append((patch["spec"]["resources"]["requests"]["storage"], uid))
        if self.refusal is not None:
            raise self.refusal
        assert self.claim is not None
        self.claim["metadata"]["annotations"] = patch["metadata"]["annotations"]
        self.claim["spec"] = patch["spec"]
        return copy.deepcopy(self.claim)

    async def delete(self, resource: object, name: str, namespace: str, *, uid: str) -> None:
        self.calls.append(("delete", uid))
        if self.refusal is not None:
            raise self.refusal

    @property
    def context(self) -> PassContext:
        return cast("PassContext", SimpleNamespace(kube=self, live=self.live, clock=lambda: 7.0))


async def test_a_smaller_claim_is_made_larger_by_its_uid_and_once() -> None:
    kube = Kube()
    first, second = [await claim_writes.grow(GROW, "here", kube.context) for _ in range(2)]
    assert kube.calls == [("8Gi", "u")]
    assert first == second
    assert (first.wanted, first.size, first.capacity, first.at, first.why) == ("8Gi", "8Gi", "4Gi", 7.0, "")
    assert first.is_growing
    assert kube.claim is not None
    assert kube.claim["metadata"]["annotations"] == {labels.ANNOTATION_CLAIM_SIZE: "8Gi"}


@pytest.mark.parametrize("size", ["8Gi", "8192Mi", "1Ti"])
async def test_one_that_is_large_enough_stays(size: str) -> None:
    kube = Kube(size)
    done = await claim_writes.grow(GROW, "here", kube.context)
    assert kube.calls == []
    assert (done.size, done.why, done.is_growing) == (size, "", False)


async def test_one_of_somebody_else_stays() -> None:
    kube = Kube(of={})
    done = await claim_writes.grow(GROW, "here", kube.context)
    await claim_writes.delete("state", OURS, "here", kube.context)
    assert kube.calls == []
    assert "does not have the labels of this daemon" in done.why


async def test_one_that_is_being_deleted_stays() -> None:
    kube = Kube()
    assert kube.claim is not None
    kube.claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    done = await claim_writes.grow(GROW, "here", kube.context)
    assert (kube.calls, done.why) == ([], "it is being deleted")


async def test_one_that_is_gone_is_nobodys_fault() -> None:
    kube = Kube()
    kube.claim = None
    done = await claim_writes.grow(GROW, "here", kube.context)
    await claim_writes.delete("state", OURS, "here", kube.context)
    assert (kube.calls, done.why, done.size) == ([], "", "")


async def test_one_without_a_volume_does_not_grow_yet() -> None:
    kube = Kube(phase="Pending", capacity={})
    done = await claim_writes.grow(GROW, "here", kube.context)
    assert (done.size, done.capacity, done.is_growing) == ("8Gi", "", False)


async def test_a_claim_is_deleted_by_its_uid() -> None:
    kube = Kube()
    await claim_writes.delete("state", OURS, "here", kube.context)
    assert kube.calls == [("delete", "u")]


@pytest.mark.parametrize("error", [errors.Forbidden, errors.Invalid, errors.BadRequest])
async def test_what_the_api_server_says_against_it_is_kept_and_bounded(error: type[errors.KubeError]) -> None:
    kube = Kube()
    kube.refusal = error(TARGET, "no expansion " * 100)
    done = await claim_writes.grow(GROW, "here", kube.context)
    assert done.size == "4Gi"
    assert done.why.startswith("no expansion")
    assert len(done.why) <= claim_writes.LONGEST_WHY


async def test_one_that_was_replaced_meanwhile_is_tried_again() -> None:
    kube = Kube()
    kube.refusal = errors.Conflict(TARGET, "uid")
    assert (await claim_writes.grow(GROW, "here", kube.context)).why
    await claim_writes.delete("state", OURS, "here", kube.context)


@pytest.mark.parametrize(
    ("kind", "why", "said"),
    [
        ("ControllerResizeError", "the disk is full", ""),
        ("NodeResizeError", "the disk is full", ""),
        ("FileSystemResizePending", "", "the disk is full"),
        ("Other", "", ""),
    ],
)
async def test_what_the_volume_plugin_says_is_told(kind: str, why: str, said: str) -> None:
    kube = Kube("8Gi", conditions=[{"type": kind, "status": "True", "message": "the disk is full"}])
    done = await claim_writes.grow(GROW, "here", kube.context)
    assert (done.why, done.said) == (why, said)
