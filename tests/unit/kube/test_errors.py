"""Every answer becomes an error that names its object."""

from __future__ import annotations

import json

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.errors import Cause, Target, from_response, from_status

TARGET = Target("create", "pods", "hpc", "compute-0")


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.BadRequest),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.Unavailable),
        (504, "Timeout", errors.Unavailable),
    ],
)
def test_status_and_reason_give_the_class(status: int, reason: str, kind: type[errors.KubeError]) -> None:
    error = from_response(TARGET, status, json.dumps({"reason": reason, "message": "because"}).encode())
    assert type(error) is kind
    assert str(error) == f"create pods hpc/compute-0: because ({status} {reason})"
    assert (error.verb, error.resource, error.namespace, error.name) == ("create", "pods", "hpc", "compute-0")


@pytest.mark.parametrize("body", [b"", b"upstream connect error", b"[1]", b"\xff\xfe", b'{"details": null}'])
def test_text_of_a_proxy_is_no_trouble(body: bytes) -> None:
    assert isinstance(from_response(TARGET, 502, body), errors.Unavailable)


def test_causes_and_waits_are_carried() -> None:
    document = {
        "code": 422,
        "details": {
            "causes": [{"field": "spec.replicas", "reason": "FieldValueInvalid", "message": "must be positive"}],
            "retryAfterSeconds": 3,
        },
    }
    error = from_status(TARGET, document)
    assert isinstance(error, errors.Invalid)
    assert error.causes == (Cause("spec.replicas", "FieldValueInvalid", "must be positive"),)
    assert error.retry_after == 3
    assert from_status(TARGET, document, retry_after="5").retry_after == 5
    assert from_status(TARGET, {"code": 429}, retry_after="Wed, 21 Oct 2026 07:28:00 GMT").retry_after is None


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (403, "the chart's Roles have this right (rbac.create, watchNamespaces)"),
        (404, "if its CRD is missing, apply those of the chart"),
        (500, ""),
    ],
)
def test_a_list_that_is_refused_says_what_to_do(status: int, advice: str) -> None:
    error = from_status(Target("list", "nodesets"), {"message": "no"}, status=status)
    told = errors.in_a_list(error)
    assert told.startswith(str(error))
    assert (advice in told) if advice else told == str(error)


def test_what_the_api_server_quotes_has_a_bound() -> None:
    causes = [{"field": "f" * 9_000, "reason": "r" * 9_000, "message": "m" * 9_000}] * 2_000
    error = from_status(TARGET, {"code": 422, "message": "x" * 1_000_000, "details": {"causes": causes}})
    assert len(error.message) == errors.LONGEST
    assert len(str(error)) < errors.LONGEST + 200
    assert len(error.causes) == errors.MOST_CAUSES
    assert {len(part) for one in error.causes for part in (one.field, one.reason, one.message)} == {
        errors.LONGEST_CAUSE
    }
