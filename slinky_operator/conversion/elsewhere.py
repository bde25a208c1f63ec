"""A slurmctld that Slinky does not run: what its values, or its Controller, become.

The operator needs a slurmrestd beside that slurmctld, and Slinky runs one in Kubernetes: its URL is a guess, and what
only the operator's own daemons have cannot be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinky_operator.conversion.documents import type_name
from slinky_operator.conversion.errors import WrongType
from slinky_operator.conversion.report import Fate
from slinky_operator.conversion.walk import EMPTY, UNKNOWN, Walk

ELSEWHERE: Final = "slurmctld runs elsewhere"
NOT_WITH_SERVER: Final = "the operator runs none of it for a Slurm elsewhere (docs/hybrid.md)"
KEYS: Final = ("external", "externalConfig")
_SLURMRESTD: Final = (
    "the operator needs a slurmrestd beside that slurmctld: put its URL into cluster.server, and a token of it into"
    " cluster.token.secretRef unless auth.jwtKeyRef names its key (docs/hybrid.md)"
)


def connect(walk: Walk, controller: Mapping[str, Any], path: str) -> None:
    """Write where slurmctld is, and report `external` and `externalConfig`.

    Parameters
    ----------
    controller
        `controller` of the values, or the spec of a Controller.
    path
        Of it, in the report.
    """
    external = controller.get("externalConfig") or {}
    inner = f"{path}.externalConfig"
    if not isinstance(external, Mapping):
        raise WrongType(f"{walk.report.source}: {inner}: a map is needed, not {type_name(external)}")
    host = external.get("host")
    walk.draft.put("cluster", "", ["server"], f"http://{host or 'SLURMRESTD'}:6820")
    walk.note(f"{path}.external", Fate.LOST, controller["external"], why=_SLURMRESTD)
    for name, value in external.items():
        target = f"cluster.controller.external.{name}"
        if name not in {"host", "port"}:
            walk.note(f"{inner}.{name}", Fate.LOST, value, why=UNKNOWN)
        elif value in (None, ""):
            walk.note(f"{inner}.{name}", Fate.KEPT, value, why=EMPTY)
        elif not host:
            walk.note(f"{inner}.{name}", Fate.LOST, value, why="externalConfig.host is not set")
        else:
            walk.draft.put("cluster", "", ["controller", "external", name], value)
            walk.note(f"{inner}.{name}", Fate.CHANGED, value, target, value)
