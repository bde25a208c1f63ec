"""Clusters, resources and slurmdbd itself, by the answers that slurmrestd gave (24.11 and 26.05)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from slurm_client import errors
from tests.unit.slurm_client.database.slurmdbd import Slurmdbd, client

NOTHING = [{"description": "slurmdb_clusters_get() found nothing", "source": "_dump_clusters"}]

CLUSTER: dict[str, Any] = {
    "controller": {"host": "127.0.0.1", "port": 40303},
    "flags": ["REGISTERING", "MULTIPLE_SLURMD"],
    "name": "test",
    "nodes": "",
    "associations": {"root": {"account": "root", "cluster": "test", "partition": "", "user": "", "id": 1}},
    "rpc_version": 10752,
    "tres": [
        {"type": "cpu", "name": "", "id": 1, "count": 2},
        {"type": "gres", "name": "gpu:h100", "id": 1001, "count": 8},
    ],
}


async def test_clusters_are_found_by_name() -> None:
    slurmdbd = Slurmdbd(answers={"slurmdb/clusters": (200, {"clusters": [CLUSTER]})})
    slurmdbd.answers["slurmdb/cluster/test"] = (200, {"clusters": [CLUSTER]})
    slurmdbd.answers["slurmdb/cluster/"] = (200, {"clusters": [], "warnings": NOTHING})
    async with client(slurmdbd) as slurm:
        found = (await slurm.db.clusters())["test"]
        assert found == await slurm.db.cluster("test")
        assert (found.controller_host, found.controller_port, found.root_association_id) == ("127.0.0.1", 40303, 1)
        assert (found.tres.cpus, found.tres["gres/gpu:h100"], found.tres.gpus) == (2, 8, 8)
        with pytest.raises(errors.NotFound, match="cluster none"):
            await slurm.db.cluster("none")
        with pytest.raises(errors.Conflict, match="nothing was sent"):
            await slurm.db.create_cluster("test")
        assert not [each for each in slurmdbd.requests if "POST" in each]
        await slurm.db.create_cluster("none")
        assert slurmdbd.requests[-1] == "POST slurmdb/clusters/"


async def test_a_cluster_that_is_not_there_is_not_deleted() -> None:
    slurmdbd = Slurmdbd(answers={"slurmdb/cluster/old": (200, {"deleted_clusters": ["old"]})})
    slurmdbd.answers["slurmdb/cluster/"] = (304, None)
    async with client(slurmdbd) as slurm:
        await slurm.db.delete_cluster("old")
        with pytest.raises(errors.NotFound, match="no cluster none"):
            await slurm.db.delete_cluster("none")
        before = len(slurmdbd.requests)
        for name in ("", " ", "a,b", "."):
            with pytest.raises(errors.InvalidArgument):
                await slurm.db.delete_cluster(name)
        assert len(slurmdbd.requests) == before


async def test_instances_that_are_not_there_are_an_empty_list_and_no_answer_is_none() -> None:
    slurmdbd = Slurmdbd(answers={"slurmdb/instances": (200, {"errors": [], "warnings": NOTHING})})
    async with client(slurmdbd) as slurm:
        assert len(await slurm.db.instances(since=datetime(2026, 1, 1, tzinfo=UTC), clusters=["test"])) == 0
        slurmdbd.answers["slurmdb/instances"] = (
            200,
            {"instances": [{"node_name": "w-0", "instance_id": "i-1", "time": {"time_start": 1_800_000_000}}]},
        )
        (found,) = await slurm.db.instances()
        assert (found.node_name, found.instance_id, found.end_time) == ("w-0", "i-1", None)
        slurmdbd.answers["slurmdb/"] = (200, {"errors": [], "warnings": []})
        for call in (slurm.db.tres, slurm.db.clusters, slurm.db.diag, slurm.db.conf, slurm.db.config):
            with pytest.raises(errors.DecodeError, match="the answer has no"):
                await call()


async def test_counters_of_every_parser_are_read() -> None:
    newer = {
        "time_start": 1_795_365_742,
        "rollups": {
            "hourly": {"count": 1, "last_run": 1_795_365_743, "duration": {"last": 5, "max": 7, "time": 9}},
            "daily": {"count": 0, "last_run": 0, "duration": {"last": 0, "max": 0, "time": 0}},
        },
        "RPCs": [{"rpc": "DBD_FINI", "count": 5, "time": {"average": 9, "total": 45}}],
        "users": [{"user": "root", "count": 2, "time": {"average": 1, "total": 2}}],
    }
    older = {**newer, "rollups": [{"type": "internal", "last_run": 1_795_365_743, "last_cycle": 5, "total_cycles": 1}]}
    slurmdbd = Slurmdbd()
    async with client(slurmdbd) as slurm:
        for statistics, name in ((newer, "hourly"), (older, "internal")):
            slurmdbd.answers["slurmdb/diag"] = (200, {"statistics": statistics})
            diag = await slurm.db.diag()
            rollup = diag.rollups[0]
            assert (rollup.name, rollup.count, rollup.last_us) == (name, 1, 5)
            assert rollup.last_run == datetime.fromtimestamp(1_795_365_743, UTC)
            (calls,), (user,) = diag.calls_by_message, diag.calls_by_user
            assert (calls.name, calls.count, calls.average_time_us, calls.total_time_us) == ("DBD_FINI", 5, 9, 45)
            assert (user.name, user.total_time_us) == ("root", 2)


async def test_the_configuration_is_given_as_it_is_written() -> None:
    slurmdbd = Slurmdbd(
        answers={
            "slurmdb/config": (200, {"associations": [{"id": 1}], "tres": [], "errors": [], "warnings": []}),
            "slurmdb/conf": (200, {"slurmdbd_conf": {"DbdPort": 6819}}),
            "slurmdb/ping": (200, {"pings": [{"hostname": "db", "responding": True, "latency": 5, "primary": True}]}),
        }
    )
    async with client(slurmdbd) as slurm:
        assert await slurm.db.config() == {"associations": [{"id": 1}], "tres": []}
        assert (await slurm.db.conf())["DbdPort"] == 6819
        (ping,) = await slurm.db.ping()
        assert (ping.hostname, ping.responding, ping.primary, ping.latency_us) == ("db", True, True, 5)


async def test_what_a_parser_lacks_is_not_sent() -> None:
    slurmdbd = Slurmdbd()
    async with client(slurmdbd, api_version="v0.0.41") as slurm:
        with pytest.raises(errors.NotSupported) as lacks:
            await slurm.db.ping()
        assert lacks.value.available_in[0] == "v0.0.42"
        with pytest.raises(errors.NotSupported):
            await slurm.db.conf()
    assert not [each for each in slurmdbd.requests if "slurmdb" in each]
