"""Job history by windows of time: no job twice, none lost, and filters that Slurm does not know."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_client import errors
from slurm_client.connection.intake import Intake
from tests.unit.slurm_client.database.slurmdbd import Run, Slurmdbd, client
from tests.unit.slurm_client.spec import complaints_about_request

BEGIN = 1_800_000_000


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(BEGIN + seconds, UTC)


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    """Jobs whose times often lie on borders of windows; each run of a job is submitted at another time."""
    found: dict[tuple[int, int], Run] = {}
    for number in draw(st.lists(st.integers(1, 6), max_size=10)):
        eligible, wait, length = draw(st.integers(-5, 60)), draw(st.integers(0, 20)), draw(st.integers(0, 40))
        start = BEGIN + eligible + wait
        ended = draw(st.booleans())
        state = draw(st.sampled_from(["COMPLETED", "FAILED"])) if ended else "RUNNING"
        run = Run(number, BEGIN + eligible, start, start + length if ended else 0, state)
        found[number, run.eligible] = run
    return list(found.values())


@settings(max_examples=40)
@given(runs(), st.integers(1, 70), st.integers(1, 25), st.sampled_from([None, ["FAILED"], ["FAILED", "RUNNING"]]))
async def test_windows_give_what_one_request_gives(
    jobs: list[Run], length: int, step: int, states: list[str] | None
) -> None:
    filters: Any = {} if states is None else {"states": states}
    async with client(Slurmdbd(jobs)) as slurm:
        at_once = await slurm.db.jobs(at(0), at(length), **filters)
        in_steps = [job async for job in slurm.db.history(at(0), at(length), step=timedelta(seconds=step), **filters)]
    keys = Counter((job.id, job.submit_time) for job in in_steps)
    assert keys == Counter((job.id, job.submit_time) for job in at_once)
    assert not keys or max(keys.values()) == 1


async def test_windows_overlap_by_a_second_and_steps_are_left_out_on_request() -> None:
    slurmdbd = Slurmdbd()
    async with client(slurmdbd) as slurm:
        assert [job async for job in slurm.db.history(at(0), at(25), step=timedelta(seconds=10), steps=False)] == []
    assert [(query["start_time"], query["end_time"]) for query in slurmdbd.queries] == [
        (f"uts{BEGIN}", f"uts{BEGIN + 10}"),
        (f"uts{BEGIN + 9}", f"uts{BEGIN + 20}"),
        (f"uts{BEGIN + 19}", f"uts{BEGIN + 25}"),
    ]
    for query in slurmdbd.queries:
        assert query["skip_steps"] == query["show_duplicates"] == query["disable_truncate_usage_time"] == "true"


async def test_a_job_that_ran_no_second_is_not_lost_between_two_windows() -> None:
    slurmdbd = Slurmdbd([Run(1, BEGIN, BEGIN + 10, BEGIN + 10)])
    async with client(slurmdbd) as slurm:
        found = slurm.db.history(at(0), at(20), step=timedelta(seconds=10), states=["RUNNING"])
        assert [job.id async for job in found] == [1]


async def test_a_window_that_is_too_large_is_asked_for_in_halves() -> None:
    slurmdbd = Slurmdbd(
        [
            Run(number, BEGIN + number, BEGIN + number, BEGIN + number, more={"script": "x" * 1000})
            for number in range(1, 65)
        ]
    )
    async with client(slurmdbd, intake=Intake(16_000)) as slurm:
        with pytest.raises(errors.TooLarge):
            await slurm.db.jobs(at(0), at(80))
        found = [job.id async for job in slurm.db.history(at(0), at(80))]
    assert found == list(range(1, 65))


async def test_a_second_with_too_many_jobs_is_an_error() -> None:
    slurmdbd = Slurmdbd(
        [Run(number, BEGIN + 3, BEGIN + 3, BEGIN + 3, more={"script": "x" * 1000}) for number in range(64)]
    )
    async with client(slurmdbd, intake=Intake(16_000)) as slurm:
        with pytest.raises(errors.TooLarge):
            [job async for job in slurm.db.history(at(0), at(8))]


async def test_a_time_that_is_too_long_for_slurmdbd_is_asked_for_in_halves() -> None:
    too_wide = {"errors": [{"error_number": 7007, "error": "Too wide of a date range in query"}]}
    slurmdbd = Slurmdbd(answers={"slurmdb/jobs": (500, too_wide)})
    async with client(slurmdbd) as slurm:
        with pytest.raises(errors.InvalidRequest, match="7007"):
            [job async for job in slurm.db.history(at(0), at(8))]
    assert len([each for each in slurmdbd.requests if "jobs" in each]) == 4


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"qos": ["high"]}, [1]),
        ({"groups": ["staff", "root"]}, [1, 2]),
        ({"reservations": ["maint"]}, [2]),
        ({"reasons": ["Priority"]}, [2]),
        ({"nodes": "w-[0-1]"}, [1, 2]),
        ({"nodes": "w-0"}, [1]),
        ({"exit_code": 3}, [2]),
        ({"exit_code": 3, "qos": ["high"]}, []),
        ({"users": ["root", "alice"]}, [1, 2]),
        ({"users": ["alice"]}, [2]),
    ],
)
async def test_filters_that_slurm_does_not_know_hold_too(filters: Any, found: list[int]) -> None:
    slurmdbd = Slurmdbd(
        [
            Run(1, BEGIN, BEGIN, BEGIN + 1, more={"qos": "high", "group": "staff", "nodes": "w-[0-1]"}),
            Run(
                2,
                BEGIN + 1,
                BEGIN + 1,
                BEGIN + 2,
                user="alice",
                more={
                    "group": "root",
                    "nodes": "w-1",
                    "reservation": {"id": 1, "name": "maint"},
                    "state": {"current": ["FAILED"], "reason": "Priority"},
                    "exit_code": {"return_code": {"set": True, "infinite": False, "number": 3}},
                },
            ),
        ]
    )
    async with client(slurmdbd) as slurm:
        assert [job.id for job in await slurm.db.jobs(at(0), at(10), **filters)] == found
        assert [job.id async for job in slurm.db.history(at(0), at(10), **filters)] == found


async def test_lists_are_sent_with_commas_and_one_state_at_a_time() -> None:
    slurmdbd = Slurmdbd()
    async with client(slurmdbd) as slurm:
        await slurm.db.jobs(
            at(0),
            at(1),
            accounts=["a", "b"],
            names=["one job", "two"],
            associations=[1, 2],
            states=["failed", "TIMEOUT"],
        )
    assert [query["state"] for query in slurmdbd.queries] == ["FAILED", "TIMEOUT"]
    for query in slurmdbd.queries:
        assert (query["account"], query["job_name"], query["association"]) == ("a,b", "one job,two", "1,2")


@pytest.mark.parametrize(
    "filters",
    [
        {"users": []},
        {"states": ["BOGUS"]},
        {"accounts": "physics"},
        {"names": ["a,b"]},
        {"users": ["a,b"]},
        {"associations": ["1"]},
        {"exit_code": "3"},
        {"nodes": ""},
        {"steps": "no"},
        {"timeout": "5"},
    ],
)
async def test_bad_filters_are_refused_before_anything_is_sent(filters: Any) -> None:
    slurmdbd = Slurmdbd()
    async with client(slurmdbd) as slurm:
        with pytest.raises(errors.InvalidArgument) as refused:
            await slurm.db.jobs(at(0), at(1), **filters)
        assert refused.value.field.startswith(next(iter(filters)))
        with pytest.raises(errors.InvalidArgument):
            [job async for job in slurm.db.history(at(0), at(1), **filters)]
        with pytest.raises(TypeError, match="nosuch"):
            await slurm.db.jobs(at(0), at(1), nosuch=["x"])  # type: ignore[call-arg]
    assert not slurmdbd.requests


@pytest.mark.parametrize("until", [at(0), at(-1), at(1).replace(tzinfo=None)])
async def test_a_time_that_ends_before_it_begins_is_refused(until: datetime) -> None:
    slurmdbd = Slurmdbd()
    async with client(slurmdbd) as slurm:
        with pytest.raises(errors.InvalidArgument, match="until"):
            await slurm.db.jobs(at(0), until)
    assert not slurmdbd.requests


async def test_a_job_is_its_last_run_and_the_task_or_component_that_was_named() -> None:
    runs = [Run(7, BEGIN, BEGIN, BEGIN + 1, "FAILED"), Run(7, BEGIN + 5, BEGIN + 5, BEGIN + 6)]
    tasks = [
        Run(8, BEGIN, 0, 0, more={"array": {"job_id": 7, "task_id": {"set": True, "number": 1}}}),
        Run(9, BEGIN, 0, 0, more={"het": {"job_id": 7, "job_offset": {"set": True, "number": 2}}}),
    ]
    slurmdbd = Slurmdbd()
    slurmdbd.answers["slurmdb/job/"] = (200, {"jobs": [run.entry for run in [*runs, *tasks]]})
    async with client(slurmdbd) as slurm:
        assert (await slurm.db.job(7)).submit_time == at(5)
        assert (await slurm.db.job("7_1")).id == 8
        assert (await slurm.db.job("7+2")).id == 9
        assert [job.id for job in await slurm.db.job_records(7)] == [7, 7, 8, 9]
        assert [job.id for job in await slurm.db.job_records("7_1")] == [8]
        with pytest.raises(errors.NotFound, match="no job 7_5"):
            await slurm.db.job("7_5")
        slurmdbd.answers["slurmdb/job/"] = (200, {"jobs": [], "warnings": [{"description": "found nothing"}]})
        with pytest.raises(errors.NotFound, match="no job 4711"):
            await slurm.db.job(4711)
        assert await slurm.db.job_records(4711) == ()
    assert [each for each in slurmdbd.requests if "slurmdb/job/7" in each][1:3] == [
        "GET slurmdb/job/7_1",
        "GET slurmdb/job/7",
    ]


async def test_a_record_is_changed_by_its_number_task_or_component() -> None:
    component = Run(9, BEGIN, 0, 0, more={"het": {"job_id": 7, "job_offset": {"set": True, "number": 2}}})
    changed = ["3 submitted at 2026-11-22T17:21:31", "4 submitted at 2026-11-22T17:21:31"]
    slurmdbd = Slurmdbd(answers={"slurmdb/job/8": (304, None)})
    slurmdbd.answers["slurmdb/job/"] = (200, {"jobs": [component.entry], "results": changed})
    async with client(slurmdbd) as slurm:
        assert await slurm.db.update_job("3_1", comment="", extra="e") == (3, 4)
        await slurm.db.update_job("7+2", wckey="w")
        with pytest.raises(errors.NotFound, match="no job 8"):
            await slurm.db.update_job(8, admin_comment="a")
        with pytest.raises(errors.InvalidArgument, match="nothing to change"):
            await slurm.db.update_job(8)
    assert [each for each in slurmdbd.requests if "POST" in each] == [
        "POST slurmdb/job/3_1",
        "POST slurmdb/job/9",
        "POST slurmdb/job/8",
    ]
    assert slurmdbd.bodies == [
        {"comment": {"job": ""}, "extra": "e"},
        {"wckey": "w"},
        {"comment": {"administrator": "a"}},
    ]
    for body in slurmdbd.bodies:
        assert complaints_about_request("v0.0.45", "db_post_job", body) == []
    async with client(slurmdbd, api_version="v0.0.42") as slurm:
        with pytest.raises(errors.NotSupported):
            await slurm.db.update_job(8, comment="x")
    assert len(slurmdbd.bodies) == 3
