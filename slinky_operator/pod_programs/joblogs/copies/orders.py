"""The orders for a pod that copies, in a Secret, and its answer when it ends, in its termination message."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from slinky_operator.pod_programs.joblogs.copies.events import Limits

NAME: Final = "copies.json"
"""Key of the Secret, and name of the file."""

MAX_BYTES: Final = 256 * 1024
MAX_COPIES: Final = 8
MAX_WHY: Final = 250
"""Characters of one report: the kubelet keeps 4096 bytes of all."""

_MAX_MESSAGE: Final = 8192
_MAX_NUMBER: Final = 2**63 - 1


class InvalidOrders(Exception):
    """It is not what `text` writes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file or folder is, or will be.

    Parameters
    ----------
    url, token, proof_key
        The server beside slurmd, what it wants to see (it knows the path), and what its own proof is made with.
    folder
        Instead of these, a folder that the pod mounts.
    path
        From there on; empty for all that is in it.
    is_projected
        Whether the folder is that of a ConfigMap or Secret, in which the kubelet reaches files by links.
    """

    url: str = ""
    token: str = field(default="", repr=False)
    proof_key: str = field(default="", repr=False)
    folder: str = ""
    path: str = ""
    is_projected: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy.

    Parameters
    ----------
    name
        The field of the SlurmJob that asks for it.
    source, target
        At least one is mounted.
    mark
        Tells it apart from others into the same folder.
    limits
        What it may have.
    is_private
        Whether only the user of the job may read what is written.
    """

    name: str
    source: Place
    target: Place
    mark: str
    limits: Limits
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one copy.

    Parameters
    ----------
    why
        Why it was not made; empty if it was.
    is_final
        Whether trying again is of no use.
    """

    why: str = ""
    is_final: bool = False
    files: int = 0
    size: int = 0
    left_out: int = 0
    example: str = ""


def text(copies: Sequence[Copy]) -> str:
    """Write what is to be copied."""
    return json.dumps([_body(copy) for copy in copies], separators=(",", ":"))


def _body(copy: Copy) -> dict[str, Any]:
    return {
        "name": copy.name,
        "from": _written(copy.source),
        "to": _written(copy.target),
        "mark": copy.mark,
        "maxBytes": copy.limits.size,
        "maxEntries": copy.limits.entries,
        "private": copy.is_private,
    }


def _written(place: Place) -> dict[str, Any]:
    if place.url:
        return {"url": place.url, "token": place.token, "proofKey": place.proof_key}
    return {"folder": place.folder, "path": place.path, "projected": place.is_projected}


def read(path: Path) -> tuple[Copy, ...]:
    """Read what the operator has written.

    Raises
    ------
    InvalidOrders
        It is not there, or something else.
    """
    try:
        with path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidOrders(f"{path}: {error.strerror}") from error
    return parse(content)


def parse(content: bytes) -> tuple[Copy, ...]:
    """Understand what the operator has written.

    Raises
    ------
    InvalidOrders
        It is something else.
    """
    try:
        found = json.loads(content) if len(content) <= MAX_BYTES else None
        if not isinstance(found, list) or len(found) > MAX_COPIES:
            raise InvalidOrders("it is no list of copies")
        return tuple(_copy(one) for one in found)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidOrders(f"it is no list of copies: {type(error).__name__}") from error


def _copy(body: Mapping[str, Any]) -> Copy:
    return Copy(
        name=str(body["name"]),
        source=_place(body["from"]),
        target=_place(body["to"]),
        mark=str(body["mark"]),
        limits=Limits(int(body["maxBytes"]), int(body["maxEntries"])),
        is_private=body["private"] is True,
    )


def _place(body: Mapping[str, Any]) -> Place:
    texts = {name: str(body.get(name, "")) for name in ("url", "token", "folder", "path")}
    return Place(**texts, proof_key=str(body.get("proofKey", "")), is_projected=body.get("projected") is True)


def message(reports: Sequence[Report]) -> str:
    """Write what became of the copies."""
    return json.dumps([_said(report) for report in reports], separators=(",", ":"))


def _said(report: Report) -> list[Any]:
    if report.why:
        return [report.why[:MAX_WHY], report.is_final]
    return [report.files, report.size, report.left_out, report.example[:MAX_WHY]]


def reports(content: str, count: int) -> tuple[Report, ...] | None:
    """Understand what a pod has said; None if it says nothing of each copy. Anyone who may run pods can say anything.

    Parameters
    ----------
    content
        The termination message.
    count
        How many copies it had to make.
    """
    try:
        found = json.loads(content) if len(content) <= _MAX_MESSAGE else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or len(found) != count:
        return None
    read = [_report(one) for one in found]
    return tuple(one for one in read if one is not None) if None not in read else None


def _report(body: Any) -> Report | None:
    match body:
        case [str(why), bool(is_final)] if why:
            return Report(_line(why), is_final)
        case [int(files), int(size), int(left_out), str(example)]:
            if all(0 <= number <= _MAX_NUMBER for number in (files, size, left_out)):
                return Report("", is_final=True, files=files, size=size, left_out=left_out, example=_line(example))
        case _:
            pass
    return None


def _line(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)[:MAX_WHY]
