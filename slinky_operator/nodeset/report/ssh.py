"""What keeps users from logging in by SSH to nodes on which they have jobs (`spec.ssh`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.report.health import Told
from slinky_operator.slurm.prolog_flags import CONTAIN

REASONS: Final = frozenset({Reason.SSH_NEEDS_CONTAIN})
"""Troubles with which a NodeSet is Ready: its nodes serve."""


def told(snapshot: Snapshot) -> Iterable[Told]:
    """What there is to report."""
    nodeset, cluster = snapshot.nodeset, snapshot.cluster
    if nodeset.spec.ssh is None or nodeset.deleting or not cluster.exists or cluster.has_contain:
        return
    text = (
        f"spec.ssh: spec.extraConf of Cluster {nodeset.spec.cluster_name} lacks {CONTAIN}, so no job has a step that "
        "takes sessions, and every login is refused. Add this line there; Slurm takes it over once no job runs"
    )
    yield Reason.SSH_NEEDS_CONTAIN, text, f"ssh needs {CONTAIN} in the Cluster", frozenset()
