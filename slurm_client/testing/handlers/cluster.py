"""
What each operation of the interface does in the pretended cluster; jobs are in a module of their own.

The methods are called as the operations are in the specification.
"""

from __future__ import annotations

from typing import Any

from slurm_client.notation import hostlist
from slurm_client.testing.answers import encode
from slurm_client.testing.answers.calls import Call, Reply, error
from slurm_client.testing.handlers.jobs import JobHandlers
from slurm_client.testing.refusals import Refusal
from slurm_client.testing.world import World


class Operations(JobHandlers):
    """Operations on the world, each of which takes a call and gives a reply or raises what slurmctld refuses."""

    def __init__(self, world: World, *, pretty: bool) -> None:
        super().__init__(world, pretty=pretty)
        self.controller_up = True
        self.conf: dict[str, Any] = {}

    async def _get_ping(self, call: Call) -> Reply:
        return Reply({"pings": [encode.ping("fake", self.controller_up, call.version)]})

    async def _get_diag(self, call: Call) -> Reply:
        counts = self.world.counts.shown(self.world.jobs.values())
        return Reply({"statistics": encode.statistics(self.world.now, counts, call.version)})

    async def _get_reconfigure(self, _: Call) -> Reply:
        self.world.reconfigure()
        return Reply()

    async def _get_nodes(self, call: Call) -> Reply:
        refused = self._refused_update_time(call)
        if refused is not None:
            return refused
        if self._unchanged_since(call, self.world.nodes_changed):
            return Reply(status=304)
        if not self.world.clears_reasons and self._unchanged_since(call, self.world.partitions_changed):
            return Reply(status=500, errors=[error(-1, "Unable to query partitions", "Unspecified error")])
        return Reply(raw=self._dump_list(call, "nodes", list(self.world.nodes.values()), encode.node))

    async def _get_node(self, call: Call) -> Reply:
        name = call.parameters["node_name"]
        node = self.world.nodes.get(name)
        if node is None:
            return Reply(errors=[error(0, f"Failure to query node {name}", "No error", "_dump_nodes")])
        return Reply(raw=self._dump_list(call, "nodes", [node], encode.node))

    async def _post_node(self, call: Call) -> Reply:
        self.world.apply_update([call.parameters["node_name"]], call.body or {}, call.user)
        return Reply()

    async def _post_nodes(self, call: Call) -> Reply:
        given = (call.body or {}).get("name") or []
        text = given if isinstance(given, str) else ",".join(given)
        self.world.apply_update(hostlist.expand(text), call.body, call.user)
        return Reply()

    async def _delete_node(self, call: Call) -> Reply:
        named = call.parameters["node_name"]
        refused: Refusal | None = None
        for name in list(self.world.nodes) if named.upper() == "ALL" else named.split(","):
            try:
                self.world.delete_node(name)
            except Refusal as error:
                refused = error
        if refused is not None:
            raise Refusal(refused.number, f"Failure to delete node {named}")
        return Reply()

    async def _get_reservations(self, call: Call) -> Reply:
        refused = self._refused_update_time(call)
        if refused is not None:
            return refused
        if self._unchanged_since(call, self.world.reservations_changed):
            return Reply(status=304)
        found = [encode.reservation(each) for each in self.world.reservations.values()]
        return Reply({"reservations": found, "last_update": encode.moment(self.world.now)})

    async def _get_reservation(self, call: Call) -> Reply:
        found = self.world.reservations.get(call.parameters["reservation_name"])
        if found is None:
            source = "slurm_load_reservations()"
            return Reply(errors=[error(0, "Unable to query reservations", "No error", source)])
        return Reply({"reservations": [encode.reservation(found)], "last_update": encode.moment(self.world.now)})

    async def _post_reservation(self, call: Call) -> Reply:
        made = self.world.reserve(call.body or {})
        return Reply({"reservations": [{"name": made.name}]})

    async def _delete_reservation(self, call: Call) -> Reply:
        self.world.unreserve(call.parameters["reservation_name"])
        return Reply()

    async def _get_licenses(self, call: Call) -> Reply:
        found = [encode.license_(each, call.version) for each in self.world.licenses.values()]
        return Reply({"licenses": found, "last_update": encode.moment(self.world.now)})

    async def _get_shares(self, _: Call) -> Reply:
        if self.world.share_tree.holders:
            # As measured: its filters are not looked at.
            found = self.world.share_tree.listed(self.world.jobs.values(), self.world.now)
            return Reply({"shares": {"shares": found, "total_shares": len(found)}})
        warning = {"description": "Shares list is empty because slurm accounting storage is disabled.", "source": ""}
        return Reply({"shares": {"shares": [], "total_shares": 0}}, warnings=[warning])

    async def _get_conf(self, _: Call) -> Reply:
        return Reply({"slurm_conf": {"ClusterName": "fake", "MaxNodeCount": 64, **self.conf}, "slurm_conf_meta": {}})

    async def _post_new_node(self, call: Call) -> Reply:
        self.world.create_node((call.body or {}).get("node_conf") or "")
        return Reply()

    async def _post_partitions(self, call: Call) -> Reply:
        found = []
        for index, wishes in enumerate((call.body or {}).get("partitions") or ()):
            name, verb = wishes["name"], "update" if wishes["name"] in self.world.partitions else "create"
            try:
                self.world.change_partition(wishes)
            except Refusal as refusal:
                said = f"Failed to {verb} partition {name} with description at index {index}"
                found.append(error(refusal.number, said, source=f"slurm_{verb}_partition"))
        return Reply(status=422 if found else 200, errors=found)

    async def _delete_partition(self, call: Call) -> Reply:
        self.world.delete_partition(call.parameters["partition_name"])
        return Reply()

    async def _get_partitions(self, call: Call) -> Reply:
        refused = self._refused_update_time(call)
        if refused is not None:
            return refused
        if self._unchanged_since(call, self.world.partitions_changed):
            return Reply(status=304)
        nodes = list(self.world.nodes.values())
        found = [encode.partition(each, nodes, call.version) for each in self.world.partitions.values()]
        return Reply({"partitions": found, "last_update": encode.moment(self.world.now)})

    async def _get_partition(self, call: Call) -> Reply:
        name = call.parameters["partition_name"]
        partition = self.world.partitions.get(name)
        if partition is None:
            sentence = f"Unable to find partition {name}"
            if self.world.clears_reasons:
                return Reply(warnings=[{"description": sentence, "source": "_partition_get"}])
            return Reply(status=422, errors=[error(9000, sentence)])
        nodes = list(self.world.nodes.values())
        return Reply(
            {
                "partitions": [encode.partition(partition, nodes, call.version)],
                "last_update": encode.moment(self.world.now),
            }
        )
