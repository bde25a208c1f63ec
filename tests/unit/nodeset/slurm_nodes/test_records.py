"""What happens to records whose pods are gone."""

from __future__ import annotations

from slinky_operator.nodeset.slurm_nodes import drains, records
from tests.unit.nodeset.builders import OURS, OWNER, job, node


def test_records_of_pods_that_are_gone() -> None:
    idle, busy = node(name="idle"), node("ALLOCATED+DYNAMIC_NORM", name="busy")
    ghost, mine = node("ALLOCATED+DYNAMIC_NORM", name="ghost"), node("IDLE+DRAIN+DYNAMIC_NORM", name="mine", reason="x")
    suspended = node(name="suspended")

    found = records.settle([idle, busy, ghost, mine, suspended], {"suspended": (job("SUSPENDED"),)}, {"ghost"})

    assert found == records.RecordCleanup(("idle",), ("ghost",), ("busy", "suspended"))
    ours = node("DOWN+DRAIN+NOT_RESPONDING+DYNAMIC_NORM", name="ours", reason=OURS)
    assert records.settle([ours], {}, set()) == records.RecordCleanup(("ours",))
    assert records.to_delete(["ours"], {"ours": ours}, {}, set(), OWNER) == ["ours"]
    assert records.settle([idle], None, set()) == records.RecordCleanup()


def test_a_node_that_is_down_is_waited_for_while_slurm_shows_jobs_on_it() -> None:
    """Jobs may have been asked for before it was set DOWN: nothing that comes later would wake up the controller."""
    gone = node("DOWN+DRAIN+NOT_RESPONDING+DYNAMIC_NORM", reason=OURS)

    assert records.settle([gone], {"a-0": (job("RUNNING"),)}, {"a-0"}) == records.RecordCleanup(busy=("a-0",))
    assert records.settle([gone], {}, {"a-0"}) == records.RecordCleanup(delete=("a-0",))


def test_a_drain_whose_reason_a_hook_of_slinky_has_written_over_is_nobodys() -> None:
    """Measured: `scontrol update state=down reason=preStop` keeps the drain and replaces its reason."""
    gone = node("DOWN+DRAIN+DYNAMIC_NORM", reason="preStop")

    assert not drains.is_ours(gone)
    assert not drains.is_foreign(gone)
    assert records.settle([gone], {}, set()) == records.RecordCleanup(("a-0",))
    assert records.to_delete(["a-0"], {"a-0": gone}, {}, set(), OWNER) == ["a-0"]
    assert records.why_blocked(gone, {}, OWNER) is not None
