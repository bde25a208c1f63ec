"""Lines of nodes outside Kubernetes stay while jobs have, or name, what is taken away."""

from __future__ import annotations

import pytest

from slinky_api.conditions import Reason
from slinky_operator.cluster.rollout.in_use.names import MOST_NAMES
from slinky_operator.cluster.rollout.in_use.removals import JobUse, Kept, ReservationUse, Use, keep
from slinky_operator.slurm.conf import ConfFiles, parse_words

HAS = "CPUs=2 Feature=fast,big"
BEFORE = f"NodeSet=own Feature=own\nNodeName=c-[0-3] {HAS}\nNodeName=d {HAS}\n"
REMOVED = f"NodeSet=own Feature=own\nNodeName=c-[0-2] {HAS}\nNodeName=d {HAS}\n"
BARE = BEFORE.replace("fast,", "")
OTHER = BEFORE.replace("c-[0-3] CPUs=2", "c-[0-3] CPUs=4")


def kept_of(wanted: str, use: Use) -> Kept:
    before, after = (ConfFiles.read({"slurm.conf": text}) for text in (BEFORE, wanted))
    return keep(before, after, use, 4, live=True)


def job(number: int = 7, *nodes: str, named: str = "", features: str = "", partition: str = "all") -> JobUse:
    holding = bool(nodes)
    return JobUse(number, frozenset({partition}), frozenset(nodes), frozenset(), holding, named, features)


@pytest.mark.parametrize(
    ("wanted", "there", "stays"),
    [
        (REMOVED, job(7, "c-3"), True),
        (REMOVED, job(7, "c-2"), False),
        # Required or excluded, pending or running elsewhere.
        (REMOVED, job(7, named="c-3"), True),
        (REMOVED, job(7, "c-0", named="c-[0-3]"), True),
        (REMOVED, job(7, "c-0", named="c-[0-2],d"), False),
        (REMOVED, job(7, named="c-["), True),
        (REMOVED, job(7, named="x-[0-99999999]"), True),
        # Names do not matter if only the hardware changes, jobs on the nodes do.
        (OTHER, job(7, named="c-3"), False),
        (OTHER, job(7, "c-3"), True),
        (BARE, job(7, features="fast"), True),
        (BARE, job(7, features="[rack1*2&fast*4]"), True),
        (BARE, job(7, features="big&faster"), False),
        (BARE, job(7, features="x|" * 3000), True),
        (BARE, job(7, "c-3"), False),
    ],
)
def test_a_line_stays_for_jobs_that_would_end_or_be_held(wanted: str, there: JobUse, stays: bool) -> None:
    kept = kept_of(wanted, Use(0.0, "", (there,)))
    assert [one.name for one in kept.nodes][:1] == (["c-[0-3]"] if stays else [])
    assert kept.asks
    if stays:
        assert kept.reason is Reason.NODES_IN_USE
        assert kept.why[0] == "node c-[0-3] stays as it is for job 7"
        assert kept.nodes[0].words == parse_words(HAS)


def test_a_reservation_keeps_its_nodes() -> None:
    use = Use(0.0, "", (), (ReservationUse("maint", "", frozenset({"c-3"})),))
    assert kept_of(REMOVED, use).why == ("node c-[0-3] stays as it is for reservation maint",)


def test_without_an_answer_every_changed_line_stays() -> None:
    for wanted in (REMOVED, BARE, OTHER):
        kept = kept_of(wanted, Use(0.0, "", why="no connection"))
        assert kept.nodes
        assert kept.reason is Reason.CONFIG_PENDING
        assert "until Slurm says what is on it (no connection)" in kept.why[0]


def test_a_feature_that_another_line_or_a_nodeset_has_is_not_lost() -> None:
    waits = Use(0.0, "", (job(features="fast"), job(8, features="own")))
    others = BEFORE.replace(f"NodeName=d {HAS}", "NodeName=d CPUs=2")
    assert kept_of(others, waits).nodes == ()


def test_lists_beyond_the_budget_count_as_naming_every_node() -> None:
    few = [job(number, named=f"x-[0-{MOST_NAMES // 2}]") for number in (1, 2)]
    many = [job(number, named=f"x{number}-[0-{MOST_NAMES // 2}]") for number in (3, 4)]
    assert kept_of(REMOVED, Use(0.0, "", tuple(few))).nodes == ()
    kept = kept_of(REMOVED, Use(0.0, "", (*few, *many)))
    assert kept.why == ("node c-[0-3] stays as it is for jobs 3, 4",)
