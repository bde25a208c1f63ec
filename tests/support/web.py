"""One plain HTTP request, for tests of what a person with curl would see."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Tests' servers are near: no proxy of the environment's stands before them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of an answer, whatever the status is."""

    status: int
    body: bytes


def fetch(url: str, headers: Mapping[str, str] | None = None, timeout: float = 30.0) -> Answer:
    """GET a URL."""
    request = urllib.request.Request(url, headers=dict(headers or {}))  # noqa: S310 tests' own URLs
    try:
        with _OPENER.open(request, timeout=timeout) as answer:
            return Answer(answer.status, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read())
