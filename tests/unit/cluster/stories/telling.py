"""A story as text: what was asked for, in words of Kubernetes and Slurm, and none of the operator's own code.

A first object of a kind is written in full; later ones by what differs. Long texts are written as a digest, or by the
lines that change, and hashes by numbers in the order in which they appear: so an edit of a script changes one line of
the whole trace, and the same hash in two places is still seen to be the same.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from slinky_operator.kube.objects import Object
from tests.unit.cluster.stories.api_server import Request

Flat: TypeAlias = dict[str, str]
"""Values of an object by their paths."""

LONG = 100
"""Characters of a value that is written as it is."""

MOST_LINES = 40
"""Lines of one text that are written if they change."""

LINES_AGAIN = 2
"""Changed lines of a text that are not told again."""

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
"""When stories begin."""

SOON, LATE = 0.5, 5.0
"""Seconds between two passes of a story, at least and at most."""

LONGEST = 900
"""Characters of a line."""

_UNTOLD = ("apiVersion", "kind", "status")
_UNTOLD_METADATA = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "name", "namespace")
_HASH = re.compile(r"(?<![0-9A-Za-z])(preflight-[jrstv]?)?([0-9a-f]{9,64})(?![0-9A-Za-z])")
_ROLE = re.compile(r"(preflight-[jrstv]?)[0-9a-f]{9,}$")
_NUMBER = re.compile(r"<\d+>")
_GROUP = ".slinky.slurm.net/"


class Telling:
    """The text of one story.

    Parameters
    ----------
    references
        The first object of each kind and role, which others are compared with; more are added.
    """

    def __init__(self, references: dict[str, Flat]) -> None:
        self.lines: list[str] = []
        self._references = references
        self._numbers: dict[str, int] = {}
        self._asks: list[str] = []
        self._now = 0.0
        self._said: dict[str, str] = {}

    def unsaid(self) -> None:
        """Replace what was said so far by its digest: many stories begin with a Cluster that runs."""
        text = self.text()
        passes = sum(line.startswith("- ") for line in self.lines)
        # Hashes begin again, so that another beginning leaves the rest of the story as it is.
        self._said.clear()
        self._numbers.clear()
        self.lines = [f"* runs after {passes} passes #{_digest(text, 8)}"]

    def say(self, line: str) -> None:
        """Add a line."""
        self._end_asks()
        self.lines.append(self._numbered(line)[:LONGEST].replace(_GROUP, "/").rstrip())

    def ask(self, question: str) -> None:
        """Add a question; those in a row are one line."""
        self._asks.append(question)

    def head(self, number: int, now: float) -> None:
        """Begin a pass, so many seconds after the beginning."""
        self._now = now
        self.say(f"- {number} at {now:g} s")

    def tail(self, after: float | None) -> None:
        """End a pass: when the next one is due, unless the time of the next one tells."""
        if after is None:
            self.say(" again on a change")
        elif not SOON <= after <= LATE:
            self.say(f" again in {after:g} s")

    def beside(self, known: Iterable[str]) -> None:
        """Leave out what is known, and add a digest of all that was said."""
        text, plain = self.text(), {_NUMBER.sub("<>", line) for line in known}
        self.lines = [line for line in self.lines if _NUMBER.sub("<>", line) not in plain]
        self.say(f" all of it #{_digest(text, 8)}")

    def text(self) -> str:
        """All of it."""
        self._end_asks()
        return "\n".join(self.lines) + "\n"

    def event(self, obj: Object, kind: str, reason: str, message: str) -> None:
        """Tell of an Event."""
        self.say(f" event {kind} {reason} of {obj['kind']} {obj['metadata']['name']}: {message}")

    def request(self, one: Request) -> None:
        """Tell of a request to the API server."""
        about = f"{one.kind} {one.name}".rstrip()
        if one.verb in {"look", "list"}:
            self.ask(f"the API server for {about}")
        elif one.refusal:
            self.say(f" {one.verb} {about}, refused: {one.refusal}")
        elif one.verb == "status":
            self.say(f" status of {about}")
            for line in _status(one.before or {}, one.after or {}, self._now):
                self.say(f"  {line}")
        elif one.verb == "create":
            self._created(about, flat(one.after or {}))
        elif one.verb == "remove":
            self.say(f" remove {about}")
        else:
            self.say(f" {one.verb} {about}")
            self._say_all(differences(flat(one.before or {}), flat(one.after or {})))

    def _created(self, about: str, made: Flat) -> None:
        role = _ROLE.sub(r"\1*", about)
        known = self._references.get(role)
        if known is None:
            self._references[role] = made
            self.say(f" create {about}, the first one")
            for path, value in made.items():
                self.say(f"  {path}: {short(value)}")
            return
        found = list(differences(known, made))
        self.say(f" create {about}{', like the first one, but' if found else ', like the first one'}")
        self._say_all(found)

    def _say_all(self, lines: Iterable[str]) -> None:
        """Say what differs; changes of lines that were said before are not repeated."""
        for line in lines:
            head, _, changes = line.partition("\n")
            if not changes:
                self.say(f"  {head}")
            elif changes in self._said:
                self.say(f"  {head} as in {self._said[changes]}")
            else:
                if changes.count("\n") >= LINES_AGAIN:
                    self._said[changes] = f"({len(self._said) + 1})"
                    head = f"{head} {self._said[changes]}"
                self.say(f"  {head}")
                for one in changes.split("\n"):
                    self.say(f"   {one}")

    def _end_asks(self) -> None:
        if self._asks:
            asks, self._asks = self._asks, []
            self.say(f" ask {'; '.join(asks)}")

    def _numbered(self, line: str) -> str:
        def number(found: re.Match[str]) -> str:
            digits = found[2]
            if digits.isdigit():
                return found[0]
            return f"{found[1] or ''}<{self._numbers.setdefault(digits, len(self._numbers) + 1)}>"

        return _HASH.sub(number, line)


def flat(obj: Object) -> Flat:
    """Values of an object by path, but for what the API server alone writes; values of Secrets by hash."""
    told = {key: value for key, value in obj.items() if key not in _UNTOLD}
    about = {key: value for key, value in obj.get("metadata", {}).items() if key not in _UNTOLD_METADATA}
    if about.get("annotations"):
        about["annotations"] = {
            # Made of the versions of objects, which each write of anything counts up.
            key: _digest(value, 16) if key.endswith("/change") else value
            for key, value in about["annotations"].items()
        }
    told["metadata"] = about
    if obj.get("kind") == "Secret":
        told["data"] = {key: _digest(value, 16) for key, value in (obj.get("data") or {}).items()}
    name = obj["metadata"]["name"]
    found = _leaves({key: value for key, value in told.items() if value != {}}, "")
    # The name of a trial is a hash of it.
    return {path: value.replace(name, "NAME") for path, value in found} if _ROLE.search(name) else dict(found)


def short(value: str) -> str:
    """A value, or the digest of a long one."""
    if len(value) <= LONG and "\n" not in value:
        return value
    return f"{value.count(chr(10)) + 1} lines #{_digest(value, 8)}"


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """What differs; of a text, a head and the lines that change."""
    for path in (*after, *(one for one in before if one not in after)):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        if old is not None and new is not None and ("\n" in old or "\n" in new):
            found = [one for one in difflib.unified_diff(old.split("\n"), new.split("\n"), n=0) if not _is_header(one)]
            more = [f"and {len(found) - MOST_LINES} more lines #{_digest(new, 8)}"] if len(found) > MOST_LINES else []
            yield "\n".join((f"{path}:", *found[:MOST_LINES], *more))
        elif new is None:
            yield f"{path}: none"
        else:
            yield f"{path}: {short(new)}"
    common = [one for one in before if one in after]
    if common != [one for one in after if one in before]:
        yield "in another order"


def _is_header(line: str) -> bool:
    return line.startswith(("--- ", "+++ ", "@@"))


def _status(before: Mapping[str, Any], after: Mapping[str, Any], now: float) -> Iterator[str]:
    """What a status tells that it did not before; conditions with the second of their transition if it is not now."""
    old = {one["type"]: one for one in before.get("conditions") or ()}
    new = {one["type"]: one for one in after.get("conditions") or ()}
    said: dict[str, list[str]] = {}
    for kind, one in new.items():
        known = old.get(kind, {})
        if any(one.get(key) != known.get(key) for key in ("status", "reason", "message", "lastTransitionTime")):
            message = one.get("message") or ""
            words = f" {one.get('reason', '')}{_moved(known, one, now)}{f': {message}' if message else ''}"
            said.setdefault(words, []).append(f"{kind} {one['status']}")
    yield from (f"{', '.join(kinds)}{words}" for words, kinds in said.items())
    yield from (f"{kind}: none" for kind in old if kind not in new)
    if {one.get("observedGeneration") for one in new.values()} - {None, after.get("observedGeneration")}:
        yield "conditions are of an earlier generation"
    rest = [
        {key: _counted(value) if key in {"jobs", "nodes"} else value for key, value in one.items()}
        for one in (before, after)
    ]
    for one in rest:
        one.pop("conditions", None)
    yield from differences(dict(_leaves(rest[0], "")), dict(_leaves(rest[1], "")))


def _moved(before: Mapping[str, Any], after: Mapping[str, Any], now: float) -> str:
    """Whether a condition has changed its status, and when if not now."""
    since = after.get("lastTransitionTime")
    if since == before.get("lastTransitionTime") or since is None:
        return ""
    seconds = (datetime.fromisoformat(since) - BEGIN).total_seconds()
    return " (changes)" if seconds == int(now) else f" (changed at {seconds:g} s)"


def _counted(counts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in counts.items() if value}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Mappings are in order of their keys, lists in their own; what is short is written as a whole."""
    if path and isinstance(value, Mapping | list | tuple):
        whole = json.dumps(value, sort_keys=True, ensure_ascii=False)
        if len(whole) <= LONG and "\\n" not in whole:
            yield path, whole
            return
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from _leaves(value[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        names = [one.get("name") if isinstance(one, Mapping) else None for one in value]
        unique = all(isinstance(name, str) for name in names) and len({*names}) == len(names)
        for number, one in enumerate(value):
            yield from _leaves(one, f"{path}[{names[number] if unique else number}]")
    elif isinstance(value, str):
        yield path, value
    else:
        yield path, json.dumps(value)


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
