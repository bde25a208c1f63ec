"""One suite for real Slurm of both releases, for each data parser they serve, and for the fake: all must agree.

Nodes and jobs have separate files.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from slurm_client import MintedToken, SlurmClient, StaticToken, errors
from slurm_client.models import INFINITE, JobSpec, ReservationSpec
from slurm_client.operations.partitions import PartitionWishes

pytestmark = pytest.mark.smoke

if TYPE_CHECKING:
    from tests.integration.slurm_client.targets import Target


async def test_the_newest_parser_of_the_server_is_chosen(target: Target) -> None:
    async with target.client(None) as slurm:
        assert await slurm.connect() == ("v0.0.42" if target.release < "25" else "v0.0.45")
        assert slurm.slurm_version == target.release


async def test_a_pinned_parser_is_spoken_and_a_foreign_one_refused(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        assert await slurm.connect() == version
    foreign = "v0.0.45" if target.release < "25" else "v0.0.40"
    async with target.client(foreign) as slurm:
        with pytest.raises(errors.NotSupported):
            await slurm.nodes()


async def test_ping_says_who_answers(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        (ping,) = await slurm.ping()
    assert ping.responding
    assert ping.primary
    assert ping.hostname


async def test_what_is_not_there_is_not_found_everywhere(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        for call in (
            slurm.node("nosuch"),
            slurm.drain_nodes(["nosuch"], "reason"),
            slurm.delete_node("nosuch"),
            slurm.partition("nosuch"),
            slurm.job(999_999),
            slurm.cancel_job(999_999),
            slurm.update_job(999_999, JobSpec(comment="c")),
            slurm.reservation("nosuch"),
        ):
            with pytest.raises(errors.NotFound):
                await call


async def test_partitions_have_their_fields(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        partition = await slurm.partition("all")
        assert partition in tuple(await slurm.partitions())
    assert partition.is_up
    assert {"w-0", "w-1"} <= set(partition.nodes)
    assert partition.node_sets == "ALL"
    assert partition.max_time is INFINITE
    assert partition.max_nodes is INFINITE
    assert partition.default_time is None
    assert (partition.priority_tier, partition.priority_job_factor) == (1, 1)
    if version >= "v0.0.45":
        assert "DEFAULT" in partition.flags
    assert partition.total_cpus >= 3


async def test_partitions_are_written_where_the_parser_can(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        if version < "v0.0.45":
            with pytest.raises(errors.NotSupported):
                await slurm.create_partition("p2", nodes="w-0")
            return
        with pytest.raises(errors.NotFound):
            await slurm.update_partition("p2", state="DRAIN")
        await slurm.create_partition("p2", state="UP", nodes="w-0")
        with pytest.raises(errors.Conflict):
            await slurm.create_partition("p2")
        await slurm.update_partition("p2", state="DRAIN", nodes="w-0")
        partition = await slurm.partition("p2")
        assert partition.state.base == "DRAIN"
        assert partition.nodes == ("w-0",)
        await slurm.delete_partition("p2")
        with pytest.raises(errors.NotFound):
            await slurm.delete_partition("p2")


async def test_many_partitions_are_written_in_one_call_and_each_has_a_result(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        if version < "v0.0.45":
            for call in (slurm.create_partitions, slurm.update_partitions):
                with pytest.raises(errors.NotSupported):
                    await call({"m1": {}})
            return
        wanted: dict[str, PartitionWishes] = {
            "m1": {"nodes": "w-0", "grace_time": timedelta()},
            "m2": {"nodes": "nosuch"},
            "all": {"state": "DOWN"},
            "m3": {"nodes": "w-1", "priority_tier": 4},
        }
        made = await slurm.create_partitions(wanted)
        assert [(each.name, each.error and each.error.number) for each in made] == [
            ("m1", None),
            ("m2", 2018),
            ("all", 2000),
            ("m3", None),
        ]
        there = await slurm.partitions()
        assert {"m1", "m3"} <= {each.name for each in there}
        assert "m2" not in there
        assert there["all"].is_up
        changed = await slurm.update_partitions({"m1": {"state": "DRAIN"}, "m9": {}, "m3": {"nodes": "nosuch"}})
        assert [(each.name, each.error and each.error.number) for each in changed] == [
            ("m1", None),
            ("m9", 2000),
            ("m3", 2018),
        ]
        there = await slurm.partitions()
        assert (there["m1"].state.base, there["m3"].nodes, there["m3"].priority_tier) == ("DRAIN", ("w-1",), 4)
        for name in ("m1", "m3"):
            await slurm.delete_partition(name)


WISHES: PartitionWishes = {
    "state": "DOWN",
    "nodes": "w-0",
    "max_time": timedelta(hours=5),
    "default_time": timedelta(minutes=7),
    "max_nodes": 3,
    "min_nodes": 2,
    "max_cpus_per_node": 4,
    "default_memory_per_node_mib": 17,
    "priority_tier": 5,
    "priority_job_factor": 6,
    "grace_time": timedelta(seconds=30),
    "allowed_accounts": "a,b",
    "denied_accounts": "c",
    "allowed_groups": "root",
    "alternate": "all",
    "flags": ["HIDDEN", "LLN"],
}


async def test_all_that_is_wished_of_a_partition_is_done(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        if version < "v0.0.45":
            with pytest.raises(errors.NotSupported):
                await slurm.update_partition("all", **WISHES)
            return
        await slurm.create_partition("p3", **WISHES)
        await slurm.create_partition("p4", nodes="w-0")
        await slurm.update_partition("p4", **WISHES)
        for name in ("p3", "p4"):
            found = await slurm.partition(name)
            assert found.state.base == WISHES["state"]
            assert found.flags == frozenset(WISHES["flags"])
            for key in WISHES.keys() - {"state", "nodes", "flags"}:
                assert getattr(found, key) == WISHES[key], key  # type: ignore[literal-required]
        await slurm.update_partition("p4", max_time=INFINITE, max_nodes=INFINITE, flags=["HIDDEN_CLEAR"])
        found = await slurm.partition("p4")
        assert (found.max_time, found.max_nodes, found.flags) == (INFINITE, INFINITE, frozenset({"LLN"}))
        assert found.priority_tier == WISHES["priority_tier"]
        await slurm.update_partition("p4", default_memory_per_cpu_mib=11)
        assert (await slurm.partition("p4")).default_memory_per_cpu_mib == 11
        for name in ("p3", "p4"):
            await slurm.delete_partition(name)


async def test_reservations_are_made_changed_and_deleted_where_the_parser_can(target: Target, version: str) -> None:
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    spec = ReservationSpec(
        name="rest", partition="all", nodes=["w-1"], start_time=start, duration=timedelta(hours=2), users=["root"]
    )
    async with target.client(version) as slurm:
        assert not tuple(await slurm.reservations())
        if version < "v0.0.43":
            with pytest.raises(errors.NotSupported):
                await slurm.create_reservation(spec)
            return
        with pytest.raises(errors.NotFound):
            await slurm.update_reservation(spec)
        assert await slurm.create_reservation(spec) == "rest"
        with pytest.raises(errors.Conflict):
            await slurm.create_reservation(spec)
        reservation = await slurm.reservation("rest")
        assert reservation.nodes == ("w-1",)
        assert reservation.users == ("root",)
        assert (reservation.start_time, reservation.end_time) == (start, start + timedelta(hours=2))
        assert not reservation.is_active(datetime.now(UTC))
        assert reservation.is_active(start)
        await slurm.update_reservation(ReservationSpec(name="rest", duration=timedelta(hours=3)))
        assert (await slurm.reservation("rest")).end_time == start + timedelta(hours=3)
        await slurm.delete_reservation("rest")
        with pytest.raises(errors.NotFound):
            await slurm.delete_reservation("rest")
        several = replace(spec, name="several")
        for wish in ({"nodes": "w-[0-1]"}, {"nodes": ["w-[0-1]"]}, {"nodes": None, "node_count": 2}):
            await slurm.create_reservation(replace(several, **wish))
            made = await slurm.reservation("several")
            assert (made.nodes, made.node_count, made.core_count) == (("w-0", "w-1"), 2, 3)
            await slurm.delete_reservation("several")
        with pytest.raises(errors.Conflict) as busy:
            await slurm.create_reservation(replace(several, nodes=None, node_count=500))
        assert busy.value.number == 2016


async def test_licenses_shares_counters_and_configuration(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        (license_,) = await slurm.licenses()
        assert (license_.name, license_.total, license_.used, license_.free) == ("matlab", 3, 0, 3)
        assert await slurm.shares() == ()
        diag = await slurm.diag()
        assert diag.now is not None
        assert diag.rpcs_by_message
        assert diag.rpcs_by_message[0].average_time_us is not None
        if version < "v0.0.45":
            with pytest.raises(errors.NotSupported):
                await slurm.conf()
        else:
            assert (await slurm.conf())["MaxNodeCount"] == 64
        await slurm.reconfigure()


async def test_a_bad_token_is_unauthorized_although_ping_answers(target: Target, version: str) -> None:
    async with SlurmClient(target.url, StaticToken("garbage"), api_version=version) as slurm:
        (ping,) = await slurm.ping()
        assert not ping.responding
        with pytest.raises(errors.Unauthorized) as refused:
            await slurm.nodes()
        assert refused.value.status == 511
        assert refused.value.number == 1007


async def test_a_user_without_rights_is_told_so(target: Target, version: str) -> None:
    async with target.client(version, "nobody") as slurm:
        with pytest.raises(errors.PermissionDenied):
            await slurm.delete_node("w-0")
        with pytest.raises(errors.PermissionDenied):
            await slurm.drain_nodes(["w-0"], "mine")


async def test_slurm_user_acts_for_another_user(target: Target, version: str) -> None:
    token = MintedToken(target.key, "slurm")
    async with SlurmClient(target.url, token, api_version=version, user_name="nobody") as slurm:
        with pytest.raises(errors.PermissionDenied):
            await slurm.delete_node("w-0")
