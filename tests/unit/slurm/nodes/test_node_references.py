"""Which jobs and reservations name a node, by lists that users write."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from slinky_operator.slurm.nodes import node_references
from slinky_operator.slurm.nodes.node_references import FEW, MOST_CHARACTERS, MOST_LISTS, MOST_WORK, find, remembered
from slurm_client.models import Job, JobState, Reservation
from slurm_client.notation import hostlist

PENDING, RUNNING, COMPLETED = JobState("PENDING"), JobState("RUNNING"), JobState("COMPLETED")
NAMES = ("c-0", "c-3", "c-12")


def job(number: int, required: str = "", excluded: str = "", state: JobState = PENDING, **values: object) -> Job:
    return Job(id=number, state=state, required_nodes=required, excluded_nodes=excluded, **values)  # type: ignore[arg-type]


def reservation(*flags: str, nodes: str = "c-[3-4]") -> Reservation:
    return Reservation(name="r", node_list=nodes, flags=frozenset(flags))


def test_jobs_that_have_not_ended_name_what_they_require_and_exclude() -> None:
    jobs = [
        job(1, "c-[0-3]", state=RUNNING, nodes=("c-0", "c-1")),
        job(2, excluded="c-3,d-[0-9]"),
        job(3, "c-12", array_job_id=3),
        job(4, "c-12", state=JobState("RUNNING"), array_job_id=3, array_task_id=7),
        job(5, "c-12", state=COMPLETED),
        job(6, "c-12", state=JobState("COMPLETED", frozenset({"COMPLETING"}))),
        job(7),
    ]

    assert find(jobs, (), NAMES) == {
        "c-0": ("required by job 1",),
        "c-3": ("required by job 1", "excluded by job 2"),
        "c-12": ("required by job 3", "required by job 3_7", "required by job 6"),
    }
    assert node_references.are_given(jobs, ())
    assert not node_references.are_given([job(7)], [reservation()])


@pytest.mark.parametrize(
    ("base", "is_kept"),
    [("PENDING", True), ("NODE_FAIL", True), ("PREEMPTED", True), ("COMPLETED", False), ("CANCELLED", False)],
)
def test_a_job_that_comes_back_may_have_lost_any_node_until_it_has_left_the_others(base: str, is_kept: bool) -> None:
    """Slurm shows the nodes alone on which it still ends, and finds none of them once the lost one has no record."""
    ending = job(18, state=JobState(base, frozenset({"COMPLETING"})), nodes=("b-1",))
    why = ("perhaps held by job 18, which ends on other nodes before it runs again",)
    assert find(iter([ending]), (), ["b-0"]) == ({"b-0": why} if is_kept else {})
    assert node_references.are_given([ending], ()) is is_kept
    assert find([job(18, state=JobState(base))], (), ["b-0"]) == {}
    without = job(18, state=ending.state)
    assert remembered([without]) == ((without,) if is_kept else ())
    many = [job(number, state=JobState("PENDING", frozenset({"COMPLETING"}))) for number in range(100)]
    assert len(find(many, (), ["b-0"])["b-0"]) == FEW


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (("SPEC_NODES",), {"c-3": ("named by reservation r",)}),
        (("SPEC_NODES", "ALL_NODES"), {}),
        (("SPEC_NODES", "PART_NODES"), {}),
        (("REPLACE",), {}),
        ((), {}),
    ],
)
def test_a_reservation_counts_if_it_was_made_by_names(flags: tuple[str, ...], names: dict[str, object]) -> None:
    assert find((), [reservation(*flags)], NAMES) == names


def test_the_operators_own_reservation_follows_its_nodes() -> None:
    flags = frozenset({"SPEC_NODES", "MAINT"})
    for name, counts in (("slurm-operator-night-1", False), ("night", True)):
        one = Reservation(name=name, node_list="c-[3-4]", flags=flags)
        assert bool(find((), [one], NAMES)) is counts
        assert node_references.are_given((), [one]) is counts
    by_hand = Reservation(name="slurm-operator-night-1", node_list="c-[3-4]", flags=frozenset({"SPEC_NODES"}))
    assert find((), [by_hand], NAMES)


@pytest.mark.parametrize("text", ["c-[0-", "c-[]", "x[0-99999999]", ",".join(f"d{n}" for n in range(70_000)), "[...]"])
def test_a_list_that_cannot_be_read_names_every_node(text: str) -> None:
    told = ("perhaps required by job 9, whose list of nodes cannot be read",)
    assert find([job(9, text)], (), NAMES) == dict.fromkeys(NAMES, told)


def test_few_of_many_references_are_told() -> None:
    (told,) = find([job(number, "c-3") for number in range(1, 100)], (), ["c-3"]).values()
    assert told == tuple(f"required by job {number + 1}" for number in range(FEW))


def test_the_work_on_all_lists_is_bounded_and_what_is_left_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def expand(text: str) -> tuple[str, ...]:
        names = hostlist.expand(text)
        made.append(len(names))
        return names

    counted = SimpleNamespace(expand=expand, size=hostlist.size, LIMIT=hostlist.LIMIT)
    monkeypatch.setattr(node_references, "hostlist", counted)
    told = find([job(number, f"d-[0-{60_000 - number}]") for number in range(20_000)], (), NAMES)
    assert sum(made) <= MOST_WORK
    assert set(told) == set(NAMES)
    assert all(len(one) == FEW and "cannot be read" in one[0] for one in told.values())


def test_a_list_is_read_once_whatever_the_number_of_its_jobs() -> None:
    jobs = [job(number, "d-[0-9999]") for number in range(20_000)]
    assert find(jobs, (), NAMES, most=20_000) == {}


def test_of_jobs_without_nodes_only_what_names_nodes_is_remembered() -> None:
    running = job(1, state=RUNNING, nodes=("c-0",), comment="x")
    jobs = [
        running,
        job(2),
        job(3, state=COMPLETED, required="c-0"),
        *(job(n, "c-3", comment="x" * 99) for n in range(10, 99)),
    ]

    kept = remembered(jobs)

    assert kept[0] is running
    assert [one.id for one in kept] == [1, *range(10, 10 + FEW)]
    assert all(one.required_nodes == "c-3" and one.comment == "" and one.is_pending for one in kept[1:])


@pytest.mark.parametrize(
    "jobs",
    [
        [job(number, f"d-{number}") for number in range(20_000)],
        [job(number, f"d-{number}" + ",d-1" * 5_000) for number in range(100)],
    ],
)
def test_what_is_remembered_of_many_lists_is_bounded_and_the_others_count(jobs: list[Job]) -> None:
    kept = remembered(jobs)
    assert len(kept) <= MOST_LISTS + FEW
    assert sum(len(one.required_nodes) for one in kept) <= MOST_CHARACTERS + 20
    assert "cannot be read" in find(kept, (), NAMES)["c-3"][0]
