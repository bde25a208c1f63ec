"""
What is asked for, and where on a server it goes with a data parser.

Sending it, and what is repeated, is left to `session`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from slurm_client import wire
from slurm_client.encode.values import fitted
from slurm_client.wire.paths import VERSION, known, template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from slurm_client import errors
    from slurm_client.connection.answers import ListOf


@dataclass(frozen=True, slots=True)
class Call:
    """
    What is asked for, whatever the data parser.

    Parameters
    ----------
    operation
        Name of the operation; empty where a method and a URL are given instead.
    method, url
        ``url`` is a path on the server, in which ``{version}`` stands for the data parser.
    repeatable
        Whether the caller says that to repeat it does no harm.
    numbers
        Numbers of its requests.
    """

    operation: str
    path: Mapping[str, str | int] | None = None
    query: Mapping[str, Any] | None = None
    body: Mapping[str, Any] | None = None
    wanted: ListOf | None = None
    tolerate: Callable[[errors.SlurmError], bool] | None = None
    method: str = ""
    url: str = ""
    repeatable: bool = False
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def negotiates(self) -> bool:
        """Whether it needs a data parser."""
        return not self.url or VERSION in self.url

    def target(self, version: str) -> Target:
        """Return where it goes with a data parser; NotSupported if that has no such operation."""
        if self.url:
            url = self.url.replace(VERSION, version)
            found = known(self.method, url)
            if found is None:
                return Target(wire.Endpoint("", self.method, ""), url, "")
            return Target(found[1], url, template(*found))
        endpoint = wire.endpoint(version, self.operation)
        if self.body is not None:
            fitted(version, endpoint.body, self.body)
        return filled(endpoint, version, self.path)


@dataclass(frozen=True, slots=True)
class Target:
    """One operation of one data parser: its path on the server, and the same with parameters unfilled."""

    endpoint: wire.Endpoint
    url: str
    template: str


def filled(endpoint: wire.Endpoint, version: str, path: Mapping[str, str | int] | None) -> Target:
    """Return where an operation of a data parser goes, with these parameters of its path."""
    url = endpoint.url(version, {name: quote(str(value), safe="") for name, value in (path or {}).items()})
    return Target(endpoint, url, template(version, endpoint))
