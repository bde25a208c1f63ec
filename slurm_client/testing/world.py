"""
What a fake slurmrestd knows: nodes, jobs and partitions, and how they change one another.

A small model of slurmctld: drains and undrains change flags, the fields ``reason`` and who set it follow, records come
and go. Jobs wait, start and end in :mod:`slurm_client.testing.slurmctld`. It speaks in canonical models; how they are
written as JSON is left to :mod:`slurm_client.testing.answers.encode`, HTTP to :mod:`slurm_client.testing.server`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from slurm_client.decode import partitions as decode_partitions
from slurm_client.encode.partitions import PLACES
from slurm_client.models import Node, NodeState, Reservation
from slurm_client.notation.hostlist import expand
from slurm_client.testing.refusals import (
    ACTIVE_FEATURE_NOT_SUBSET,
    FLAGS_INVALID,
    INVALID_NODE,
    INVALID_NODE_STATE,
    INVALID_PARTITION,
    INVALID_TOPOLOGY,
    INVALID_TRANSITION,
    NODE_ALREADY_EXISTS,
    NODES_BUSY,
    RESERVATION_INVALID,
    Refusal,
)
from slurm_client.testing.slurmctld.ends import Ends

if TYPE_CHECKING:
    from collections.abc import Iterable


def _has(body: Any, place: str) -> bool:
    """Whether an object has something at a place such as ``maximums.time``."""
    for key in place.split("."):
        if not isinstance(body, dict) or key not in body:
            return False
        body = body[key]
    return True


def _weight(value: Any) -> int:
    return int(value["number"]) if isinstance(value, dict) else int(value)


_UPDATABLE: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("comment", "comment", str),
    ("extra", "extra", str),
    ("gres", "gres", str),
    ("features", "features", tuple),
    ("features_act", "active_features", tuple),
    ("weight", "weight", _weight),
    ("topology_str", "topology", str),
)
"""Keys of an update that only set a field: key, field, and how the value is read."""

_STATE_WORDS = NodeState.BASES | NodeState.FLAGS


class World(Ends):
    """What the REST interface asks for, by slurmctld's rules."""

    def apply_update(self, names: Iterable[str], update: dict[str, Any], user: str) -> None:
        """Change nodes as slurmctld does: in order, until the first it does not know or will not change."""
        words = [str(word).upper() for word in update.get("state") or ()]
        unknown = next((word for word in words if word not in _STATE_WORDS), None)
        if unknown is not None:
            refused = INVALID_TRANSITION if self.clears_reasons else INVALID_NODE_STATE
            raise Refusal(
                refused,
                "Failure to update node",
                extra=(FLAGS_INVALID, f'Unknown flag "{unknown}"'),
            )
        if {name.upper() for name in names} == {"ALL"}:
            names = self.nodes
        for name in sorted(names):
            node = self.nodes.get(name)
            if node is None:
                raise Refusal(INVALID_NODE, f"Failure to update node {name}")
            self.nodes[name] = self._updated(node, words, update, user)
            self._touch_nodes()

    def _updated(self, node: Node, words: list[str], update: dict[str, Any], user: str) -> Node:
        state = node.state
        values: dict[str, Any] = {}
        # Newer releases keep a reason only beside a state that wants one.
        wants_reason = node.is_drain or node.is_down or not self.clears_reasons
        if (update.get("reason") is not None and wants_reason) or "DRAIN" in words or "DOWN" in words:
            values = {
                "reason": update.get("reason") or "",
                "reason_set_by": user,
                "reason_changed_at": self.now,
            }
        for word in words:
            state = self._next_state(node, state, word)
            if word in {"UNDRAIN", "RESUME"} and self.clears_reasons and state.base != "DOWN":
                values |= {"reason": "", "reason_set_by": "", "reason_changed_at": None}
            if word == "DOWN":
                self.fail_jobs_on(node.name)
        active = update.get("features_act") or node.active_features
        if "features" in update and not set(active) <= set(update["features"]):
            raise Refusal(ACTIVE_FEATURE_NOT_SUBSET, f"Failure to update node {node.name}")
        if update.get("topology_str") and ":" not in update["topology_str"]:
            raise Refusal(INVALID_TOPOLOGY, f"Failure to update node {node.name}")
        if "features" in update:
            values["active_features"] = tuple(update["features"])
        for key, field, convert in _UPDATABLE:
            if update.get(key) is not None:
                values[field] = convert(update[key])
        return replace(node, state=state, **values)

    def _next_state(self, node: Node, state: NodeState, word: str) -> NodeState:
        """Return the state after one word of an update."""
        if word == "UNDRAIN":
            return NodeState(state.base, state.flags - {"DRAIN"})
        if word == "RESUME":
            if not node.is_drain and not node.is_down:
                raise Refusal(
                    INVALID_TRANSITION if self.clears_reasons else INVALID_NODE_STATE,
                    f"Failure to update node {node.name}",
                )
            return NodeState("IDLE" if state.base == "DOWN" else state.base, state.flags - {"DRAIN"})
        if word in {"DOWN", "IDLE", "FUTURE"}:
            return NodeState(word, state.flags)
        return NodeState(state.base, state.flags | {word})

    def delete_node(self, name: str) -> None:
        """Delete a record, unless a job is on it."""
        if name not in self.nodes:
            raise Refusal(INVALID_NODE, f"Failure to delete node {name}")
        if self.nodes[name].is_busy or any(job.holds_nodes for job in self.jobs.naming(name)):
            raise Refusal(NODES_BUSY, f"Failure to delete node {name}")
        self.remove_node(name)

    def reserve(self, wishes: dict[str, Any]) -> Reservation:
        """Create or change a reservation."""
        name = wishes.get("name") or f"resv_{next(self._reservation_numbers)}"
        old = self.reservations.get(name) or Reservation(name=name, partition=next(iter(self.partitions), ""))
        values: dict[str, Any] = {}
        for key in ("start_time", "end_time"):
            if key in wishes:
                values[key] = datetime.fromtimestamp(wishes[key]["number"], UTC)
        for key in ("users", "accounts", "groups"):
            if key in wishes:
                values[key] = tuple(wishes[key])
        if "node_list" in wishes or "node_count" in wishes:
            nodes = self._nodes_to_reserve(wishes, old)
            values |= {"nodes": nodes, "node_list": ",".join(nodes)}
            values["core_count"] = sum(self.nodes[name].cpus for name in nodes if name in self.nodes)
        if "flags" in wishes:
            values["flags"] = frozenset(wishes["flags"])
        if "partition" in wishes:
            values["partition"] = wishes["partition"]
        new = replace(old, **values)
        if "duration" in wishes and new.start_time is not None:
            new = replace(new, end_time=new.start_time + timedelta(minutes=wishes["duration"]["number"]))
        self.reservations[name] = replace(new, node_count=len(new.nodes))
        self.reservations_changed = self._clock()
        return self.reservations[name]

    def _nodes_to_reserve(self, wishes: dict[str, Any], old: Reservation) -> tuple[str, ...]:
        """Nodes that are named, or as many as are asked for that no other reservation has."""
        given = wishes.get("node_list") or ()
        if given:
            names = tuple(name for text in ([given] if isinstance(given, str) else given) for name in expand(text))
            return tuple(self.nodes) if {name.upper() for name in names} == {"ALL"} else names
        wanted = wishes["node_count"]["number"]
        taken = {name for each in self.reservations.values() if each.name != old.name for name in each.nodes}
        free = [name for name in sorted(self.nodes) if name not in taken]
        if wanted > len(free):
            raise Refusal(NODES_BUSY, "Failure to create reservation")
        return tuple(free[:wanted])

    def unreserve(self, name: str) -> None:
        """Delete a reservation."""
        if self.reservations.pop(name, None) is None:
            raise Refusal(RESERVATION_INVALID, f"Error deleting reservation {name}")
        self.reservations_changed = self._clock()

    def create_node(self, line: str) -> None:
        """Create a record from a line of slurm.conf."""
        words = dict(word.partition("=")[::2] for word in line.split())
        name, state = words.get("NodeName", ""), words.get("State", "")
        if name in self.nodes:
            raise Refusal(NODE_ALREADY_EXISTS, "Failure to create node")
        if state not in {"CLOUD", "EXTERNAL", "FUTURE"}:
            raise Refusal(INVALID_NODE_STATE, "Failure to create node")
        flags = {"CLOUD": ["CLOUD", "POWERED_DOWN"], "EXTERNAL": ["EXTERNAL"], "FUTURE": []}[state]
        self.add_node(
            name,
            state=["FUTURE" if state == "FUTURE" else "IDLE", *flags],
            cpus=int(words.get("CPUs", "1")),
            memory=int(words.get("RealMemory", "1")),
            features=tuple(filter(None, (words.get("Feature") or words.get("Features", "")).split(","))),
            **({"gres": words["Gres"]} if "Gres" in words else {}),
        )

    def change_partition(self, wishes: dict[str, Any]) -> None:
        """Create or change a partition."""
        name = wishes["name"]
        wished, there = decode_partitions.partition(wishes), self.partitions.get(name)
        values: dict[str, Any] = {key: getattr(wished, key) for key, place in PLACES.items() if _has(wishes, place)}
        if "nodes" in values:
            unknown = [each for each in wished.nodes if each not in self.nodes and each.upper() != "ALL"]
            if unknown:
                raise Refusal(INVALID_NODE, f"Failure to write partition {name}")
            values["node_list"] = wished.node_list
        if "flags" in values:
            cleared = {word.removesuffix("_CLEAR") for word in wished.flags if word.endswith("_CLEAR")}
            kept = there.flags if there is not None else frozenset()
            values["flags"] = (kept | {word for word in wished.flags if not word.endswith("_CLEAR")}) - cleared
        if there is not None:
            self.partitions[name] = replace(there, **values)
        else:
            self.add_partition(name, node_sets="", **values)
        self.partitions_changed = self._clock()

    def reconfigure(self) -> None:
        """Read the configuration, which counts as a change of all partitions."""
        self.reconfigured += 1
        self.partitions_changed = self._clock()

    def delete_partition(self, name: str) -> None:
        """Delete a partition."""
        if self.partitions.pop(name, None) is None:
            raise Refusal(INVALID_PARTITION, "Unable to delete partition")
        self.partitions_changed = self._clock()
