"""The part of the plan about NodeSets whose part of the configuration is held back. Pure.

If a preflight rejects a configuration, the changes of all NodeSets in it are held back together, and then tried one by
one. Only a change that was rejected alone is known to be the cause, and is reported on its NodeSet: the others do not
concern it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from slinky_operator.cluster.actions import HoldBackNodeSets
from slinky_operator.cluster.memory.rollout import Held
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.slurm.conf import ConfInputs, NodeSetConf, Parsed, Rendered


def held(snapshot: Snapshot, inputs: ConfInputs) -> dict[str, str]:
    """NodeSets that are held back, and why."""
    memory = snapshot.memory.rollout
    if not memory.held or memory.held_for != _own_part(inputs):
        return {}
    parts = {one.name: _identity(one) for one in inputs.node_sets if one.name in memory.held}
    return {name: one.why for name, one in memory.held.items() if parts.get(name) == one.part}


def suspects(snapshot: Snapshot, inputs: ConfInputs) -> dict[str, str]:
    """Those of them that were rejected together with others, and why."""
    return {name: why for name, why in inputs.held.items() if not snapshot.memory.rollout.held[name].proven}


def unblamed(rendered: Rendered, why: Mapping[str, str]) -> Rendered:
    """Without the rejected NodeSets that may not be the cause: each is tried alone before it is reported."""
    refused = tuple(one for one in rendered.refused if one.problem.reason != why.get(one.node_set))
    return replace(rendered, refused=refused)


def _own_part(inputs: ConfInputs) -> str:
    """Identifies the Cluster's own part of the configuration."""
    return _identity(replace(inputs, node_sets=(), held={}, future=frozenset(), states={}, settled=True))


def _identity(part: ConfInputs | NodeSetConf) -> str:
    return hashlib.sha256(repr(part).encode()).hexdigest()[:16]


def changed(inputs: ConfInputs, candidate: Rendered, before: Parsed) -> list[NodeSetConf]:
    """NodeSets whose lines in a configuration differ from the running ones, `before`."""
    out = {one.node_set for one in candidate.refused}
    return [
        one
        for one in inputs.node_sets
        if one.name in candidate.node_sets
        and one.name not in out
        and candidate.lines.by_node_set.get(one.name) != before.by_node_set.get(one.name)
    ]


def holding(
    snapshot: Snapshot, inputs: ConfInputs, found: Sequence[NodeSetConf], why: str, *, alone: bool
) -> HoldBackNodeSets:
    """Hold back what was rejected; a single one is known to be the cause, several are tried one by one later."""
    before = {name: one for name, one in snapshot.memory.rollout.held.items() if name in held(snapshot, inputs)}
    return HoldBackNodeSets(
        {**before, **{one.name: Held(_identity(one), why, alone) for one in found}}, _own_part(inputs)
    )


def next_suspect(snapshot: Snapshot) -> list[HoldBackNodeSets]:
    """Try one of the NodeSets that were held back together."""
    memory = snapshot.memory.rollout
    left = sorted(name for name, one in memory.held.items() if not one.proven)
    if not left:
        return []
    return [HoldBackNodeSets({name: one for name, one in memory.held.items() if name != left[0]}, memory.held_for)]
