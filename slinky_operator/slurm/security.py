"""Security contexts of Slurm's daemons that more than one controller gives."""

from __future__ import annotations

from typing import Any, Final

CAPABILITIES: Final = ("CHOWN", "SETUID", "SETGID", "DAC_OVERRIDE", "FOWNER", "KILL")
"""What slurmd needs to start steps as their users; with these it runs jobs (measured)."""


def slurmd() -> dict[str, Any]:
    """Of slurmd's container, where a NodeSet says nothing: root with few capabilities."""
    return {
        "runAsUser": 0,
        "runAsGroup": 0,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": list(CAPABILITIES)},
    }
