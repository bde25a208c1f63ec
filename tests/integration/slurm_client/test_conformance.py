"""One suite for real Slurm of both releases, for each data parser they serve, and for the fake: all must agree."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from slurm_client import MintedToken, SlurmClient, StaticToken, errors, wire
from slurm_client.models import INFINITE, JobSpec, ReservationSpec
from tests.integration.slurm_client.targets import until

if TYPE_CHECKING:
    from slurm_client.models import Node
    from tests.integration.slurm_client.targets import Target

SLEEP = "#!/bin/sh\nexec sleep 600\n"


async def settled(slurm: SlurmClient, name: str) -> Node:
    """Return a node once Slurm has heard of it again: after an undrain it does not for a moment."""

    async def responds() -> bool:
        return not (await slurm.node(name)).is_not_responding

    await until(responds)
    return await slurm.node(name)


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


async def test_nodes_have_their_fields(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        nodes = {node.name: node for node in await slurm.nodes()}
        first = await slurm.node("w-0")
    assert first == nodes["w-0"]
    assert first.instance_id == "instance-0"
    assert first.extra == "team/w"
    assert (first.cpus, nodes["w-1"].cpus) == (1, 2)
    assert first.real_memory_mib == 256
    assert first.features == first.active_features == ("all",)
    assert first.partitions == ("all",)
    assert first.address == "127.0.0.1"
    assert first.version == target.release
    assert first.is_dynamic
    assert first.boot_time is not None
    assert first.boot_time.tzinfo is UTC
    assert first.slurmd_start_time is not None


async def test_update_time_answers_only_when_something_changed(target: Target, version: str) -> None:
    async with target.client(version) as slurm:

        async def unchanged() -> bool:
            listing = await slurm.nodes()
            return await slurm.nodes(listing.last_update) is None

        if version < "v0.0.42":
            assert not await unchanged()
            return
        await until(unchanged)
        listing = await slurm.nodes()
        await slurm.update_nodes(["w-0"], comment=f"changed for {version}")
        changed = await slurm.nodes(listing.last_update)
        assert changed is not None
        assert next(node for node in changed if node.name == "w-0").comment == f"changed for {version}"


async def test_unchanged_jobs_are_not_mistaken_for_none(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        name = await target.add_node()
        job_id = await target.start_job(name)

        async def unchanged() -> bool:
            listing = await slurm.jobs()
            assert job_id in {job.id for job in listing}
            return await slurm.jobs(listing.last_update) is None

        if version < "v0.0.42":
            assert not await unchanged()
        else:
            await until(unchanged)
        await slurm.cancel_job(job_id)


async def test_drain_and_undrain_many_at_once(target: Target, version: str) -> None:
    async with target.client(version, "slurm") as slurm:
        await slurm.drain_nodes(["w-0", "w-1"], "maintenance: fans")
        for node in await slurm.nodes():
            if node.name in {"w-0", "w-1"}:
                assert node.is_drain
                assert node.is_drained
                assert not node.is_usable
                assert node.reason == "maintenance: fans"
                assert node.reason_set_by == "slurm"
                assert node.reason_changed_at is not None
        await slurm.drain_nodes(["w-1"], "another reason")
        assert (await slurm.node("w-1")).reason == "another reason"
        await slurm.undrain_nodes(["w-0", "w-1"])
        await slurm.undrain_nodes(["w-0", "w-1"])
        for name in ("w-0", "w-1"):
            node = await settled(slurm, name)
            assert not node.is_drain
            assert node.is_idle
            assert node.is_usable


async def test_texts_and_numbers_of_a_node_are_changed(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        name = await target.add_node()
        await slurm.update_nodes([name], comment="c", extra="e", weight=7, features=["all", "fast"])
        node = await slurm.node(name)
        assert (node.comment, node.extra, node.weight) == ("c", "e", 7)
        assert node.features == node.active_features == ("all", "fast")
        await slurm.delete_node(name)


async def test_features_are_added_and_taken_away(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        name = await target.add_node()
        for words in (["all", "k8s/rack-1", "k8s/ib"], ["all", "k8s/rack-2"], ["all"]):
            await slurm.update_nodes([name], features=words, active_features=words)
            node = await slurm.node(name)
            assert node.features == node.active_features == tuple(words)
        await slurm.update_nodes([name], features=["all", "more"], active_features=["all", "more"])
        with pytest.raises(errors.InvalidRequest) as refused:
            await slurm.update_nodes([name], features=["all"])
        assert refused.value.number == 2031
        await slurm.delete_node(name)


async def test_a_topology_that_is_none_is_refused(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        if version < "v0.0.43":
            with pytest.raises(errors.NotSupported):
                await slurm.update_nodes(["w-0"], topology="nosuch")
        else:
            with pytest.raises(errors.InvalidRequest) as refused:
                await slurm.update_nodes(["w-0"], topology="nosuch")
            assert refused.value.number == 2178
        assert (await slurm.node("w-0")).topology != "nosuch"


async def test_resume_is_refused_where_there_is_nothing_to_resume(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        with pytest.raises(errors.InvalidTransition) as refused:
            await slurm.resume_nodes(["w-0"])
        assert refused.value.number in {2028, 2180}
        assert refused.value.name.startswith("ESLURM_INVALID_NODE_STATE")


async def test_an_unknown_state_word_is_refused(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        with pytest.raises(errors.InvalidRequest) as refused:
            await slurm.update_nodes(["w-0"], state="FROBBED")
        assert {report.number for report in refused.value.reports} >= {9207}


async def test_a_bulk_update_stops_at_the_first_unknown_name(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        with pytest.raises(errors.NotFound) as refused:
            await slurm.update_nodes(["x-unknown", "w-0"], comment=f"partial {version}")
        assert refused.value.number == 2018
        assert (await slurm.node("w-0")).comment == f"partial {version}"
        with pytest.raises(errors.NotFound):
            await slurm.update_nodes(["a-unknown", "w-1"], comment=f"nothing {version}")
        assert (await slurm.node("w-1")).comment != f"nothing {version}"


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


async def test_many_nodes_are_deleted_in_one_call_as_far_as_they_can_be(target: Target, version: str) -> None:
    free, busy, other = [await target.add_node() for _ in range(3)]
    await target.start_job(busy)
    async with target.client(version) as slurm:
        for name in (free, other):
            await target.remove_node(name)
        with pytest.raises(errors.Conflict):
            await slurm.delete_nodes([free, busy, other])
        left = {node.name for node in await slurm.nodes()}
        assert busy in left
        assert not left & {free, other}
        with pytest.raises(errors.NotFound):
            await slurm.delete_nodes([free, "nosuch"])
        await slurm.cancel_jobs(nodes=[busy])


async def test_a_busy_node_is_not_deleted_and_an_idle_one_is(target: Target, version: str) -> None:
    name = await target.add_node()
    job_id = await target.start_job(name)
    async with target.client(version) as slurm:
        with pytest.raises(errors.Conflict) as refused:
            await slurm.delete_node(name)
        assert refused.value.number == 2016
        assert refused.value.name == "ESLURM_NODES_BUSY"
        assert not (await slurm.node(name)).is_idle
        await slurm.cancel_job(job_id)

        async def idle() -> bool:
            return (await slurm.node(name)).is_idle and (await slurm.job(job_id)).is_finished

        await until(idle)
        await target.remove_node(name)
        await slurm.delete_node(name)
        with pytest.raises(errors.NotFound):
            await slurm.node(name)


async def test_a_drained_node_with_a_job_is_not_drained_yet(target: Target, version: str) -> None:
    name = await target.add_node()
    job_id = await target.start_job(name)
    async with target.client(version) as slurm:
        await slurm.drain_nodes([name], "scale in")
        node = await slurm.node(name)
        assert node.is_drain
        assert not node.is_drained
        assert [job.id for job in await slurm.jobs_on_nodes([name])] == [job_id]
        await slurm.cancel_job(job_id)

        async def drained() -> bool:
            return (await slurm.node(name)).is_drained and not await slurm.jobs_on_nodes([name])

        await until(drained)


async def test_a_suspended_job_leaves_its_node_idle_but_is_seen(target: Target, version: str) -> None:
    name = await target.add_node()
    job_id = await target.start_job(name)
    await target.suspend_job(job_id)
    async with target.client(version) as slurm:

        async def idle() -> bool:
            return (await slurm.node(name)).is_idle

        await until(idle)
        (job,) = await slurm.jobs_on_nodes([name])
        assert job.id == job_id
        assert job.state.base == "SUSPENDED"
        assert job.holds_nodes
        await slurm.cancel_job(job_id)


async def test_a_job_is_submitted_changed_and_cancelled(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        spec = JobSpec(
            script=SLEEP,
            name="conformance",
            partition="all",
            required_nodes=["w-1"],
            time_limit=timedelta(minutes=5),
            comment="first",
            standard_output="/dev/null",
        )
        submitted = await slurm.submit_job(spec)

        async def running() -> bool:
            return (await slurm.job(submitted.id)).is_running

        await until(running)
        job = await slurm.job(submitted.id)
        assert (job.name, job.partition, job.user, job.comment) == ("conformance", "all", "root", "first")
        assert job.nodes == ("w-1",)
        assert job.time_limit == timedelta(minutes=5)
        assert job.submit_time is not None
        assert job.start_time is not None
        assert job.holds_nodes
        states = {entry.id: entry.state for entry in await slurm.job_states()}
        assert states[str(submitted.id)].base == "RUNNING"
        await slurm.update_job(submitted.id, JobSpec(comment="second", time_limit=INFINITE))
        job = await slurm.job(submitted.id)
        assert job.comment == "second"
        assert job.time_limit is INFINITE
        await slurm.cancel_job(submitted.id)

        async def finished() -> bool:
            return (await slurm.job(submitted.id)).is_finished

        await until(finished)
        assert (await slurm.job(submitted.id)).state.base == "CANCELLED"
        await slurm.cancel_job(submitted.id)
        with pytest.raises(errors.InvalidTransition) as refused:
            await slurm.update_job(submitted.id, JobSpec(time_limit=timedelta(minutes=1)))
        assert refused.value.number == 2084


async def test_a_held_job_waits_until_it_is_released(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        submitted = await slurm.submit_job(JobSpec(script=SLEEP, required_nodes=["w-1"], hold=True))
        job = await slurm.job(submitted.id)
        assert job.is_pending
        assert job.hold
        assert job.state_reason == "JobHeldUser"
        await slurm.release_job(submitted.id)

        async def running() -> bool:
            return (await slurm.job(submitted.id)).is_running

        await until(running)
        await slurm.cancel_jobs([submitted.id])


async def test_many_jobs_are_cancelled_in_one_call(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        jobs = [(await slurm.submit_job(JobSpec(script=SLEEP, hold=True, name="many"))).id for _ in range(3)]
        before = slurm.calls
        results = await slurm.cancel_jobs([*jobs, 999_999])
        assert slurm.calls == before + 1
        (failed,) = [result for result in results if result.error is not None]
        assert failed.error is not None
        assert (failed.id, failed.error.number) == ("999999", 2017)

        async def finished() -> bool:
            return all([(await slurm.job(job_id)).is_finished for job_id in jobs])

        await until(finished)
        assert await slurm.cancel_jobs() == ()


async def test_bad_submissions_are_refused(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        with pytest.raises(errors.NotFound) as unknown:
            await slurm.submit_job(JobSpec(script=SLEEP, partition="nosuch"))
        assert unknown.value.name == "ESLURM_INVALID_PARTITION_NAME"
        with pytest.raises(errors.InvalidRequest):
            await slurm.submit_job(JobSpec(name="no script"))


async def test_a_bad_signal_is_refused_and_a_good_one_sent(target: Target, version: str) -> None:
    name = await target.add_node()
    job_id = await target.start_job(name)
    async with target.client(version) as slurm:
        with pytest.raises(errors.InvalidRequest):
            await slurm.cancel_job(job_id, signal="NOSUCH")
        await slurm.cancel_job(job_id, signal="USR1")
        await slurm.cancel_job(job_id)


async def test_requeue_where_the_parser_has_it(target: Target, version: str) -> None:
    name = await target.add_node()
    job_id = await target.start_job(name)
    async with target.client(version) as slurm:
        if "get_job_requeue" not in {each.operation for each in wire.endpoints(version)}:
            with pytest.raises(errors.NotSupported) as refused:
                await slurm.requeue_job(job_id)
            assert refused.value.available_in == ("v0.0.45",)
        else:
            await slurm.requeue_job(job_id)

            async def restarted() -> bool:
                return (await slurm.job(job_id)).restarts == 1

            await until(restarted)
            with pytest.raises(errors.NotFound):
                await slurm.requeue_job(999_999)
        await slurm.cancel_job(job_id)


async def test_layout_of_a_job_where_the_parser_has_it(target: Target, version: str) -> None:
    name = await target.add_node()
    job_id = await target.start_job(name)
    async with target.client(version) as slurm:
        if version < "v0.0.44":
            with pytest.raises(errors.NotSupported):
                await slurm.job_resources(job_id)
        else:
            (layout,) = await slurm.job_resources(job_id)
            assert layout.node == name
            assert layout.core_bitmap == "0x1"
        await slurm.cancel_job(job_id)


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
                await slurm.update_partition("p2", nodes="w-0")
            return
        await slurm.update_partition("p2", state="DRAIN", nodes="w-0")
        partition = await slurm.partition("p2")
        assert partition.state.base == "DRAIN"
        assert partition.nodes == ("w-0",)
        await slurm.delete_partition("p2")
        with pytest.raises(errors.NotFound):
            await slurm.delete_partition("p2")


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
        assert await slurm.create_reservation(spec) == "rest"
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


async def test_a_node_record_is_created_where_the_parser_can(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        line = "NodeName=made CPUs=1 RealMemory=512 Features=all State=EXTERNAL"
        if version < "v0.0.44":
            with pytest.raises(errors.NotSupported):
                await slurm.create_node(line)
            return
        await slurm.create_node(line)
        assert "EXTERNAL" in (await slurm.node("made")).state.flags
        with pytest.raises(errors.Conflict):
            await slurm.create_node(line)
        await slurm.delete_node("made")


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


async def test_a_watch_tells_old_and_new_of_every_flip(target: Target, version: str) -> None:
    async with target.client(version) as slurm, slurm.watch_nodes() as events:
        first = {(await anext(events)).key for _ in range(2)}
        assert first <= set(slurm.node_watch.objects)
        for number in range(10):
            await slurm.update_nodes(["w-0"], comment=f"flip {number} of {version}")
            await slurm.node_watch.refresh("w-0")
            while True:
                event = await asyncio.wait_for(anext(events), 20)
                if event.key == "w-0" and event.new is not None and event.new.comment.startswith(f"flip {number}"):
                    break
            assert event.old is not None
            assert event.new is not None
            if number:
                assert event.old.comment == f"flip {number - 1} of {version}"


async def test_slurm_user_acts_for_another_user(target: Target, version: str) -> None:
    token = MintedToken(target.key, "slurm")
    async with SlurmClient(target.url, token, api_version=version, user_name="nobody") as slurm:
        with pytest.raises(errors.PermissionDenied):
            await slurm.delete_node("w-0")
