"""The fair-share tree of the fake follows from what its jobs used."""

from __future__ import annotations

from datetime import timedelta

import pytest

from slurm_client import SlurmClient
from slurm_client.models import JobSpec
from slurm_client.testing import FakeSlurmrestd

SCRIPT = "#!/bin/sh\n"


async def test_shares_follow_from_what_jobs_used() -> None:
    async with FakeSlurmrestd(clock=lambda: 1_800_000_000) as fake, SlurmClient(fake.url, "token") as slurm:
        fake.world.share_tree.add("physics", shares=3)
        fake.world.share_tree.add("biology")
        for user in ("alice", "bob"):
            fake.world.share_tree.add(user, "physics", user=True)
        fake.world.share_tree.add("carol", "biology", user=True)
        fake.add_node("w-0", cpus=8)
        for user, account, cpus in (("alice", "physics", 3), ("bob", "physics", 1), ("carol", "biology", 4)):
            fake.add_job(nodes=["w-0"], cpus=cpus, user=user, account=account, time_limit=timedelta(minutes=1))
        await slurm.submit_job(JobSpec(script=SCRIPT, account="physics", hold=True))
        # They end after a minute and are forgotten five minutes later; what they used is not.
        fake.clock.advance(3600)
        assert len(fake.jobs) == 1
        shown = {share.name: share for share in await slurm.shares()}
        assert list(shown) == ["root", "physics", "alice", "bob", "biology", "carol"]
        assert {name: share.usage for name, share in shown.items()} == {
            "root": 480,
            "physics": 240,
            "alice": 180,
            "bob": 60,
            "biology": 240,
            "carol": 240,
        }
        assert [share.kind for share in shown.values() if share.name in {"root", "bob"}] == [
            ("ASSOCIATION",),
            ("USER",),
        ]
        assert (shown["physics"].shares_normalized, shown["physics"].effective_usage) == (0.75, 0.5)
        assert (shown["bob"].effective_usage, shown["bob"].usage_normalized) == (0.25, 0.125)
        assert shown["bob"].fairshare_level == 2.0
        # Those in the account that used less of its share go first, and in it who used less.
        users = [share for share in shown.values() if share.kind == ("USER",)]
        ranked = sorted(users, key=lambda share: -(share.fairshare_factor or 0))
        assert [share.name for share in ranked] == ["bob", "alice", "carol"]
        assert [round(share.fairshare_factor or 0, 3) for share in ranked] == [1.0, 0.667, 0.333]
        assert [share.name for share in await slurm.shares(accounts=["biology"])] == ["biology", "carol"]
        assert [share.name for share in await slurm.shares(users=["bob"], accounts=["physics"])] == ["physics", "bob"]


async def test_nobody_has_used_anything_yet() -> None:
    async with FakeSlurmrestd() as fake, SlurmClient(fake.url, "token") as slurm:
        assert await slurm.shares() == ()
        fake.world.share_tree.add("alice", user=True)
        (_, alice) = await slurm.shares()
        assert (alice.usage, alice.effective_usage, alice.shares_normalized) == (0, 0.0, 1.0)


def test_a_tree_has_each_branch_once_and_below_another() -> None:
    fake = FakeSlurmrestd()
    fake.world.share_tree.add("physics")
    with pytest.raises(ValueError, match="already"):
        fake.world.share_tree.add("physics")
    with pytest.raises(ValueError, match="already"):
        fake.world.share_tree.add("root")
    with pytest.raises(ValueError, match="no account chemistry"):
        fake.world.share_tree.add("alice", "chemistry", user=True)
