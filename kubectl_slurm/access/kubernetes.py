"""Requests to the API server, and what its refusals mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import httpx

from kubectl_slurm.access.kinds import Kind
from kubectl_slurm.errors import KindMissing, KubernetesError, MissingRight, ObjectNotFound
from slurm_client.cli.text import safe

MOST_OBJECTS: Final = 10_000
"""Objects of a list that are read."""

PAGE: Final = 500

LARGEST_LOG: Final = 4 << 20
"""Bytes of a log that are kept."""

_USER: Final = re.compile(r'User "([^"]{1,256})" cannot')
_RIGHT: Final = re.compile(r'User "([^"]{1,256})" cannot (\w+) resource "([\w./-]+)" in API group "([\w.-]*)"')
"""How the API server refuses for want of a right: who, verb, resource and group."""
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.:]{0,251}[A-Za-z0-9])?")

Json = Mapping[str, Any]


class Kubernetes:
    """The API server, in one namespace.

    Parameters
    ----------
    transport
        What sends requests: to the socket of ``kubectl proxy``.
    namespace
        Of all objects.
    context
        Of the kubeconfig, if the user has named one: advice repeats it.
    """

    def __init__(self, transport: httpx.BaseTransport, namespace: str, context: str = "") -> None:
        self.namespace, self.context = namespace, context
        self._http = httpx.Client(
            transport=transport, base_url="http://localhost", timeout=httpx.Timeout(60.0), trust_env=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, kind: Kind, name: str) -> Json:
        """One object; ObjectNotFound if there is none."""
        return self._json("get", kind, name)

    def objects(self, kind: Kind, *, selector: str = "", most: int = MOST_OBJECTS) -> list[Json]:
        """Objects of a kind in the namespace, at most so many."""
        found: list[Json] = []
        going_on = ""
        while True:
            query = {"limit": str(min(PAGE, most)), "labelSelector": selector, "continue": going_on}
            answer = self._json("list", kind, query={name: value for name, value in query.items() if value})
            found += answer.get("items") or ()
            going_on = (answer.get("metadata") or {}).get("continue") or ""
            if not going_on or len(found) >= most:
                return found[:most]

    def create(self, kind: Kind, body: Json) -> Json:
        """Create an object, and return it."""
        full = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        return self._json("create", kind, body=full)

    def delete(self, kind: Kind, name: str) -> None:
        """Delete an object; nothing if there is none."""
        try:
            self._json("delete", kind, name)
        except ObjectNotFound:
            return

    def log(self, pod: str, container: str, *, lines: int) -> list[str]:
        """The last lines of a container's log, and of these the newest `LARGEST_LOG` bytes."""
        # limitBytes of the API would count from the oldest of these lines.
        query = {"container": container, "tailLines": str(lines)}
        path = f"{Kind('Pod', 'pods').path(self.namespace, _name(pod))}/log"
        kept = b""
        is_cut = False
        try:
            with self._http.stream("GET", path, params=query) as response:
                if response.is_error:
                    response.read()
                    raise self._refusal(response, "get", "pods/log", pod)
                for part in response.iter_bytes():
                    kept += part
                    if len(kept) > 2 * LARGEST_LOG:
                        kept, is_cut = kept[-LARGEST_LOG:], True
        except httpx.HTTPError as error:
            raise _silence(error) from error
        if len(kept) > LARGEST_LOG:
            kept, is_cut = kept[-LARGEST_LOG:], True
        found = kept.decode(errors="replace").splitlines()
        # The first line lacks its beginning.
        return found[1:] if is_cut else found

    def may(self, verb: str, resource: str) -> bool:
        """Whether the user may do something in the namespace, e.g. ``get`` ``services/proxy``."""
        plural, _, subresource = resource.partition("/")
        attributes = {"namespace": self.namespace, "verb": verb, "resource": plural, "subresource": subresource}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        response = self._send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=review)
        # A user who may not ask gets the refusal of the request itself.
        return response.is_error or bool((response.json().get("status") or {}).get("allowed"))

    def missing_right(self, said: str) -> MissingRight | None:
        """The right that was missing, if a refusal is for want of one; e.g. as kubectl passes it on."""
        found = _RIGHT.search(said)
        if found is None:
            return None
        user, verb, resource, group = found.groups()
        whole = f"{resource}.{group}" if group else resource
        return MissingRight(verb, whole, self.namespace, user, context=self.context)

    def trouble_of_service(self, path: str) -> str:
        """Why the API server's proxy does not reach a Service; empty if it does."""
        response = self._send("GET", path)
        try:
            body = response.json()
        except ValueError:
            return ""
        is_own = isinstance(body, dict) and body.get("kind") == "Status" and response.is_error
        return _message(response) if is_own else ""

    def user(self) -> str:
        """The user as the API server knows them; empty if it does not say."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        response = self._send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=review)
        if response.is_error:
            return ""
        return str(((response.json().get("status") or {}).get("userInfo") or {}).get("username") or "")

    def _json(self, verb: str, kind: Kind, name: str = "", *, query: Json | None = None, body: Any = None) -> Json:
        method = {"get": "GET", "list": "GET", "create": "POST", "delete": "DELETE"}[verb]
        path = kind.path(self.namespace, _name(name) if name else "")
        response = self._send(method, path, query=query, body=body)
        if response.is_error:
            raise self._refusal(response, verb, kind.resource, name, kind)
        answer: Json = response.json()
        return answer

    def _send(self, method: str, path: str, *, query: Json | None = None, body: Any = None) -> httpx.Response:
        try:
            return self._http.request(method, path, params=dict(query or {}), json=body)
        except httpx.HTTPError as error:
            raise _silence(error) from error

    def _refusal(
        self, response: httpx.Response, verb: str, resource: str, name: str, kind: Kind | None = None
    ) -> KubernetesError:
        message = _message(response)
        who = _USER.search(message)
        if response.status_code == httpx.codes.FORBIDDEN and (who or kind is None or verb != "create"):
            role = kind.reader if kind is not None and verb in {"get", "list"} else "edit"
            if kind is None:
                role = "view"
            user = who[1] if who else ""
            return MissingRight(verb, resource, self.namespace, user, role=role, context=self.context)
        if response.status_code == httpx.codes.NOT_FOUND:
            if not name or "could not find the requested resource" in message:
                return KindMissing(resource)
            return ObjectNotFound(f"there is no {resource} {name!r} in namespace {self.namespace!r}")
        return KubernetesError(f"the API server refused to {verb} {resource}: {message}")


def _silence(error: httpx.HTTPError) -> KubernetesError:
    return KubernetesError(f"the API server did not answer: {type(error).__name__} {error}"[:500])


def _message(response: httpx.Response) -> str:
    try:
        said = response.json().get("message")
    except (ValueError, AttributeError):
        said = response.text
    return safe(" ".join(str(said or response.reason_phrase)[:1000].split()))


def _name(name: str) -> str:
    """A name of an object; it becomes part of a path."""
    if _NAME.fullmatch(name) is None:
        raise ObjectNotFound(f"{safe(name)!r:.80} is no name of an object")
    return name
