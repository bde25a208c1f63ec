"""Do what simple kubectl commands do, over connections to the API server that are kept.

Each kubectl is a process of a tenth of a second of a processor, most of which reads what it already read the last time.
So are understood here: ``get`` (as names, as JSON, and ``--raw``), ``apply`` of a list, ``patch``, ``annotate``,
``label``, ``scale``, ``delete`` by name, ``create namespace`` and ``create --raw``. Options and forms that are not
listed here, and whatever the API server refuses, are left to kubectl itself: what it says of a refusal is what a user
would read. Commands in containers are in `execs`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

from hack.localkube.api_server import Refused
from hack.localkube.objects import Objects, UnknownKind, query

JSON: Final = "application/json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
STRICT: Final = {"fieldValidation": "Strict"}

SHORT: Final = {"-n": "--namespace", "-o": "--output", "-p": "--patch"}
SELECTORS: Final = ("--selector", "--field-selector")
FLAGS: Final = frozenset({"--ignore-not-found", "--overwrite", "--server-side", "--force-conflicts", "--force"})
"""Options that are true by their name alone; ``--wait`` is one, too, and may be set to false."""


class LeftToKubectl(Exception):
    """It is not understood, or was refused: kubectl does it, or says why not."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command as its words and options.

    Attributes
    ----------
    verb
        As kubectl calls it.
    words
        What follows it and is no option.
    options
        By their long names.
    stdin
        What it reads.
    """

    verb: str
    words: tuple[str, ...]
    options: Mapping[str, str]
    stdin: str

    @property
    def namespace(self) -> str:
        """The namespace that it is about."""
        return self.options.get("--namespace", "default")

    def only(self, *known: str) -> None:
        """Raise `LeftToKubectl` if it has other options than these and the namespace."""
        if not self.options.keys() <= {"--namespace", *known}:
            raise LeftToKubectl

    def is_set(self, flag: str, *, default: bool = False) -> bool:
        """Whether an option is true."""
        return self.options.get(flag, str(default).lower()) == "true"

    def targets(self, words: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield kind and name of the objects that words name, as ``KIND NAME…`` or ``KIND/NAME…``."""
        if not words:
            raise LeftToKubectl
        named = words if "/" in words[0] else [f"{words[0]}/{name}" for name in words[1:]]
        pairs = [word.partition("/") for word in named]
        if not pairs or any(not name or "," in kind for kind, _, name in pairs):
            raise LeftToKubectl
        yield from ((kind, name) for kind, _, name in pairs)


def read(arguments: Sequence[str], stdin: str | None) -> Command:
    """Return a command as its parts.

    Raises
    ------
    LeftToKubectl
        It has an option that is none of ours, or none of a value that it needs.
    """
    words, options, rest = list[str](), dict[str, str](), iter(arguments)
    for argument in rest:
        name, has_value, value = argument.partition("=")
        name = SHORT.get(name, name)
        if not argument.startswith("-"):
            words.append(argument)
        elif has_value:
            options[name] = value
        elif name in FLAGS or name == "--wait":
            options[name] = "true"
        elif name in {*SHORT.values(), "--raw", "--filename", "--type"}:
            options[name] = next(rest, "")
        else:
            raise LeftToKubectl
    if not words:
        raise LeftToKubectl
    return Command(words[0], tuple(words[1:]), options, stdin or "")


def run(objects: Objects, arguments: Sequence[str], stdin: str | None, timeout: float) -> str:
    """Do what a command of kubectl does, and return what it would print.

    Raises
    ------
    LeftToKubectl
        It is not understood, or was refused.
    Refused
        The API server cannot be reached.
    TimeoutError
        What it waits for has not come true in time.
    """
    command = read(arguments, stdin)
    if command.verb not in DOES:
        raise LeftToKubectl
    try:
        return DOES[command.verb](_Api(objects, time.monotonic() + timeout), command)
    except (LookupError, ValueError, UnknownKind) as error:
        # An option that it needs, or that it cannot read, or a category.
        raise LeftToKubectl from error


