"""The part of the plan about nodes outside Kubernetes whose names do not resolve in slurmctld's pod. Pure.

slurmctld resolves the name of each such node whenever it reads its files, spends ten seconds on each unknown name, in
which it answers nothing, and then treats the node as `State=FUTURE` (Slurm 24.11 and 26.05). A node that is `FUTURE` in
the file is neither resolved nor pinged, and is added by a `reconfigure` as soon as it is no longer. So:

- a node that needs a name server is first written as `FUTURE`, and as in the spec once the agent beside slurmctld has
  found its address;
- a node that has once been live is not changed, whatever a name server answers: it may have jobs;
- a node that never was, and that Slurm does not show either, becomes `FUTURE` again if its name is not found.

The state of a node is in the files themselves: an operator that starts knows it. Only the agent resolves names; as long
as it has not answered, nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Final

from slinky_operator.cluster.actions import Ask
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.rollout.agent_questions import Names, NamesQuestion
from slinky_operator.kube.objects import Object
from slinky_operator.pod_programs.agent import hosts
from slinky_operator.slurm.conf import ConfInputs, Line, StaticNodeConf, TextProblem, Words, parse
from slinky_operator.slurm.conf.render import SLURM_CONF
from slinky_operator.slurm.conf.syntax.parsed import FUTURE
from slinky_operator.slurm.connection.contact import ContactState

ASK_FIRST: Final = 0.5
"""Seconds between two queries while names are resolved for the first time."""

ASK_WAITING: Final = 10.0
"""The same while nodes wait for an address."""

ASK_LIVE: Final = 60.0
"""The same while no nodes do."""

PATIENCE: Final = 10.0
"""Seconds for which a configuration does not count as live before the names in it have been resolved."""

LOOK_UP: Final = 10.0
"""Seconds that slurmctld spends on an unknown name."""

REMEMBERED: Final = 8
"""Texts whose nodes are kept for the next pass. Few: each may name all nodes that there can be."""

NAMED: Final = 10
"""Maximum number of names shown."""

_NO_ADDRESS: Final = frozenset({FUTURE, "CLOUD"})
"""States in which slurmctld resolves no address."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """What is known of the nodes whose names must be resolved."""

    future: frozenset[str] = frozenset()
    """Nodes to write as `FUTURE` for now."""

    missing: tuple[str, ...] = ()
    """Nodes whose names could not be resolved, in order."""

    unknown: tuple[str, ...] = ()
    """Nodes that wait, although their names have not been looked up yet."""

    why: str = ""
    """Why the agent does not answer; empty if it does."""

    @property
    def message(self) -> str:
        """The message for people; empty if there is none."""
        if self.missing:
            stay = "; they are left out (State=FUTURE) until they have one" if self.future else ""
            return (
                f"no address for {some(self.missing)} where slurmctld runs{stay}: give them a NodeAddr= in "
                "spec.nodes[].config, or fix the name service"
            )
        if self.unknown and self.why:
            return f"{some(self.unknown)} wait until their addresses can be looked up: {self.why}"
        return ""


def addresses(
    snapshot: Snapshot, inputs: ConfInputs, current: Object | None, good: Object | None, *, is_lost: bool = False
) -> Addresses:
    """Decide which nodes wait for an address.

    Parameters
    ----------
    current
        The ConfigMap that slurmctld's pod mounts, or None.
    good
        The one with the files that slurmctld has last shown to run, or None.
    is_lost
        Whether slurmctld runs, and nothing shows with which files: then no node is new.
    """
    known = _known(snapshot.memory, snapshot.pods.controller)
    running, proven = _text(current or good), _text(good)
    judged, never = _judged(inputs.nodes, running, proven, known.found, known.missing, is_new=not is_lost)
    slurm = snapshot.slurm
    if never and slurm is not None and slurm.contact.state is ContactState.READY:
        # A node that Slurm itself shows counts as one with an address.
        back = frozenset(node for node in never if node not in slurm.nodes)
        if back:
            judged = replace(judged, future=judged.future | back)
    return replace(judged, why=known.why)


def unasked(nodes: tuple[StaticNodeConf, ...], running: str) -> frozenset[str]:
    """Nodes that are written as `FUTURE` while nobody has looked up a name: new ones, and those that wait already.

    Parameters
    ----------
    running
        The slurm.conf that slurmctld mounts.
    """
    found, _ = _judged(nodes, running, "", frozenset(), frozenset())
    return found.future


def asking(
    snapshot: Snapshot, current: Object | None, found: Addresses, now: float, *, waits: bool = False
) -> tuple[tuple[Ask, ...], float | None]:
    """The next query to the agent, and when the one after that is due.

    Parameters
    ----------
    waits
        Whether something waits for the first answer.
    """
    pod = snapshot.pods.controller
    if pod is None or not (pod.get("status") or {}).get("podIP") or not _names(_text(current)):
        return (), None
    known = _known(snapshot.memory, pod)
    every = ASK_FIRST if waits else ASK_WAITING if found.future or found.missing else ASK_LIVE
    left = known.asked_at + every - now
    return ((Ask(NamesQuestion(pod, _names(_text(current)))),), every) if left <= 0 else ((), left)


def look_up_time(current: Object) -> float:
    """Maximum seconds for which slurmctld may resolve names when it reads these files."""
    return LOOK_UP * _asked(_text(current))


@lru_cache(maxsize=REMEMBERED)
def _names(text: str) -> frozenset[str]:
    """The names that slurmctld resolves when it reads a file, as many as the agent looks up."""
    return frozenset(islice(hosts.names_in(text), hosts.MOST))


@lru_cache(maxsize=REMEMBERED)
def _asked(text: str) -> int:
    """How many names slurmctld resolves when it reads a file."""
    return sum(1 for _ in hosts.names_in(text)) if text else 0


def _known(memory: Memory, pod: Object | None) -> Names:
    names = memory.answers.of(NamesQuestion)
    if names is None or pod is None or names.pod_uid != pod["metadata"]["uid"]:
        return Names("", float("-inf"))
    return names


def _text(config_map: Object | None) -> str:
    text: str = ((config_map or {}).get("data") or {}).get(SLURM_CONF, "")
    return text


@lru_cache(maxsize=REMEMBERED)
def _lookups(name: str, words: Words) -> tuple[tuple[str, str], ...]:
    """Nodes of a line of the spec whose names slurmctld resolves, each with that name."""
    if isinstance(words, TextProblem):
        return ()
    values = {word.folded: word.value for word in words} | {"nodename": name}
    if values.get("state", "").upper() in _NO_ADDRESS:
        return ()
    return tuple((node, address) for node, address in hosts.addresses(values) if not hosts.is_literal(address))


def _judged(
    nodes: tuple[StaticNodeConf, ...],
    running: str,
    proven: str,
    found: frozenset[str],
    missing: frozenset[str],
    *,
    is_new: bool = True,
) -> tuple[Addresses, tuple[str, ...]]:
    """The states of nodes, from the files and the resolved names.

    Also nodes that were never live, although they are in the file as if they were, and have no address.

    Parameters
    ----------
    is_new
        Whether a node that is in no file has never been live.
    """
    before, good = _states_in(running), _states_in(proven)
    future, unfound, unknown, never = set(), [], [], []
    for one in nodes:
        if one.names is None:
            # Such a spec is rejected as a whole; its nodes are not even named here.
            break
        for node, address in _lookups(one.name, one.words):
            lost = address in missing
            if lost:
                unfound.append(node)
            if before.get(node, is_new):
                if address not in found:
                    future.add(node)
                    if not lost:
                        unknown.append(node)
            elif lost and good.get(node, is_new):
                never.append(node)
    return Addresses(frozenset(future), tuple(unfound), tuple(unknown)), tuple(never)


@lru_cache(maxsize=REMEMBERED)
def _states_in(text: str) -> Mapping[str, bool]:
    """Nodes of a file, and whether they are `FUTURE`."""
    lines: Mapping[str, Line] = parse(text).nodes
    found: dict[str, bool] = {}
    for key, line in lines.items():
        found |= dict.fromkeys(hosts.expand(key), line.state == FUTURE)
    return MappingProxyType(found)


def some(names: tuple[str, ...]) -> str:
    """Nodes, for people: the first by name."""
    shown = ", ".join(names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"node{'s' if len(names) > 1 else ''} {shown}{more}"
