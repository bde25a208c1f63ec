"""Who may ask: as kubelets decide it. A client certificate, else a bearer token, and then the right to the Node.

The API server comes with its client certificate. Anybody else who may do it with a kubelet (`nodes/proxy`) may do it
here. Answers of the API server are kept for a while, in bounded numbers; of tokens only their hash is.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar

from slinky_operator.kube.errors import KubeError
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Creator
from slinky_operator.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from slinky_operator.virtual_nodes.kubelet.refusal import NotServed

KNOWN_S: Final = 120.0
"""Seconds for which a valid token counts."""

ALLOWED_S: Final = 300.0
REFUSED_S: Final = 30.0
"""Seconds for which a permission counts, and a refusal of a token or of a right."""

ENTRIES: Final = 1024
"""Answers that are kept, of each kind."""

AT_A_TIME: Final = 8
"""Requests to the API server."""

WAITING: Final = 64
"""Callers that may wait for one; the next ones are turned away."""

LONGEST_TOKEN: Final = 16_384
_BEARER: Final = "bearer "

Certificate = Mapping[str, Any]
"""A verified certificate, as `ssl.SSLSocket.getpeercert` shows it."""

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    Parameters
    ----------
    user, uid
        Name and uid of the user.
    groups
        Groups of the user.
    extra
        What else the API server has said of the user.
    """

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class _Answers(Generic[_Value]):
    """Answers that are kept until a time, the newest ones."""

    def __init__(self, clock: Callable[[], float], entries: int) -> None:
        self._clock, self._entries = clock, entries
        self._known: OrderedDict[object, tuple[float, _Value]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: object) -> _Value | None:
        found = self._known.get(key)
        if found is None:
            return None
        if self._clock() < found[0]:
            return found[1]
        del self._known[key]
        return None

    def put(self, key: object, value: _Value, seconds: float) -> None:
        _ = self._known.pop(key, None)
        self._known[key] = self._clock() + seconds, value
        while len(self._known) > self._entries:
            _ = self._known.popitem(last=False)


class Callers:
    """Decides who may ask.

    Parameters
    ----------
    kube
        The API server: TokenReview and SubjectAccessReview.
    clock
        Monotonic seconds.
    entries
        Answers that are kept, of each kind.
    """

    def __init__(self, kube: Creator, *, clock: Callable[[], float] = time.monotonic, entries: int = ENTRIES) -> None:
        self._kube = kube
        # Refusals are kept apart: a flood of them must not displace those who may.
        self._users: _Answers[Caller] = _Answers(clock, entries)
        self._unknown: _Answers[bool] = _Answers(clock, entries)
        self._allowed: _Answers[bool] = _Answers(clock, entries)
        self._refused: _Answers[bool] = _Answers(clock, entries)
        self._turns = asyncio.Semaphore(AT_A_TIME)
        self._waiting = 0

    async def identify(self, certificate: Certificate | None, authorization: str) -> Caller:
        """Find out who asks.

        Parameters
        ----------
        certificate
            The verified certificate of the connection; None without one.
        authorization
            The header of that name.

        Raises
        ------
        NotServed
            Nobody who is known, or the API server does not say.
        """
        if certificate:
            return _of_certificate(certificate)
        if not authorization.lower().startswith(_BEARER):
            raise NotServed(HTTPStatus.UNAUTHORIZED, "Unauthorized: show a client certificate or a bearer token")
        token = authorization[len(_BEARER) :].strip()
        digest = hashlib.sha256(token.encode()).digest()
        known = self._users.get(digest)
        if known is not None:
            return known
        if not token or len(token) > LONGEST_TOKEN or self._unknown.get(digest):
            raise NotServed(HTTPStatus.UNAUTHORIZED, "Unauthorized: the API server does not know the bearer token")
        status = await self._review(TOKEN_REVIEWS, {"token": token})
        user = status.get("user") or {}
        if not status.get("authenticated") or not user.get("username"):
            self._unknown.put(digest, value=True, seconds=REFUSED_S)
            raise NotServed(HTTPStatus.UNAUTHORIZED, "Unauthorized: the API server does not know the bearer token")
        extra = tuple((str(key), tuple(map(str, values))) for key, values in (user.get("extra") or {}).items())
        caller = Caller(str(user["username"]), tuple(user.get("groups") or ()), str(user.get("uid") or ""), extra)
        self._users.put(digest, caller, KNOWN_S)
        return caller

    async def permit(self, caller: Caller, method: str, node: str) -> None:
        """Check that a caller may use a Node; an empty name means all Nodes.

        Raises
        ------
        NotServed
            It may not, or the API server does not say.
        """
        verb = {"GET": "get", "HEAD": "get", "POST": "create"}.get(method, "update")
        key = (caller, verb, node)
        if self._allowed.get(key):
            return
        if not self._refused.get(key):
            attributes = {"verb": verb, "version": "v1", "resource": "nodes", "subresource": "proxy", "name": node}
            spec: Object = {"user": caller.user, "groups": list(caller.groups), "resourceAttributes": attributes}
            if caller.uid:
                spec["uid"] = caller.uid
            if caller.extra:
                spec["extra"] = {name: list(values) for name, values in caller.extra}
            status = await self._review(SUBJECT_ACCESS_REVIEWS, spec)
            if status.get("allowed") is True and not status.get("denied"):
                self._allowed.put(key, value=True, seconds=ALLOWED_S)
                return
            self._refused.put(key, value=True, seconds=REFUSED_S)
        where = f"Node {node}" if node else "all Nodes"
        raise NotServed(HTTPStatus.FORBIDDEN, f"Forbidden: {_shown(caller.user)} may not {verb} nodes/proxy of {where}")

    async def _review(self, resource: Any, spec: Object) -> Mapping[str, Any]:
        """Ask the API server; what is asked may contain a token, so no error repeats it."""
        if self._waiting >= WAITING:
            raise NotServed(HTTPStatus.SERVICE_UNAVAILABLE, "too many callers wait for the API server to review them")
        self._waiting += 1
        try:
            async with self._turns:
                body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
                answer = await self._kube.create(resource, body)
        except KubeError as error:
            why = f"the API server did not review the caller: {type(error).__name__} at {resource.kind}"
            raise NotServed(HTTPStatus.SERVICE_UNAVAILABLE, why) from None
        finally:
            self._waiting -= 1
        found = answer.get("status")
        return found if isinstance(found, dict) else {}


def _of_certificate(certificate: Certificate) -> Caller:
    """The user of a certificate: its common name; the groups: its organizations."""
    subject: Sequence[Sequence[tuple[str, str]]] = certificate.get("subject") or ()
    names = [value for part in subject for key, value in part if key == "commonName"]
    groups = [value for part in subject for key, value in part if key == "organizationName"]
    if not names or not names[-1]:
        raise NotServed(HTTPStatus.UNAUTHORIZED, "Unauthorized: the client certificate has no common name")
    return Caller(names[-1], (*groups, "system:authenticated"))


def _shown(user: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in user[:253])
