"""Read objects over connections to the API server that are kept.

A poll that starts kubectl costs a tenth of a second of a processor, one over a kept connection some milliseconds: tests
poll thousands of times. Only what `kubectl get KIND [NAME]` answers is read here, by the arguments that kubectl takes;
everything else, writes included, is left to kubectl itself (`hack.localkube.kubectl`).
"""

from __future__ import annotations

import atexit
import base64
import json
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

TIMEOUT = 60.0
"""Seconds for one answer."""

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ReadFailed(Exception):
    """The API server refused, or did not answer; the text has its words as kubectl would print them."""


class _KindGone(ReadFailed):
    """The kind has no path any more where it was found."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked for: objects of some kinds, or one by its name.

    Attributes
    ----------
    kinds
        As kubectl takes them: plural, singular or short, with or without the group.
    name
        Of the one object; empty for a list.
    namespace
        Where to look for kinds that have namespaces; empty for all namespaces.
    label_selector, field_selector
        As the API server takes them.
    """

    kinds: tuple[str, ...]
    name: str = ""
    namespace: str = "default"
    label_selector: str = ""
    field_selector: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """Where the API server has the objects of a kind."""

    root: str
    plural: str
    is_namespaced: bool


def query(arguments: Sequence[str]) -> Query | None:
    """Return what arguments of ``kubectl get`` ask for; nothing if they say more than is understood here."""
    found, words = Query(()), []
    rest = iter(arguments)
    for argument in rest:
        option, has_value, value = argument.partition("=")
        if not argument.startswith("-"):
            words.append(argument)
        elif argument == "--all-namespaces":
            found = replace(found, namespace="")
        elif option in {"--namespace", "-n"}:
            found = replace(found, namespace=value if has_value else next(rest, ""))
        elif option == "--selector" and has_value:
            found = replace(found, label_selector=value)
        elif option == "--field-selector" and has_value:
            found = replace(found, field_selector=value)
        else:
            return None
    kinds = tuple(words[0].split(",")) if words else ()
    names = words[1:]
    if not kinds or "/" in words[0] or len(names) > 1 or (names and len(kinds) > 1):
        return None
    return replace(found, kinds=kinds, name=names[0] if names else "")


