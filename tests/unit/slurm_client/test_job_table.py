"""The fake's table of jobs: its indexes say what a look at all jobs says, whatever has changed."""

from __future__ import annotations

import random

import pytest

from slurm_client.models import Job, JobState
from slurm_client.testing.slurmctld.table import JobTable

NODES = ("a", "b", "c")


def any_job(luck: random.Random, number: int) -> Job:
    return Job(
        id=number,
        state=JobState.from_words([luck.choice(("PENDING", "RUNNING", "COMPLETED"))]),
        nodes=tuple(luck.sample(NODES, luck.randrange(3))),
        hold=luck.random() < 0.5,
        dependency="afterok:1" if luck.random() < 0.2 else "",
        array_job_id=luck.choice((None, 1, 2)),
        het_job_id=luck.choice((None, 3)),
    )


def check(table: JobTable) -> None:
    by_number = [table[number] for number in sorted(table)]
    assert table.waiting() == [one.id for one in by_number if one.is_pending and (one.dependency or not one.hold)]
    for name in NODES:
        assert table.naming(name) == [one for one in by_number if name in one.nodes]
    for number in range(12):
        assert table.together(number) == [
            one for one in by_number if number in {one.id, one.array_job_id, one.het_job_id}
        ]


@pytest.mark.parametrize("seed", range(20))
def test_the_indexes_follow_from_each_change(seed: int) -> None:
    luck, table = random.Random(seed), JobTable()  # noqa: S311 - to be repeated
    kept: dict[int, Job] = {}
    for step in range(60):
        number = luck.randrange(1, 10)
        what = luck.random()
        if what < 0.6:
            table[number] = any_job(luck, number)
        elif what < 0.7:
            _ = table.pop(number, None)
        elif what < 0.8 and number in table:
            del table[number]
        elif what < 0.95:
            table.restore(kept)
            assert table == kept
        if step % 10 == 0:
            kept = dict(table)
        check(table)
    table.clear()
    check(table)


def test_what_would_pass_the_indexes_by_is_refused() -> None:
    table = JobTable()
    job = any_job(random.Random(0), 1)  # noqa: S311
    with pytest.raises(NotImplementedError):
        table.update({1: job})
    with pytest.raises(NotImplementedError):
        table.setdefault(1, job)
    with pytest.raises(NotImplementedError):
        table |= {1: job}
    with pytest.raises(NotImplementedError):
        table.popitem()