@dataclass(frozen=True, slots=True)
class _Api:
    """The API server, and until when it is waited for."""

    objects: Objects
    deadline: float

    def path(self, kind: str, namespace: str, name: str = "", root: str = "") -> str:
        """Return the path of an object."""
        try:
            resource = self.objects.resource(kind)
        except Refused as error:
            raise LeftToKubectl from error
        where = f"/namespaces/{namespace}" if resource.is_namespaced else ""
        return f"{root or resource.root}{where}/{resource.plural}{f'/{quote(name)}' if name else ''}"

    def look(self, path: str) -> dict[str, Any] | None:
        """Return an object; None if there is none."""
        status, body = self.objects.server.read(path)
        return None if status == HTTPStatus.NOT_FOUND else _taken(status, body)

    def send(self, method: str, path: str, body: object, content_type: str, **options: str) -> dict[str, Any]:
        """Send a change, and return the answer."""
        parameters = f"?{urlencode(options)}" if options else ""
        return _taken(*self.objects.server.write(method, path + parameters, json.dumps(body).encode(), content_type))


def _taken(status: int, body: bytes) -> dict[str, Any]:
    if status not in {HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED}:
        raise LeftToKubectl
    answer: dict[str, Any] = json.loads(body)
    return answer


def _get(api: _Api, command: Command) -> str:
    if "--raw" in command.options:
        command.only("--raw")
        status, body = api.objects.server.read(command.options["--raw"])
        if command.words or status != HTTPStatus.OK:
            raise LeftToKubectl
        return body.decode()
    command.only("--output", "--ignore-not-found", *SELECTORS)
    chosen = [f"{name}={command.options[name]}" for name in SELECTORS if name in command.options]
    asked = query((f"--namespace={command.namespace}", *chosen, *command.words))
    output = command.options.get("--output")
    if asked is None or output not in {"name", "json"}:
        raise LeftToKubectl
    try:
        found = api.objects.get(asked)
    except Refused as error:
        if command.is_set("--ignore-not-found") and "(NotFound)" in str(error):
            return ""
        # In the words of kubectl, as for all that is read: it may be asked for again and again.
        raise
    if output == "json":
        return json.dumps(found)
    return "".join(f"{_called(one)}\n" for one in (found["items"] if found["kind"] == "List" else [found]))


def _apply(api: _Api, command: Command) -> str:
    command.only("--server-side", "--force-conflicts", "--filename")
    options = {name: command.options.get(name) for name in ("--server-side", "--force-conflicts", "--filename")}
    if command.words or options != {"--server-side": "true", "--force-conflicts": "true", "--filename": "-"}:
        raise LeftToKubectl
    listed = json.loads(command.stdin)
    return "".join(f"{_called(_applied(api, one, command.namespace))} serverside-applied\n" for one in listed["items"])


def _applied(api: _Api, item: dict[str, Any], namespace: str) -> dict[str, Any]:
    about = item["metadata"]
    group, _, version = item["apiVersion"].rpartition("/")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    path = api.path(f"{item['kind'].lower()}.{group}", about.get("namespace", namespace), about["name"], root)
    return api.send("PATCH", path, item, APPLY, fieldManager="kubectl", force="true", **STRICT)


def _patch(api: _Api, command: Command) -> str:
    command.only("--type", "--patch", "--subresource")
    body = json.loads(command.options["--patch"])
    content_type = {"merge": MERGE, "strategic": STRATEGIC}.get(command.options.get("--type", "strategic"))
    below = command.options.get("--subresource", "")
    (kind, name), *more = command.targets(command.words)
    if content_type is None or more:
        raise LeftToKubectl
    path = api.path(kind, command.namespace, name) + (f"/{below}" if below else "")
    return f"{_called(api.send('PATCH', path, body, content_type, fieldManager='kubectl-patch', **STRICT))} patched\n"


def _mark(field: str, done: str) -> Callable[[_Api, Command], str]:
    """Return what sets and removes labels or annotations, and says that it has."""

    def mark(api: _Api, command: Command) -> str:
        command.only("--overwrite")
        first = next((place for place, word in enumerate(command.words) if "=" in word or word.endswith("-")), 0)
        changes: dict[str, str | None] = {}
        for word in command.words[first:]:
            key, has_value, value = word.partition("=")
            if not has_value and not key.endswith("-"):
                raise LeftToKubectl
            changes[key if has_value else key.removesuffix("-")] = value if has_value else None
        targets = list(command.targets(command.words[:first]))
        paths = [api.path(kind, command.namespace, name) for kind, name in targets]
        is_free = command.is_set("--overwrite") or all(_is_free(api.look(path), field, changes) for path in paths)
        if not is_free:
            raise LeftToKubectl
        body = {"metadata": {field: changes}}
        marked = [api.send("PATCH", path, body, MERGE, fieldManager=f"kubectl-{command.verb}") for path in paths]
        return "".join(f"{_called(one)} {done}\n" for one in marked)

    return mark


