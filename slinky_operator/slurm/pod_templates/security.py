"""Security contexts of Slurm's daemons that more than one controller gives."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

CAPABILITIES: Final = ("CHOWN", "SETUID", "SETGID", "DAC_OVERRIDE", "FOWNER", "KILL")
"""What slurmd needs to start steps as their users; with these it runs jobs (measured)."""


ROOTLESS_CONTAINERS: Final[Mapping[str, Any]] = MappingProxyType(
    {"seccompProfile": {"type": "Unconfined"}, "appArmorProfile": {"type": "Unconfined"}}
)
"""What lets users of slurmd's container start containers: the usual profiles forbid mounts, and new user namespaces."""


def slurmd() -> dict[str, Any]:
    """Of slurmd's container, where a NodeSet says nothing: root with few capabilities."""
    return {
        "runAsUser": 0,
        "runAsGroup": 0,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": list(CAPABILITIES)},
    }


def agreeing(merged: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A merged context without what the API server refuses beside the user's words.

    Parameters
    ----------
    merged
        The user's context over the generated one.
    given
        The user's.
    """
    added = (merged.get("capabilities") or {}).get("add") or ()
    mighty = bool(merged.get("privileged")) or not {"SYS_ADMIN", "CAP_SYS_ADMIN"}.isdisjoint(added)
    if mighty and "allowPrivilegeEscalation" not in given:
        return {key: value for key, value in merged.items() if key != "allowPrivilegeEscalation"}
    return dict(merged)
