"""Lines of slurm.conf for nodes that a NodeSet may have some day, so that jobs for them queue instead of being refused.

Slurm refuses a job that no node it knows could run, drained or down ones included ("Requested node configuration is not
available"). A NodeSet without pods has no nodes, so it has records of nodes in the state FUTURE here: Slurm counts them
when it decides whether a job is possible, never allocates, resolves or pings them, and shows them to nobody, neither in
`sinfo` nor by REST (Slurm 24.11 and 26.05, measured in `tests/integration/slurm_conf/test_from_zero.py`).

They are not the records of the pods: a slurmd that registers itself ends at a name that slurm.conf has. So their names
have underscores, which no pod can have, and they stay, however many pods there are. `MaxNodeCount` grows by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.slurm.conf.syntax.directives import Directive, TextProblem, parse_words
from slinky_operator.slurm.conf.syntax.parsed import FUTURE, FUTURE_NODES, FUTURE_PART, Line, Parsed
from slinky_operator.slurm.pod_templates.shapes import POD_TEMPLATE, misfits
from slinky_operator.slurm.pod_templates.templates import RefusedFragment
from slinky_operator.slurm.slurmd import launch, node_conf, resources

NO_ADDRESS: Final = "127.0.0.1"
"""Address of all of them, so that nobody looks for one."""

_OF_NODES: Final = frozenset(
    (
        "feature",
        "features",
        "cpus",
        "boards",
        "sockets",
        "socketsperboard",
        "corespersocket",
        "threadspercore",
        "realmemory",
        "tmpdisk",
        "weight",
        "gres",
        "corespeccount",
        "cpuspeclist",
        "memspeclimit",
    )
)
"""Keys of a node's line by which Slurm decides whether a job fits. The others are about one slurmd, as its port."""


@dataclass(frozen=True, slots=True)
class FutureNodes:
    """The future nodes of a NodeSet."""

    count: int
    line: Line
    """The line that declares all of them, with what each offers."""


def of(nodeset: NodeSet) -> FutureNodes | None:
    """The future nodes that a NodeSet wants; None if it wants none, or its nodes cannot be described.

    What a slurmd would register with decides. A template that leaves that to the machine says nothing of CPUs and
    memory, and Slurm's own default counts: one CPU. Texts that no pod can be made from are reported elsewhere.
    """
    count = nodeset.spec.awaited_nodes
    if not count:
        return None
    template = nodeset.spec.template or {}
    if any(misfits(template, POD_TEMPLATE)):
        return None
    container = resources.own_container(nodeset)
    started = launch.read(container)
    if started.problems:
        return None
    try:
        given = resources.of(nodeset, [container])
        line = node_conf.node_line(nodeset, given, started.conf, machine=started.is_whole)
    except (RefusedFragment, node_conf.InvalidQuantity, node_conf.UnbalancedQuotes):
        return None
    words = parse_words(line)
    if isinstance(words, TextProblem):
        return None
    offered = (word for word in words if word.folded in _OF_NODES)
    name = Directive("NodeName", f"{nodeset.name}{FUTURE_PART}[0-{count - 1}]")
    address = Directive("NodeAddr", NO_ADDRESS)
    return FutureNodes(count, Line((name, *offered, address, Directive("State", FUTURE))))


def count_in(conf: Parsed) -> int:
    """How many future nodes a slurm.conf has."""
    matches = map(FUTURE_NODES.fullmatch, conf.future.values())
    return sum(int(match["last"]) + 1 for match in matches if match is not None)
