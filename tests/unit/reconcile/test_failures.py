"""What an object shows of a failed pass, and what it does not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.errors import InvalidObjectError, Problem, SpecError
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODESETS, Resource
from slinky_operator.reconcile.failures import LONGEST, MOST, PATIENCE, REWRITE, Failure, Failures, explained, patch_of
from slurm_client import errors as slurm_errors

WALL = datetime(2026, 1, 1, tzinfo=UTC)
WHERE = "NodeSet here/a"
DELETE = errors.Target("delete", "pods", "here", "a-0")
WORDS = 'pods "a-0" is forbidden: User "operator" cannot delete resource "pods" in the namespace "here"'
FORBIDDEN = errors.Forbidden(DELETE, WORDS, status=403, reason="Forbidden")
CONFLICT = errors.Conflict(DELETE, "the object has been modified", status=409)
AWAY = errors.Unavailable(DELETE, "no answer")
FENCED = errors.Fenced(DELETE, "the lease has run out")


class Api:
    """Takes status patches and Events."""

    def __init__(self) -> None:
        self.patches: list[dict[str, Any]] = []
        self.events: list[tuple[str, str]] = []
        self.seconds = 0.0
        self.refuses: Exception | None = None

    async def patch_status(
        self,
        resource: Resource,
        name: str,
        status: Object,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Object:
        if self.refuses is not None:
            raise self.refuses
        assert (name, namespace, uid, resource_version) == ("a", "here", "u", None)
        self.patches.append(json.loads(json.dumps(status)))
        return {}

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.events.append((reason, message))


def an_object(**status: Any) -> dict[str, Any]:
    metadata = {
        "name": "a",
        "namespace": "here",
        "uid": "u",
        "generation": 3,
        "finalizers": [labels.FINALIZER_NODESET_DRAIN],
    }
    return {"kind": "NodeSet", "metadata": metadata, "spec": {}, "status": status}


def failures(api: Api, resource: Resource = NODESETS) -> Failures:
    return Failures(resource, api, api, clock=lambda: api.seconds, now=lambda: WALL)


def conditions(patch: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in patch["conditions"]}


@pytest.mark.parametrize(
    ("error", "reason", "text"),
    [
        (FORBIDDEN, "Forbidden", f"delete pods here/a-0: {WORDS}. If the operator lacks rights"),
        (errors.Invalid(DELETE, "spec.x: no"), "RequestRefused", "delete pods here/a-0: spec.x: no. The API server"),
        (errors.BadRequest(DELETE, "what?"), "RequestRefused", "what?"),
        (errors.NotFound(DELETE, "no such namespace"), "RequestRefused", "no such namespace"),
        (SpecError("spec.server: not a URL"), "InvalidSpec", "spec.server: not a URL"),
        (InvalidObjectError("NodeSet", "here", "a", (Problem("spec.x", "no"),)), "InvalidSpec", "spec.x: no"),
        (ExceptionGroup("", [CONFLICT, FORBIDDEN]), "Forbidden", WORDS),
        (ExceptionGroup("", [KeyError("x"), ExceptionGroup("", [FORBIDDEN])]), "Forbidden", "KeyError"),
        (TimeoutError(), "ReconcileError", "timed out and was cancelled"),
        (RecursionError("x"), "InternalError", "RecursionError in the operator"),
    ],
)
async def test_an_error_is_told_with_its_reason_its_words_and_what_to_do(
    error: Exception, reason: str, text: str
) -> None:
    api = Api()
    await failures(api).tell(an_object(), error)
    (patch,) = api.patches
    assert conditions(patch) == {"Ready": ("False", reason), "Degraded": ("True", reason)}
    assert all(text in one["message"] for one in patch["conditions"])
    assert api.events == [(reason, patch["conditions"][0]["message"])]
    assert patch["observedGeneration"] == 3


@pytest.mark.parametrize("error", [CONFLICT, AWAY, slurm_errors.Unreachable("away"), slurm_errors.ClientClosed("shut")])
async def test_what_goes_by_itself_is_told_only_when_it_lasts(error: Exception) -> None:
    api = Api()
    told = failures(api)
    await told.tell(an_object(), error)
    api.seconds = PATIENCE - 1
    await told.tell(an_object(), error)
    assert (api.patches, api.events) == ([], [])
    api.seconds = PATIENCE
    await told.tell(an_object(), error)
    assert len(api.patches) == len(api.events) == 1
    # After a pass that went well it counts from the beginning.
    told.passed("u")
    await told.tell(an_object(), error)
    assert len(api.patches) == 1


async def test_a_fenced_write_is_never_told() -> None:
    api = Api()
    told = failures(api)
    for _ in range(3):
        await told.tell(an_object(), FENCED)
        api.seconds += PATIENCE
    assert (api.patches, api.events) == ([], [])


async def test_a_failure_that_repeats_is_written_once() -> None:
    api = Api()
    told = failures(api)
    for _ in range(5):
        # The cache need not have seen the write yet.
        await told.tell(an_object(), FORBIDDEN)
        api.seconds += 100
    assert len(api.patches) == 1
    # Nor is it after a restart, when only the status tells.
    await failures(api).tell(an_object(**api.patches[0]), FORBIDDEN)
    assert len(api.patches) == 1


async def test_words_that_change_with_each_try_are_written_seldom() -> None:
    api = Api()
    told = failures(api)
    for number in range(100):
        await told.tell(an_object(), errors.Forbidden(DELETE, f"used: {number}"))
        api.seconds += 1
    assert len(api.patches) == pytest.approx(100 / REWRITE, abs=1)


async def test_what_is_shown_stays_until_a_pass_has_ended_well() -> None:
    api = Api()
    told = failures(api)
    await told.tell(an_object(), FORBIDDEN)
    await told.tell(an_object(), CONFLICT)
    assert (shown := told.note(an_object(), CONFLICT)) is not None
    assert shown.reason == "Forbidden"
    assert len(api.events) == len(api.patches) == 1
    told.passed("u")
    assert told.note(an_object(), CONFLICT) is None


async def test_what_a_pass_shows_by_itself_is_not_written_again() -> None:
    api = Api()
    told = failures(api)
    for _ in range(3):
        error = ExceptionGroup("", [FORBIDDEN])
        assert told.note(an_object(), error) is not None
        await told.tell(an_object(), error)
    assert api.patches == []
    # What keeps the status of that pass from being written is another failure.
    assert told.note(an_object(), ExceptionGroup("", [FORBIDDEN])) is not None
    api.seconds += REWRITE
    await told.tell(an_object(), errors.Invalid(DELETE, "status: too long"))
    assert conditions(api.patches[0])["Degraded"] == ("True", "RequestRefused")


def test_what_the_status_says_anyway_is_not_told_twice() -> None:
    api = Api()
    told = failures(api)
    assert told.note(an_object(), ExceptionGroup("", [FORBIDDEN]), [f"pod a-0: {WORDS}"]) is None
    assert api.events == []
    assert told.note(an_object(), ExceptionGroup("", [FORBIDDEN, KeyError()]), [f"pod a-0: {WORDS}"]) is not None


async def test_the_other_conditions_and_the_times_of_these_stay() -> None:
    api = Api()
    since = "2025-01-01T00:00:00Z"
    before = [
        {"type": kind, "status": status, "reason": "AsExpected", "message": "", "lastTransitionTime": since}
        for kind, status in (("Ready", "True"), ("Degraded", "True"), ("Draining", "True"))
    ]
    await failures(api).tell(an_object(conditions=before), FORBIDDEN)
    found = {one["type"]: one for one in api.patches[0]["conditions"]}
    assert found["Draining"] == before[2]
    assert found["Degraded"]["lastTransitionTime"] == since
    assert found["Ready"]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


async def test_a_cluster_is_not_ready_either() -> None:
    api = Api()
    await failures(api, CLUSTERS).tell({**an_object(isReady=True), "kind": "Cluster"}, FORBIDDEN)
    (patch,) = api.patches
    assert patch["isReady"] is False
    assert {one["observedGeneration"] for one in patch["conditions"]} == {3}


async def test_of_another_operators_nodeset_the_generation_stays() -> None:
    api = Api()
    obj = an_object(observedGeneration=1)
    obj["metadata"]["finalizers"] = []
    await failures(api).tell(obj, FORBIDDEN)
    assert "observedGeneration" not in api.patches[0]


async def test_what_cannot_be_written_is_tried_again() -> None:
    api = Api()
    told = failures(api)
    api.refuses = AWAY
    with pytest.raises(errors.Unavailable):
        await told.tell(an_object(), FORBIDDEN)
    api.refuses = None
    await told.tell(an_object(), FORBIDDEN)
    assert len(api.patches) == 1


async def test_nobody_is_told_of_what_has_gone() -> None:
    api = Api()
    api.refuses = errors.NotFound(DELETE, "gone")
    await failures(api).tell(an_object(), FORBIDDEN)
    assert api.patches == []


async def test_a_stored_status_that_makes_no_sense_is_no_obstacle() -> None:
    api = Api()
    await failures(api).tell(an_object(conditions=[{"type": 7}]), FORBIDDEN)
    assert set(conditions(api.patches[0])) == {"Ready", "Degraded"}


def test_a_kind_of_its_own_is_taken_for_neither_a_cluster_nor_a_nodeset() -> None:
    kind = Resource("slinky.slurm.net", "v1alpha1", "tokens", "Token")
    obj = {"metadata": {"name": "t", "generation": 3}}

    patch = patch_of(kind, obj, Failure(Reason.FORBIDDEN, "not allowed"), datetime(2026, 1, 1, tzinfo=UTC))

    assert patch.keys() == {"conditions", "summary", "observedGeneration"}
    assert (patch["summary"], patch["observedGeneration"]) == ("not allowed", 3)


def test_no_secret_is_told() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJyb290In0.c2lnbmF0dXJl"
    secret = errors.Target("create", "secrets", "here", "key")
    for error in (
        errors.Invalid(secret, f"data: {token} hunter2", reason="Invalid"),
        errors.BadRequest(secret, "illegal base64: hunter2"),
        KeyError("hunter2"),
        slurm_errors.ServerError(f"bad token {token}"),
        errors.Forbidden(DELETE, f"webhook got {token}"),
    ):
        failure = explained(error, WHERE, late=True)
        assert failure is not None
        assert token not in failure.message
        assert "hunter2" not in failure.message


def test_of_many_failures_some_are_told_and_the_others_counted() -> None:
    many = [errors.Forbidden(DELETE, f"{number:03} {'x' * 3 * LONGEST}") for number in range(300)]
    failure = explained(ExceptionGroup("", many), WHERE)
    assert failure is not None
    assert len(failure.message) < MOST * (LONGEST + 2) + 300
    assert "; and 297 more. " in failure.message


def errors_of_any_kind() -> st.SearchStrategy[BaseException]:
    words = st.one_of(st.text(max_size=20), st.just("x" * 3 * LONGEST))
    kinds = (errors.Forbidden, errors.Invalid, errors.Conflict, errors.NotFound, errors.Unavailable, errors.Fenced)
    leaves = st.one_of(
        st.builds(lambda kind, text: kind(DELETE, text), st.sampled_from(kinds), words),
        st.builds(slurm_errors.ServerError, words),
        st.builds(SpecError, words),
        st.builds(ValueError, words),
        st.sampled_from([TimeoutError(), KeyError(), MemoryError(), RecursionError()]),
    )
    return st.recursive(leaves, lambda some: st.builds(ExceptionGroup, words, st.lists(some, min_size=1, max_size=6)))


@settings(deadline=None)
@given(errors_of_any_kind(), st.booleans())
def test_whatever_fails_the_text_is_bounded_and_the_same_each_time(error: BaseException, late: bool) -> None:
    failure = explained(error, WHERE, late=late)
    assert failure == explained(error, WHERE, late=late)
    if failure is not None:
        assert 0 < len(failure.message) < MOST * (LONGEST + 2) + 300
        assert failure.reason
