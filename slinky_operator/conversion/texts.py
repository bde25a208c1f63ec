"""Images, and lines of slurm.conf: what Slinky has as maps is text here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final


class Unconvertible(Exception):
    """The value cannot be written here; the text says why, and what to do instead."""


_PAIR: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*\+?=\S+\Z")
_GRES: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:,()/+-]*\Z")
_FEATURE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:=/@+-]*\Z")


def image(value: Mapping[str, Any] | str, default: str = "") -> str:
    """An image as one text; empty for none.

    Parameters
    ----------
    default
        Repository of Slinky's chart, for a value that has a tag only.
    """
    if isinstance(value, str):
        return value
    repository, tag, digest = (str(value.get(key) or "") for key in ("repository", "tag", "digest"))
    if more := sorted(set(value) - {"repository", "tag", "digest"}):
        raise Unconvertible(f"an image has no {more[0]!r}; write the image as one text, REPOSITORY:TAG")
    if not (repository or tag or digest):
        return ""
    repository = repository or default
    if digest:
        return f"{repository}@{digest}"
    if not tag:
        raise Unconvertible(
            f"the tag is that of the release of Slinky's chart, which is not known here; write {repository}:TAG"
        )
    return f"{repository}:{tag}"


def word(value: object) -> str:
    """A value as slurm.conf has it: lists with commas."""
    if isinstance(value, list):
        return ",".join(word(one) for one in value)
    if isinstance(value, Mapping):
        raise Unconvertible("a map is no value of slurm.conf; write it as text")
    return str(value).lower() if isinstance(value, bool) else str(value)


def pairs(value: Mapping[str, Any]) -> list[str]:
    """A map as `Key=value`, without keys that have no value."""
    return [f"{key}={word(one)}" for key, one in value.items() if one is not None]


def lines(value: Mapping[str, Any] | str) -> str:
    """Lines of slurm.conf or slurmdbd.conf."""
    return value.strip("\n") if isinstance(value, str) else "\n".join(pairs(value))


def one_line(value: Mapping[str, Any] | str) -> str:
    """Keys of a node's or a partition's line; empty for none."""
    if isinstance(value, str):
        found = " ".join(part for line in value.splitlines() if (part := line.strip()))
    else:
        found = " ".join(pairs(value))
    if "#" in found or found.endswith("\\"):
        raise Unconvertible("it must be one line here, without '#' and without a backslash at its end")
    return found


def partition(value: Mapping[str, Any] | str) -> str:
    """Keys of a partition's line."""
    found = one_line(value)
    if re.search(r"(?i)(^|[\s\"])(PartitionName|Nodes)\s*[-+*/]?=", found):
        raise Unconvertible("PartitionName= and Nodes= are written by the operator; name NodeSets in nodeSets")
    return found


def node(value: Mapping[str, Any] | str) -> dict[str, Any]:
    """Keys of a node's line, as fields of a NodeSet: features, gres, weight, and what is left in extraConf."""
    found = one_line(value)
    if re.search(r"(?i)(^|[\s\"])NodeName\s*[-+*/]?=", found):
        raise Unconvertible("NodeName= is written by the operator")
    made: dict[str, Any] = {}
    rest = []
    parts = found.split()
    if not all(_PAIR.match(part) for part in parts) or '"' in found:
        return {"extraConf": found} if found else {}
    for part in parts:
        key, _, text = part.partition("=")
        words = text.split(",")
        if key.lower() in {"feature", "features"} and all(_FEATURE.match(one) for one in words):
            made["features"] = [*made.get("features", []), *words]
        elif key.lower() == "gres" and _GRES.match(text) and "gres" not in made:
            made["gres"] = text
        elif key.lower() == "weight" and text.isdecimal() and "weight" not in made:
            made["weight"] = int(text)
        else:
            rest.append(part)
    if rest:
        made["extraConf"] = " ".join(rest)
    return made


def keys(value: list[Any] | str) -> str:
    """Lines of authorized_keys."""
    return value.strip("\n") if isinstance(value, str) else "\n".join(str(one) for one in value)
