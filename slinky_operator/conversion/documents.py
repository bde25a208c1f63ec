"""YAML in, within bounds, and out.

The events of the parser are counted before anything is built, so that neither depth nor anchors that name each other
take memory. A key that is there twice is an error: YAML would drop the first without a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from typing_extensions import override

from slinky_operator.conversion.errors import UnreadableInput

try:
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    # The plugin in one file has no compiled parts: the same, slower.
    from yaml import SafeDumper, SafeLoader  # type: ignore[assignment]

Values = dict[str, Any]

MAX_BYTES: Final = 4 * 1024 * 1024
"""Of all inputs together; Kubernetes takes no object over 1.5 MiB."""

MAX_DOCUMENTS: Final = 1000
MAX_DEPTH: Final = 60
MAX_NODES: Final = 200_000
"""Keys and values, with what anchors stand for counted each time."""


class _Loader(SafeLoader):
    """Texts, numbers, lists and maps, as helm reads them."""

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        made: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return {key if isinstance(key, str) else _text_of(key): value for key, value in made.items()}


def _text_of(key: object) -> str:
    """A key as helm has it, which reads YAML by way of JSON."""
    return str(key).lower() if isinstance(key, bool) else str(key)


# Times stay texts: nothing here is a time, and JSON has none.
_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in SafeLoader.yaml_implicit_resolvers.items()
}


class _Dumper(SafeDumper):
    """Texts of several lines as such, and nothing by anchors."""

    @override
    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def load(text: str, source: str) -> list[Values]:
    """The documents of a text, without empty ones.

    Parameters
    ----------
    source
        Name of the file, for messages.

    Raises
    ------
    UnreadableInput
        No YAML, not maps, or beyond a bound.
    """
    try:
        count = _Count(source)
        for event in yaml.parse(text, Loader=SafeLoader):
            count.take(event)
        found = [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}" if mark else ""
        raise UnreadableInput(f"{source}{place}: {error.problem or 'no YAML'}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UnreadableInput(f"{source}: no YAML: {' '.join(str(error).split())[:200]}") from None
    for document in found:
        if not isinstance(document, dict):
            raise UnreadableInput(f"{source}: a document must be a map, not {type_name(document)}")
    return found


def dump(documents: list[Values]) -> str:
    """Documents as a stream of YAML."""
    return "---\n".join(
        yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000) for document in documents
    )


def dump_json(value: object) -> str:
    """A value as JSON, which is YAML too."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def type_name(value: object) -> str:
    """What a value is, in words of YAML."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "a map"


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Values:
    """Two maps as helm merges values: maps key by key, anything else from above; `null` takes a key away."""
    found = dict(below)
    for key, value in above.items():
        old = found.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            found[key] = merged(old, value)
        elif value is None and key in found:
            del found[key]
        else:
            found[key] = value
    return found


def overridden(below: Mapping[str, Any], above: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Keys of which a later file has another value."""
    for key, value in above.items():
        if key not in below or below[key] == value:
            continue
        if isinstance(below[key], Mapping) and isinstance(value, Mapping):
            yield from overridden(below[key], value, f"{path}{key}.")
        else:
            yield f"{path}{key}"


@dataclass(slots=True)
class _Collection:
    """A list or a map that the parser is in."""

    anchor: str | None
    before: int
    """Nodes before it."""
    keys: set[str] | None = None
    """Of a map: its keys so far."""
    at_key: bool = True


@dataclass(slots=True)
class _Count:
    """Counts what a text stands for, and refuses what is beyond a bound before it is built."""

    source: str
    nodes: int = 0
    documents: int = 0
    opened: list[_Collection] = field(default_factory=list)
    anchors: dict[str, int] = field(default_factory=dict)
    """How many nodes each anchor stands for."""

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            self.anchors.clear()
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = self.opened.pop()
            if ended.anchor:
                self.anchors[ended.anchor] = self.nodes - ended.before
        elif isinstance(event, yaml.NodeEvent):
            self._key(event)
            self._node(event)
        self._bounds(event)

    def _node(self, event: yaml.NodeEvent) -> None:
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise self._refusal(event, f"the anchor {event.anchor!r} stands for itself, or for nothing")
            self.nodes += self.anchors[event.anchor]
            return
        before = self.nodes
        self.nodes += 1
        if isinstance(event, yaml.CollectionStartEvent):
            keys = set[str]() if isinstance(event, yaml.MappingStartEvent) else None
            self.opened.append(_Collection(event.anchor, before, keys))
        elif event.anchor:
            self.anchors[event.anchor] = 1

    def _key(self, event: yaml.NodeEvent) -> None:
        """Whether a node is a key of a map: a text that is not there yet."""
        if not self.opened or (inside := self.opened[-1]).keys is None:
            return
        if inside.at_key:
            if not isinstance(event, yaml.ScalarEvent):
                raise self._refusal(event, "a key must be a text")
            if event.value in inside.keys:
                raise self._refusal(event, f"the key {event.value!r} is there twice")
            inside.keys.add(event.value)
        inside.at_key = not inside.at_key

    def _bounds(self, event: yaml.Event) -> None:
        if self.documents > MAX_DOCUMENTS:
            raise self._refusal(event, f"more than {MAX_DOCUMENTS} documents: convert them in parts")
        if len(self.opened) > MAX_DEPTH:
            raise self._refusal(event, f"deeper than {MAX_DEPTH} levels")
        if self.nodes > MAX_NODES:
            raise self._refusal(event, f"more than {MAX_NODES} keys and values, with what anchors stand for")

    def _refusal(self, event: yaml.Event, why: str) -> UnreadableInput:
        mark = event.start_mark
        return UnreadableInput(f"{self.source}{f', line {mark.line + 1}' if mark else ''}: {why}")
