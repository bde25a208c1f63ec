"""What is reported of records that stay in Slurm without a pod, because jobs or reservations name their nodes."""

from __future__ import annotations

from slinky_operator.reconcile.text import joined
from slinky_operator.slurm.node_references import References


def message(kept: References) -> str:
    """Which records stay, and for what.

    Parameters
    ----------
    kept
        Nodes without a pod, and what names them.
    """
    told = [f"{name} ({', '.join(kept[name])})" for name in sorted(kept)]
    return f"records of nodes without a pod stay in Slurm, drained, until nothing names the nodes: {joined(told)}"
