"""What the plugin says of nodes and jobs agrees with the rules of the operator: both are about the same Slurm."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.jobs import near_misses
from kubectl_slurm.rules.nodes import service
from slinky_operator.autoscaling import observation
from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.autoscaling.rules.features import Constraints
from slinky_operator.autoscaling.rules.needs import Ask, Reader
from slinky_operator.autoscaling.rules.packing import Packing, Partition
from slinky_operator.autoscaling.rules.rooms import Room
from slinky_operator.cluster.parts.nodes.out_of_service import out_of_service
from slinky_operator.slurm.nodes.drain_reasons import PARTING, PREFIX
from slurm_client.models import Job, Node
from tests.unit.kubectl_slurm.samples import NOW, job, node

BASES: Final = ("IDLE", "ALLOCATED", "MIXED", "DOWN", "ERROR", "INVALID")
PASSING: Final = frozenset(("NOT_RESPONDING", "MAINTENANCE", "REBOOT_ISSUED", "COMPLETING"))
"""States that end without a person: the plugin shows them, the operator does not report them."""

FLAGS: Final = (*sorted(PASSING), *sorted(service.ASLEEP), "DRAIN", "FAIL", "INVALID_REG", "RESERVED", "DYNAMIC_NORM")
REASONS: Final = ("", "new fans", f"{PREFIX}scale-in", PARTING)


def nodes() -> Iterator[Node]:
    """One for each state with up to two flags, and each kind of reason."""
    for count in range(3):
        for base, flags, reason in itertools.product(BASES, itertools.combinations(FLAGS, count), REASONS):
            yield node("n", "+".join((base, *flags)), reason=reason)


def test_the_plugin_shows_each_node_that_the_operator_reports_out_of_service() -> None:
    awake = [one for one in nodes() if one.state.flags.isdisjoint(service.ASLEEP)]
    reported = [one for one in awake if out_of_service([one])]
    assert len(reported) > 100
    assert [one.state for one in reported if not service.is_out(one)] == []


def test_the_operator_reports_each_node_that_the_plugin_shows_unless_it_passes_or_is_the_operators() -> None:
    shown = [one for one in nodes() if service.is_out(one) and service.who(one) != "the operator"]
    assert len(shown) > 100
    assert [one.state for one in shown if not out_of_service([one]) and one.state.flags.isdisjoint(PASSING)] == []


def fits(one: Job, on: Node) -> bool:
    """Whether autoscaling takes a job to start on a node as it is."""
    (standing,) = observation.view((), (), {on.name: on}, (), NOW).nodes
    cpus, memory, gres = standing.free
    room = Room("", standing.shape, cpus, memory, dict(gres), on.name, not standing.busy)
    effort = Effort(time.monotonic)
    asked = Reader(NOW, Constraints([standing.shape.features]), effort, nodes=[on.name]).read(one)
    assert isinstance(asked, Ask)
    return Packing({"all": Partition([room])}, effort).place([asked.need]) is not None


ASKS: Final = st.fixed_dictionaries(
    {"cpus": st.integers(1, 20)},
    optional={
        "memory_per_node_mib": st.sampled_from((1024, 32768, 65536, 65537)),
        "memory_per_cpu_mib": st.sampled_from((1024, 8192)),
        "features": st.sampled_from(("cpu", "gpu", "cpu&gpu", "cpu|gpu")),
        "tres_per_node": st.sampled_from(("gres/gpu:1", "gres/gpu:a100:2", "gres/gpu:3")),
        "tres_per_job": st.sampled_from(("gres/gpu:1", "gres/gpu:h100:1")),
        "excluded_nodes": st.sampled_from(("n-[0-1]", "n-1")),
        "shared": st.just(("none",)),
    },
)
HAS: Final = st.fixed_dictionaries(
    {},
    optional={
        "alloc_cpus": st.integers(0, 16),
        "alloc_memory_mib": st.sampled_from((0, 60000)),
        "features": st.sampled_from((("cpu",), ("cpu", "gpu"))),
        "gres": st.sampled_from(("gpu:a100:2", "gpu:h100:1")),
        "gres_used": st.sampled_from(("", "gpu:a100:1")),
    },
)


@settings(max_examples=300, deadline=None)
@given(ASKS, HAS)
@example({"cpus": 17}, {})
@example({"cpus": 1}, {})
def test_a_node_lacks_nothing_for_a_job_where_autoscaling_would_place_it(
    asks: dict[str, Any], has: dict[str, Any]
) -> None:
    has = {**has, "active_features": has.get("features", ("cpu",))}
    one, on = job(1, **asks), node("n-0", "MIXED" if has.get("alloc_cpus") else "IDLE", **has)
    (found,) = near_misses.examine(one, SlurmPicture(now=NOW, nodes=(on,)))
    assert (not found.misses) is fits(one, on), found.misses
