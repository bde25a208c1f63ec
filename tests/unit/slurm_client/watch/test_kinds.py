"""Watches of jobs, partitions, reservations and licenses."""

from __future__ import annotations

from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.watch.watching import client, next_of, until


async def test_jobs_and_partitions_are_watched_as_well(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    job = fake.add_job(nodes=["w-0"])
    async with client(fake) as slurm, slurm.watch_jobs() as jobs, slurm.watch_partitions() as partitions:
        assert (await next_of(jobs)).new == await slurm.job(job.id)
        assert (await next_of(partitions)).key == "all"
        fake.world.jobs_changed -= 100
        polls = slurm.job_watch.status.polls
        await until(lambda: slurm.job_watch.status.polls > polls + 3)
        assert not jobs.pending()
        fake.finish_job(job.id)
        event = await next_of(jobs)
        assert (event.old.state.base, event.new.state.base) == ("RUNNING", "COMPLETED")
        fake.forget_job(job.id)
        await slurm.job_watch.refresh(str(job.id))
        assert (await next_of(jobs)).kind == "removed"


async def test_reservations_are_watched(fake: FakeSlurmrestd) -> None:
    fake.world.reserve({"name": "one", "users": ["alice"]})
    async with client(fake) as slurm, slurm.watch_reservations() as events:
        assert await events.initial() == {"one": await slurm.reservation("one")}
        fake.world.reserve({"name": "one", "users": ["bob"]})
        event = await next_of(events)
        assert (event.old.users, event.new.users) == (("alice",), ("bob",))
        fake.world.unreserve("one")
        assert (await slurm.reservation_watch.refresh("one")) == {"one": None}
        assert (await next_of(events)).kind == "removed"


async def test_licenses_are_watched(fake: FakeSlurmrestd) -> None:
    fake.world.add_license("matlab", 3)
    async with client(fake) as slurm, slurm.watch_licenses() as events:
        assert list(await events.initial()) == ["matlab"]
        fake.world.add_license("matlab", 3, used=2)
        event = await next_of(events)
        assert (event.old.free, event.new.free) == (3, 1)
        fake.world.add_license("matlab", 3, used=3)
        found = await slurm.license_watch.refresh("matlab", "nosuch")
        assert found["matlab"] is not None
        assert found["matlab"].free == 0
        assert found["nosuch"] is None


async def test_jobs_that_are_written_as_they_were_stay_the_same_objects(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0", cpus=64)
    ids = [fake.add_job(nodes=["w-0"], cpus=1).id for _ in range(30)]
    async with client(fake) as slurm, slurm.watch_jobs() as events:
        before = dict(await events.initial())
        for job_id in ids[:20]:
            fake.forget_job(job_id)
        fake.set_job_state(ids[25], "SUSPENDED")
        await next_of(events, lambda event: event.kind == "changed")
        now = slurm.job_watch.objects
        assert len(now) == 10
        again = [key for key, job in now.items() if job is not before[key]]
        # The first one tells where the list goes on.
        assert again == [str(ids[20]), str(ids[25])]
