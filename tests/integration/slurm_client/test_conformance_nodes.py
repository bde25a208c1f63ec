"""Queries and writes of nodes: real Slurm of both releases and the fake must agree, in each data parser."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

import pytest

from slurm_client import SlurmClient, errors
from tests.integration.slurm_client.targets import until

if TYPE_CHECKING:
    from slurm_client.models import Node
    from tests.integration.slurm_client.targets import Target


async def settled(slurm: SlurmClient, name: str) -> Node:
    """Return a node once Slurm has heard of it again: after an undrain it does not for a moment."""
    seen: list[Node] = []

    async def responds() -> bool:
        seen.append(await slurm.node(name))
        return not seen[-1].is_not_responding

    await until(responds)
    return seen[-1]


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


async def test_a_watch_tells_old_and_new_of_every_flip(target: Target, version: str) -> None:
    async with target.client(version) as slurm, slurm.watch_nodes() as events:
        first = {(await anext(events)).key for _ in range(2)}
        assert first <= set(slurm.node_watch.objects)
        for number in range(10):
            await slurm.update_nodes(["w-0"], comment=f"flip {number} of {version}")
            await slurm.node_watch.refresh("w-0")
            while True:
                event = await anext(events)
                if event.key == "w-0" and event.new is not None and event.new.comment.startswith(f"flip {number}"):
                    break
            assert event.old is not None
            assert event.new is not None
            if number:
                assert event.old.comment == f"flip {number - 1} of {version}"


async def test_the_name_of_a_nodeset_deletes_and_downs_no_node(target: Target, version: str) -> None:
    """Sent as it is, slurmctld would take it for all nodes with the feature: see slurm.conf of the real clusters."""
    name = await target.add_node()
    async with target.client(version) as slurm:
        for call in (
            slurm.delete_node("everything"),
            slurm.delete_nodes(["everything"]),
            slurm.delete_nodes(["everything", *(f"nosuch-{number}" for number in range(12))]),
            slurm.down_nodes(["everything"], "x"),
            slurm.update_nodes(["everything"], state="DOWN"),
        ):
            with pytest.raises(errors.NotFound):
                await call
        with pytest.raises(errors.InvalidArgument):
            await slurm.drain_nodes(["ALL"], "x")
        found = {node.name: node for node in await slurm.nodes()}
        assert not found[name].is_down
        assert {"w-0", "w-1"} <= found.keys()
        await target.remove_node(name)
        await slurm.delete_node(name)