class Objects:
    """The objects of one Kubernetes, read with the rights of a kubeconfig; may be used by many threads."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        address = urlsplit(cluster["server"])
        self._host, self._port = str(address.hostname), address.port
        self._context = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
        with tempfile.TemporaryDirectory() as folder:
            pair = Path(folder) / "pair.pem"
            pair.touch(mode=0o600)
            pair.write_text(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
            self._context.load_cert_chain(pair)
        self._idle: list[HTTPSConnection] = []
        self._resources: dict[str, Resource] = {}
        atexit.register(self.close)

    def close(self) -> None:
        """Close the connections that nobody uses at the moment."""
        while self._idle:
            self._idle.pop().close()

    def get(self, asked: Query) -> dict[str, Any]:
        """Return an object, or a list of objects as kubectl prints one.

        Raises
        ------
        ReadFailed
            There is no such object or kind, or no answer.
        """
        try:
            return self._get(asked)
        except _KindGone:
            # Its CRD has gone, or has another version now.
            self._resources = {}
            return self._get(asked)

    def _get(self, asked: Query) -> dict[str, Any]:
        if asked.name:
            return _shown(self._read(self._path(asked, asked.kinds[0])))
        items = [item for kind in asked.kinds for item in self._items(asked, kind)]
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def _items(self, asked: Query, kind: str) -> Iterator[dict[str, Any]]:
        listed = self._read(self._path(asked, kind))
        # The API server says once what all of them are.
        about = {"apiVersion": listed["apiVersion"], "kind": listed["kind"].removesuffix("List")}
        for item in listed.get("items") or ():
            yield {**about, **_shown(item)}

    def _path(self, asked: Query, kind: str) -> str:
        resource = self._resource(kind)
        where = f"/namespaces/{asked.namespace}" if resource.is_namespaced and asked.namespace else ""
        path = f"{resource.root}{where}/{resource.plural}"
        selectors = {"labelSelector": asked.label_selector, "fieldSelector": asked.field_selector}
        chosen = {name: value for name, value in selectors.items() if value}
        return path + (f"/{quote(asked.name)}" if asked.name else "") + (f"?{urlencode(chosen)}" if chosen else "")

    def _resource(self, kind: str) -> Resource:
        if kind not in self._resources:
            # It may have come with a CRD since.
            self._resources = dict(self._discover())
        if kind not in self._resources:
            raise ReadFailed(f'error: the server doesn\'t have a resource type "{kind}"')
        return self._resources[kind]

    def _discover(self) -> Iterator[tuple[str, Resource]]:
        """All resources by all their names; the last of a name is the one that kubectl would take."""
        groups = [group for root in ("/apis", "/api") for group in reversed(self._read(root, DISCOVERY)["items"])]
        for group in groups:
            name = group["metadata"].get("name", "")
            # Of a resource that several versions have, kubectl would take the first; not every version has all.
            for version in reversed(group.get("versions") or ()):
                yield from _resources(name, version)

    def _read(self, path: str, accept: str = "application/json") -> dict[str, Any]:
        try:
            status, body = self._ask(path, accept)
        except (OSError, HTTPException) as error:
            raise ReadFailed(f"Unable to connect to the server: {error!r}") from error
        try:
            answer: dict[str, Any] = json.loads(body)
        except ValueError as error:
            text = f"Error from server ({status}): {body[:200].decode(errors='replace').strip()}"
            # What the API server has no path for is answered in plain text.
            raise (_KindGone if status == HTTPStatus.NOT_FOUND else ReadFailed)(text) from error
        if status != HTTPStatus.OK:
            raise ReadFailed(f"Error from server ({answer.get('reason', status)}): {answer.get('message', '')}")
        return answer

    def _ask(self, path: str, accept: str) -> tuple[int, bytes]:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            try:
                return self._exchange(connection, path, accept)
            except (OSError, HTTPException):
                # It was kept, and the API server may have ended it since; a new one will tell.
                continue
        return self._exchange(
            HTTPSConnection(self._host, self._port, timeout=TIMEOUT, context=self._context), path, accept
        )

    def _exchange(self, connection: HTTPSConnection, path: str, accept: str) -> tuple[int, bytes]:
        try:
            connection.request("GET", path, headers={"Accept": accept})
            answer = connection.getresponse()
            body = answer.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer.status, body


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()


def _shown(item: dict[str, Any]) -> dict[str, Any]:
    """Leave out what kubectl leaves out."""
    item["metadata"].pop("managedFields", None)
    return item


def _resources(group: str, version: dict[str, Any]) -> Iterator[tuple[str, Resource]]:
    """The resources of a group in one version, by all names that they have."""
    root = f"/apis/{group}/{version['version']}" if group else f"/api/{version['version']}"
    for one in version.get("resources") or ():
        resource = Resource(root, one["resource"], one["scope"] == "Namespaced")
        for name in filter(None, (one["resource"], one.get("singularResource"), *one.get("shortNames", ()))):
            yield f"{name}.{group}", resource
            yield name, resource


def opened(kubeconfig: Path) -> Objects:
    """Return the objects of the Kubernetes that a kubeconfig leads to, with the connections that are there already."""
    written_at = kubeconfig.stat().st_mtime_ns
    if kubeconfig not in _opened or _opened[kubeconfig][0] != written_at:
        _opened[kubeconfig] = written_at, Objects(kubeconfig)
    return _opened[kubeconfig][1]


_opened: dict[Path, tuple[int, Objects]] = {}
"""By the kubeconfig, with the time at which it was written: that of a cluster of the same name is another one."""
