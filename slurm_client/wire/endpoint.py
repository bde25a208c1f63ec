"""What an operation of slurmrestd is to a client: a method, a path, and whether it may be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Two operations change something although they are GETs.
_ACTIONS = frozenset({"get_reconfigure", "get_job_requeue"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    One operation of one data parser.

    Parameters
    ----------
    operation
        Name in the specification, without prefix and version.
    method, path
        ``path`` is below the version and has ``{parameters}``.
    query
        Names of the parameters of its query.
    body
        Class of the body in the wire models; empty if it takes none.
    """

    operation: str
    method: str
    path: str
    query: tuple[str, ...] = ()
    body: str = ""

    @property
    def is_safe(self) -> bool:
        """Whether it changes nothing and may be repeated at will."""
        return self.method == "GET" and self.operation not in _ACTIONS

    def url(self, version: str, parameters: Mapping[str, str]) -> str:
        """Return the path on the server; the parameters must be quoted already."""
        return f"/slurm/{version}{self.path.format_map(dict(parameters))}"
