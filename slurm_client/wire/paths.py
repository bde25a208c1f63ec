"""
Which operation a path is, for callers who name paths instead of operations.

A path that is not found here is not known to be harmless: it counts as a write.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from slurm_client import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurm_client.wire.endpoint import Endpoint

__all__ = ["VERSION", "known", "template"]

VERSION = "{version}"
"""Stands for the data parser in a path."""

_PARAMETER = re.compile(r"\{(\w+)\}")


def known(method: str, path: str) -> tuple[str, Endpoint] | None:
    """
    Return the data parser and the operation of a path on the server; ``None`` if this library does not know it.

    Parts of an operation's path that are words go before parameters: ``/job/7/requeue`` is not the job of that name.
    """
    parts = _parts(path)
    if any("/" in part or part in {"", ".", ".."} for part in parts):
        return None
    version = parts[1] if len(parts) > 1 else ""
    if version not in wire.PARSERS:
        return None
    found = [
        endpoint
        for pattern, endpoint in _patterns(version).get((method, len(parts)), ())
        if all(part == wanted or wanted.startswith("{") for part, wanted in zip(parts, pattern, strict=True))
    ]
    return (version, min(found, key=lambda endpoint: endpoint.path.count("{"))) if found else None


def template(version: str, endpoint: Endpoint) -> str:
    """Return the path of an operation on the server with its parameters unfilled."""
    return endpoint.url(version, {name: f"{{{name}}}" for name in _PARAMETER.findall(endpoint.path)})


def _parts(path: str) -> list[str]:
    """Return the parts of a path; slurmrestd makes no difference between one that ends with a slash and one not."""
    return [unquote(part) for part in path.removeprefix("/").removesuffix("/").split("/")]


@functools.cache
def _patterns(version: str) -> Mapping[tuple[str, int], list[tuple[list[str], Endpoint]]]:
    """Return the operations of a data parser by method and length of their path."""
    found: dict[tuple[str, int], list[tuple[list[str], Endpoint]]] = {}
    for endpoint in wire.endpoints(version):
        pattern = _parts(template(version, endpoint))
        found.setdefault((endpoint.method, len(pattern)), []).append((pattern, endpoint))
    return found
