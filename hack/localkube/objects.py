"""Read objects over connections to the API server that are kept.

A poll that starts kubectl costs a tenth of a second of a processor, one over a kept connection some milliseconds: tests
poll thousands of times. Only what `kubectl get KIND [NAME]` answers is read here, by the arguments that kubectl takes;
`commands` writes by the same means.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from hack.localkube.api_server import ApiServer, Refused

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class UnknownKind(Refused):
    """The API server has no such kind; the word may still be a category, such as ``all``, which kubectl knows."""


class _KindGone(Refused):
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

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self._resources: dict[str, Resource] = {}

    def get(self, asked: Query) -> dict[str, Any]:
        """Return an object, or a list of objects as kubectl prints one.

        Raises
        ------
        Refused
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
        resource = self.resource(kind)
        where = f"/namespaces/{asked.namespace}" if resource.is_namespaced and asked.namespace else ""
        path = f"{resource.root}{where}/{resource.plural}"
        selectors = {"labelSelector": asked.label_selector, "fieldSelector": asked.field_selector}
        chosen = {name: value for name, value in selectors.items() if value}
        return path + (f"/{quote(asked.name)}" if asked.name else "") + (f"?{urlencode(chosen)}" if chosen else "")

    def resource(self, kind: str) -> Resource:
        """Return where the objects of a kind are, by any name that kubectl takes.

        Raises
        ------
        Refused
            There is no such kind, or no answer.
        """
        if kind not in self._resources:
            # It may have come with a CRD since.
            self._resources = dict(self._discover())
        if kind not in self._resources:
            raise UnknownKind(f'error: the server doesn\'t have a resource type "{kind}"')
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
        status, body = self.server.read(path, accept)
        try:
            answer: dict[str, Any] = json.loads(body)
        except ValueError as error:
            text = f"Error from server ({status}): {body[:200].decode(errors='replace').strip()}"
            # What the API server has no path for is answered in plain text.
            raise (_KindGone if status == HTTPStatus.NOT_FOUND else Refused)(text) from error
        if status != HTTPStatus.OK:
            raise Refused(f"Error from server ({answer.get('reason', status)}): {answer.get('message', '')}")
        return answer


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
        _opened[kubeconfig] = written_at, Objects(ApiServer(kubeconfig))
    return _opened[kubeconfig][1]


_opened: dict[Path, tuple[int, Objects]] = {}
"""By the kubeconfig, with the time at which it was written: that of a cluster of the same name is another one."""
