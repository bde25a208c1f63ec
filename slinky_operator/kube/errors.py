"""What a call to the Kubernetes API can raise.

::

    KubeError
    ├── Fenced              not sent: this process may no longer be the leader
    ├── BadRequest          400 and other 4xx without a class of their own
    ├── Unauthorized        401
    ├── Forbidden           403
    ├── NotFound            404
    ├── Conflict            409: somebody else wrote first, or a precondition failed
    │   └── AlreadyExists   409 on create
    ├── Gone                410: a resourceVersion or continue token is too old
    ├── TooLong             the answer is longer than the caller can take
    ├── Invalid             422: the API server refuses the object; carries the fields
    ├── TooManyRequests     429: carries the wait the server asks for
    └── Unavailable         5xx, no connection, connection lost, timeout

Every error carries the object it concerns. The controller loop reads the attributes `expected` and `retry_after`: the
type decides what happens next, and handlers need no `except` for it.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar, Final

from typing_extensions import override

LONGEST: Final = 2_000
"""Characters of what the API server says that are kept: it quotes what users have written."""

LONGEST_CAUSE: Final = 500
"""Characters of each part of a cause."""

MOST_CAUSES: Final = 100
"""Causes that are kept."""


@dataclass(frozen=True, slots=True)
class Target:
    """The object a call was about; for messages only."""

    verb: str
    resource: str
    namespace: str | None = None
    name: str | None = None

    @override
    def __str__(self) -> str:
        where = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.verb} {self.resource}{' ' + where if where else ''}"


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why the API server refused an object."""

    field: str
    """Path of the field, such as `spec.template.spec.containers[0].image`; may be empty."""

    reason: str
    """Such as `FieldValueInvalid` or `FieldManagerConflict`."""

    message: str


class KubeError(Exception):
    """A call to the Kubernetes API failed."""

    expected: ClassVar[bool] = False
    """Whether this happens in healthy operation and needs no stack trace in the log."""

    def __init__(
        self,
        target: Target,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        retry_after: float | None = None,
        causes: tuple[Cause, ...] = (),
    ) -> None:
        super().__init__(f"{target}: {message}" + (f" ({status} {reason})".replace(" )", ")") if status else ""))
        self.target = target
        self.message = message
        self.status = status
        """HTTP status; 0 if there was no answer."""
        self.reason = reason
        """The API's own word, such as `AlreadyExists`."""
        self.retry_after = retry_after
        """Seconds to wait before the next attempt, if the server or the type says so."""
        self.causes = causes

    @property
    def verb(self) -> str:
        """API verb in lower case, such as `create`."""
        return self.target.verb

    @property
    def resource(self) -> str:
        """Plural and group, such as `statefulsets.apps`."""
        return self.target.resource

    @property
    def namespace(self) -> str | None:
        """Namespace of the object, if it has one."""
        return self.target.namespace

    @property
    def name(self) -> str | None:
        """Name of the object; `None` for calls on collections."""
        return self.target.name


class Fenced(KubeError):
    """A write was held back because leadership may have been lost; nothing was sent."""

    expected = True


class BadRequest(KubeError):
    """The API server does not understand the request."""


class Unauthorized(KubeError):
    """The API server does not know who we are, even with fresh credentials."""


class Forbidden(KubeError):
    """Access rights, a quota or an admission rule forbid the call."""


class NotFound(KubeError):
    """The object, its namespace or its kind does not exist."""


class Conflict(KubeError):
    """Somebody else wrote first, or a uid or resourceVersion precondition does not hold."""

    expected = True


class AlreadyExists(Conflict):
    """An object of this name exists."""


class Gone(KubeError):
    """A resourceVersion or continue token is too old: list again."""

    expected = True


class TooLong(KubeError):
    """The answer is longer than the caller can take: ask for less."""


class Invalid(KubeError):
    """The API server refuses the object; `causes` name the fields."""


class TooManyRequests(KubeError):
    """The API server asks to come back later; `retry_after` says when."""

    expected = True


class Unavailable(KubeError):
    """The API server cannot be reached, did not answer, or failed.

    `maybe_done` says whether the request may still have taken effect.
    """

    expected = True

    def __init__(self, target: Target, message: str, *, maybe_done: bool = True, **details: Any) -> None:
        super().__init__(target, message, **details)
        self.maybe_done = maybe_done


def level_of(error: BaseException) -> int:
    """The level at which to log an error that is waited out: `Connection` logs that the API server does not answer."""
    return logging.DEBUG if isinstance(error, Unavailable) and not error.status else logging.WARNING


def in_a_list(error: KubeError) -> str:
    """An error of a list that is waited out, for the log, with what an administrator can do about it."""
    if isinstance(error, Forbidden):
        return f"{error}; the chart's Roles have this right (rbac.create, watchNamespaces): it is waited for"
    if isinstance(error, NotFound):
        return f"{error}; if its CRD is missing, apply those of the chart: it is waited for"
    return str(error)


_BY_STATUS: dict[int, type[KubeError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def from_response(target: Target, status: int, body: bytes, retry_after: str | None = None) -> KubeError:
    """Make the error for an HTTP answer that is none of 2xx.

    Parameters
    ----------
    target
        What the call was about.
    status
        HTTP status.
    body
        Answer as it came: a `Status` object, or any text of a proxy in between.
    retry_after
        The header of that name.
    """
    try:
        decoded = json.loads(body)
    except ValueError:
        decoded = None
    document: dict[str, Any] = decoded if isinstance(decoded, dict) else {}
    if not document:
        document = {"message": body[:300].decode("utf-8", "replace").strip()}
    return from_status(target, document, status=status, retry_after=retry_after)


def from_status(
    target: Target, document: dict[str, Any], *, status: int | None = None, retry_after: str | None = None
) -> KubeError:
    """Make the error for a `Status` object, from an answer or from within a watch."""
    code = status if status is not None else int(document.get("code") or 500)
    reason = str(document.get("reason") or "")
    details = document.get("details") or {}
    causes = tuple(
        Cause(*(str(c.get(key) or "")[:LONGEST_CAUSE] for key in ("field", "reason", "message")))
        for c in (details.get("causes") or ())[:MOST_CAUSES]
    )
    message = str(document.get("message") or "no further word from the server")[:LONGEST]
    wait = _seconds(retry_after)
    if wait is None:
        wait = _seconds(details.get("retryAfterSeconds"))
    cls: type[KubeError]
    if code == HTTPStatus.CONFLICT and reason == "AlreadyExists":
        cls = AlreadyExists
    elif code == HTTPStatus.UNPROCESSABLE_ENTITY and any(cause.field == "metadata.uid" for cause in causes):
        # A patch that names the uid of a predecessor: the API server takes it for an attempt to change the uid.
        cls = Conflict
    elif code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # A 5xx may come from a proxy that lost its backend after the backend had written.
        return Unavailable(target, message, status=code, reason=reason, retry_after=wait, causes=causes)
    else:
        cls = _BY_STATUS.get(code, BadRequest)
    return cls(target, message, status=code, reason=reason, retry_after=wait, causes=causes)


def _seconds(value: object) -> float | None:
    """Seconds of a Retry-After; the date form, which Kubernetes does not use, counts as absent."""
    if value in (None, "", 0):
        return None
    try:
        return max(0.0, float(str(value)))
    except ValueError:
        return None