def _is_free(shown: Mapping[str, Any] | None, field: str, changes: Mapping[str, str | None]) -> bool:
    present = (shown or {"metadata": {}})["metadata"].get(field) or {}
    return shown is not None and all(
        value is None or present.get(key, value) == value for key, value in changes.items()
    )


def _scale(api: _Api, command: Command) -> str:
    command.only("--replicas")
    body = {"spec": {"replicas": int(command.options["--replicas"])}}
    targets = list(command.targets(command.words))
    for kind, name in targets:
        api.send("PATCH", f"{api.path(kind, command.namespace, name)}/scale", body, MERGE, fieldManager="kubectl-scale")
    return "".join(f"{kind}/{name} scaled\n" for kind, name in targets)


def _delete(api: _Api, command: Command) -> str:
    command.only("--wait", "--ignore-not-found", "--cascade", "--grace-period", "--force")
    grace = command.options.get("--grace-period", "0" if command.is_set("--force") else "")
    if grace == "0" and not command.is_set("--force"):
        raise LeftToKubectl
    policy = command.options.get("--cascade", "background").capitalize()
    body = {"propagationPolicy": policy, **({"gracePeriodSeconds": int(grace)} if grace else {})}
    targets = list(command.targets(command.words))
    paths = [api.path(kind, command.namespace, name) for kind, name in targets]
    there = [path for path in paths if api.look(path) is not None] if len(paths) > 1 else paths
    if len(there) < len(paths) and not command.is_set("--ignore-not-found"):
        raise LeftToKubectl
    ends = [(path, _ended(api, path, body, is_missed=not command.is_set("--ignore-not-found"))) for path in there]
    if command.is_set("--wait", default=True):
        for path, uid in ends:
            _wait_for_end(api, path, uid)
    return "".join(f"{kind}/{name} deleted\n" for kind, name in targets)


def _ended(api: _Api, path: str, body: object, *, is_missed: bool) -> str:
    """Delete an object, and return its uid; empty if there was none, and it is not missed."""
    status, text = api.objects.server.write("DELETE", path, json.dumps(body).encode(), JSON)
    if status == HTTPStatus.NOT_FOUND and not is_missed:
        return ""
    answer = _taken(status, text)
    return str((answer.get("details") or answer.get("metadata") or {}).get("uid", ""))


def _wait_for_end(api: _Api, path: str, uid: str) -> None:
    pause = 0.02
    while uid and (shown := api.look(path)) is not None and shown["metadata"]["uid"] == uid:
        if time.monotonic() > api.deadline:
            raise TimeoutError
        time.sleep(pause)
        pause = min(1.5 * pause, 0.5)


def _create(api: _Api, command: Command) -> str:
    if "--raw" in command.options:
        command.only("--raw", "--filename")
        if command.words or command.options.get("--filename") != "-":
            raise LeftToKubectl
        return json.dumps(api.send("POST", command.options["--raw"], json.loads(command.stdin), JSON))
    command.only()
    kind, name = command.words
    if kind != "namespace":
        raise LeftToKubectl
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return f"{_called(api.send('POST', '/api/v1/namespaces', body, JSON, fieldManager='kubectl-create'))} created\n"


def _called(item: Mapping[str, Any]) -> str:
    """Return how kubectl calls an object."""
    group = item["apiVersion"].rpartition("/")[0]
    return f"{item['kind'].lower()}{f'.{group}' if group else ''}/{item['metadata']['name']}"


DOES: Final[Mapping[str, Callable[[_Api, Command], str]]] = {
    "get": _get,
    "apply": _apply,
    "patch": _patch,
    "annotate": _mark("annotations", "annotated"),
    "label": _mark("labels", "labeled"),
    "scale": _scale,
    "delete": _delete,
    "create": _create,
}
